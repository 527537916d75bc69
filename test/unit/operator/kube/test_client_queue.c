#include "check_main.h"

#include <string.h>

#include "base/str.h"
#include "kube/client_internal.h"
#include "test/fake/api_server.h"

/* ---- which request is sent next: pure ---- */

#define NOBODY                                                                                                         \
    {                                                                                                                  \
        -1, -1, -1, -1                                                                                                 \
    }

/* Of n requests sent, how many are of each priority, when all have always been waiting for so long. */
static void serve(int n, const int64_t waited_ms[KUBE_PRIORITIES], int ret[KUBE_PRIORITIES])
{
    struct priority_shares s = { .running = { 0 } };
    memset(ret, 0, KUBE_PRIORITIES * sizeof(*ret));
    for (int i = 0; i < n; i++) {
        enum kube_priority u = priority_shares_next(&s, waited_ms);
        ck_assert_int_lt(u, KUBE_PRIORITIES);
        priority_shares_took(&s, u, waited_ms);
        ret[u]++;
    }
}

START_TEST(nobody_waits)
{
    const int64_t none[] = NOBODY;
    struct priority_shares s = { .running = { 0 } };
    ck_assert_int_eq(priority_shares_next(&s, none), KUBE_PRIORITIES);
}
END_TEST

START_TEST(those_that_can_wait_have_their_share)
{
    static const struct {
        int64_t waited_ms[KUBE_PRIORITIES];
        int want[KUBE_PRIORITIES]; /* of 6,400 */
    } CASES[] = {
        { { -1, 5, -1, -1 }, { 0, 6400, 0, 0 } },           { { -1, -1, 5, -1 }, { 0, 0, 6400, 0 } },
        { { -1, -1, -1, 5 }, { 0, 0, 0, 6400 } },           { { -1, 5, 5, -1 }, { 0, 6200, 200, 0 } },
        { { -1, 5, -1, 5 }, { 0, 6300, 0, 100 } },          { { -1, -1, 5, 5 }, { 0, 0, 6300, 100 } },
        { { -1, 5, 29999, 59999 }, { 0, 6100, 200, 100 } }, { { -1, 5, 30000, -1 }, { 0, 4800, 1600, 0 } },
        { { -1, 5, -1, 60000 }, { 0, 6000, 0, 400 } },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        int got[KUBE_PRIORITIES];
        serve(6400, CASES[i].waited_ms, got);
        for (int u = 0; u < KUBE_PRIORITIES; u++)
            ck_assert_msg(abs(got[u] - CASES[i].want[u]) <= 10, "case %zu: priority %d went %d times", i, u, got[u]);
    }
}
END_TEST

/* The server is busy with more urgent ones, although none of them waits here. */
START_TEST(those_that_can_wait_do_so_while_others_run)
{
    static const struct {
        int running[KUBE_PRIORITIES];
        bool relaxed, background; /* may go */
    } CASES[] = {
        { { 0, 0, 0, 0 }, true, true },   { { 3, 0, 0, 0 }, true, true }, /* leases */
        { { 0, 16, 0, 0 }, true, false }, { { 0, 17, 0, 0 }, false, false }, { { 0, 1, 0, 0 }, true, false },
        { { 0, 0, 1, 0 }, true, false },  { { 0, 0, 60, 0 }, true, false },  { { 0, 0, 0, 7 }, true, true },
        { { 0, 0, 0, 8 }, true, false },
    };
    const int64_t relaxed[] = { -1, -1, 5, -1 }, background[] = { -1, -1, -1, 5 };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct priority_shares s = { .running = { 0 } };
        memcpy(s.running, CASES[i].running, sizeof(s.running));
        ck_assert_msg(priority_shares_next(&s, relaxed) == (CASES[i].relaxed ? KUBE_LOW : KUBE_PRIORITIES), "case %zu",
                      i);
        ck_assert_msg(priority_shares_next(&s, background) == (CASES[i].background ? KUBE_BACKGROUND : KUBE_PRIORITIES),
                      "case %zu", i);
        s.passed[KUBE_LOW] = s.passed[KUBE_BACKGROUND] = 63; /* their share is due */
        ck_assert_int_eq(priority_shares_next(&s, relaxed), KUBE_LOW);
        ck_assert_int_eq(priority_shares_next(&s, background), KUBE_BACKGROUND);
    }
}
END_TEST

/* A priority that had nothing waiting gets no share of the requests sent before. */
START_TEST(a_share_begins_with_waiting)
{
    const int64_t alone[] = { -1, 5, -1, -1 }, both[] = { -1, 5, 0, -1 };
    struct priority_shares s = { .running = { 0 } };
    for (int i = 0; i < 100; i++)
        priority_shares_took(&s, KUBE_NORMAL, alone);
    for (int i = 0; i < 31; i++) {
        ck_assert_int_eq(priority_shares_next(&s, both), KUBE_NORMAL);
        priority_shares_took(&s, KUBE_NORMAL, both);
    }
    ck_assert_int_eq(priority_shares_next(&s, both), KUBE_LOW);
}
END_TEST

/* ---- turns, with a server ---- */

struct world {
    struct fake_api *api;
    struct loop *l;
    struct kubeconfig *config;
    struct kube_client *k;
    int done;
};

static void world_fini(struct world *w)
{
    kube_client_free(w->k);
    kubeconfig_free(w->config);
    loop_free(w->l);
    fake_api_free(w->api);
}
DEFINE_AUTO_FINI(world, world_fini);

static struct world world(int at_once)
{
    struct world w = { .api = fake_api_new(), .l = loop_new() };
    fake_api_share_clock(w.api, w.l);
    w.config = fake_api_config(w.api, NULL);
    w.k = kube_client_new(w.l, w.config, &(struct kube_settings){ .at_once = at_once });
    fake_api_on(w.api, "*", "*", &(struct fake_answer){ .body = "{}", .delay_ms = 20 });
    return w;
}

static void on_done(void *user, const struct kube_answer *a)
{
    struct world *w = user;
    ck_assert_int_eq(a->status, 200);
    w->done++;
}

static void send(struct world *w, const char *path, enum kube_priority u)
{
    kube_send(w->k,
              &(struct kube_request){ .verb = KUBE_GET, .priority = u, .path = path, .done = on_done, .user = w });
}

struct waiting {
    struct kube_ticket turn;
    struct world *w;
    const char *path; /* NULL: it has nothing to send when its turn comes */
    enum kube_priority priority;
    int given, done_then;
};

static void on_turn(void *user)
{
    struct waiting *t = user;
    t->given++;
    t->done_then = t->w->done;
    if (t->path != NULL)
        send(t->w, t->path, t->priority);
}

static void line_up(struct waiting *t, struct world *w, const char *path, enum kube_priority u)
{
    *t = (struct waiting){ .w = w, .path = path, .priority = u };
    kube_ticket_wait(w->k, &t->turn, u, on_turn, t);
}

static void assert_order(struct world *w, const char *const *want, size_t n)
{
    fake_api_wait(w->api, w->l, "*", "*", n);
    for (size_t i = 0; i < n; i++) {
        struct fake_request r;
        ck_assert(fake_api_request(w->api, "*", "*", i, &r));
        ck_assert_str_eq(r.path, want[i]);
    }
}

/* One request at a time: each turn is given when the one before was answered, after what had been sent. */
START_TEST(a_turn_comes_when_its_request_can_go)
{
    static const char *const WANT[] = { "/0", "/1", "/a", "/b", "/c", "/d" };
    AUTO_FINI(world) w = world(1);
    struct waiting t[5];
    send(&w, "/0", KUBE_NORMAL);
    line_up(&t[0], &w, "/d", KUBE_BACKGROUND);
    line_up(&t[1], &w, "/c", KUBE_LOW);
    line_up(&t[2], &w, "/a", KUBE_NORMAL);
    line_up(&t[3], &w, NULL, KUBE_NORMAL);
    line_up(&t[4], &w, "/b", KUBE_NORMAL);
    kube_ticket_wait(w.k, &t[2].turn, KUBE_NORMAL, on_turn, &t[2]); /* keeps its place */
    send(&w, "/1", KUBE_NORMAL);
    assert_order(&w, WANT, COUNT_OF(WANT));
    ck_assert_int_eq(t[2].done_then, 2);
    ck_assert_int_eq(t[4].done_then, 3);
    ck_assert_int_eq(t[1].done_then, 4);
    ck_assert_int_eq(t[0].done_then, 5);
    for (size_t i = 0; i < COUNT_OF(t); i++)
        ck_assert(t[i].given == 1 && t[i].turn.line == NULL);
}
END_TEST

START_TEST(a_turn_may_be_given_up_or_become_more_urgent)
{
    static const char *const WANT[] = { "/0", "/c", "/b" };
    AUTO_FINI(world) w = world(1);
    struct waiting t[3];
    send(&w, "/0", KUBE_NORMAL);
    line_up(&t[0], &w, "/a", KUBE_NORMAL);
    line_up(&t[1], &w, "/b", KUBE_LOW);
    line_up(&t[2], &w, "/c", KUBE_BACKGROUND);
    t[2].priority = KUBE_NORMAL;
    kube_ticket_wait(w.k, &t[2].turn, KUBE_NORMAL, on_turn, &t[2]);
    kube_ticket_cancel(&t[0].turn);
    assert_order(&w, WANT, COUNT_OF(WANT));
    ck_assert_int_eq(t[0].given, 0);
}
END_TEST

static void on_turn_again(void *user)
{
    struct waiting *t = user;
    loop_clock(t->w->l)->now_ms += 3; /* the clock advances meanwhile */
    on_turn(t);
    if (t->given < 5)
        kube_ticket_wait(t->w->k, &t->turn, t->priority, on_turn_again, t);
}

/* It has been waiting since a later moment than the client's last reading of the clock. */
START_TEST(a_turn_taken_while_turns_are_given_is_given_too)
{
    static const char *const WANT[] = { "/a", "/a", "/a", "/a", "/a" };
    AUTO_FINI(world) w = world(32);
    struct waiting t = { .w = &w, .path = "/a", .priority = KUBE_BACKGROUND };
    fake_api_on(w.api, "*", "/a",
                &(struct fake_answer){ .silent = true }); /* else an answer makes the client read the clock again */
    kube_ticket_wait(w.k, &t.turn, KUBE_BACKGROUND, on_turn_again, &t);
    assert_order(&w, WANT, COUNT_OF(WANT));
    ck_assert_int_eq(t.given, 5);
}
END_TEST

/* A lease is renewed while the server answers no other request. */
START_TEST(urgent_ones_need_no_room)
{
    AUTO_FINI(world) w = world(1);
    fake_api_on(w.api, "*", "/silent", &(struct fake_answer){ .silent = true });
    send(&w, "/silent", KUBE_NORMAL);
    fake_api_wait(w.api, w.l, "*", "/silent", 1);
    send(&w, "/lease", KUBE_URGENT);
    fake_api_wait(w.api, w.l, "*", "/lease", 1);
}
END_TEST

START_TEST(room_is_when_nobody_waits)
{
    AUTO_FINI(world) w = world(2);
    struct waiting t[2];
    ck_assert(kube_has_room(w.k));
    line_up(&t[0], &w, "/b", KUBE_BACKGROUND);
    ck_assert(kube_has_room(w.k));
    send(&w, "/0", KUBE_NORMAL);
    ck_assert(!kube_has_room(w.k)); /* not yet in flight */
    assert_order(&w, (const char *const[]){ "/0", "/b" }, 2);
    line_up(&t[1], &w, "/a", KUBE_NORMAL);
    ck_assert(!kube_has_room(w.k));
}
END_TEST

START_TEST(a_client_that_goes_leaves_no_turn_behind)
{
    AUTO_FINI(world) w = world(1);
    struct waiting t[2];
    line_up(&t[0], &w, "/a", KUBE_NORMAL);
    line_up(&t[1], &w, "/b", KUBE_BACKGROUND);
    kube_client_free(TAKE(w.k));
    ck_assert(t[0].turn.line == NULL && t[1].turn.line == NULL);
    ck_assert_int_eq(t[0].given + t[1].given, 0);
}
END_TEST

Suite *test_suite(void)
{
    const TTest *const TESTS[] = {
        nobody_waits,
        those_that_can_wait_have_their_share,
        those_that_can_wait_do_so_while_others_run,
        a_share_begins_with_waiting,
        a_turn_comes_when_its_request_can_go,
        a_turn_may_be_given_up_or_become_more_urgent,
        a_turn_taken_while_turns_are_given_is_given_too,
        urgent_ones_need_no_room,
        room_is_when_nobody_waits,
        a_client_that_goes_leaves_no_turn_behind,
    };
    Suite *s = suite_create("turn");
    TCase *t = tcase_create("turn");
    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < COUNT_OF(TESTS); i++)
        tcase_add_test(t, TESTS[i]);
    suite_add_tcase(s, t);
    return s;
}
