/* Which job may send requests, and how many. The test has its own clock. */
#include "check_main.h"

#include "base/mem.h"
#include "control/fair_queue.h"

/* ---- whose turn it is ---- */

START_TEST(the_fewest_sent_of_late_then_the_longest_wait)
{
    static const struct {
        int sent[3];
        int64_t since_ms[3]; /* -1: it does not wait */
        int64_t now_ms;
        int want; /* -1: none */
    } CASES[] = {
        { { 0, 0, 0 }, { -1, -1, -1 }, 10, -1 },
        { { 9, 0, 0 }, { 5, -1, -1 }, 10, 0 },
        { { 0, 0, 0 }, { 5, 6, 7 }, 10, 0 },
        { { 64, 0, 0 }, { 5, 6, 7 }, 10, 1 },
        { { 64, 3, 2 }, { 5, 6, 7 }, 10, 2 },
        { { 3, 3, 3 }, { 5, 6, 7 }, 10, 0 },
        { { 3, 3, 3 }, { -1, 6, 7 }, 10, 1 },
        { { 1000, 16, 0 }, { 0, 1, 900 }, 10, 2 },
        { { 16, 16, 0 }, { 5, 6, 7 }, 4999, 2 },
        { { 16, 16, 0 }, { 5, 6, 7 }, 5000, 0 }, /* long ago: it no longer counts */
        { { 64, 16, 0 }, { 5, 6, -1 }, 4999, 1 },
        { { 1000, 16, 0 }, { 5, 6, 7 }, 100000, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct fair_queue f = { .bytes = 0 };
        struct fair_ticket jobs[3] = { { .waits = false } };
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < CASES[i].sent[j]; k++)
                fair_queue_count(&jobs[j], 0);
            if (CASES[i].since_ms[j] >= 0)
                fair_queue_add(&f, &jobs[j], CASES[i].since_ms[j]);
        }
        const struct fair_ticket *got = fair_queue_next(&f, CASES[i].now_ms);
        ck_assert_msg(got == (CASES[i].want < 0 ? NULL : &jobs[CASES[i].want]), "case %zu", i);
    }
}
END_TEST

START_TEST(a_job_keeps_its_place_and_may_leave)
{
    struct fair_queue f = { .bytes = 0 };
    struct fair_ticket a = { .waits = false }, b = { .waits = false }, c = { .waits = false };
    fair_queue_add(&f, &a, 1);
    fair_queue_add(&f, &b, 2);
    fair_queue_add(&f, &c, 3);
    fair_queue_add(&f, &a, 4);
    ck_assert_ptr_eq(fair_queue_next(&f, 5), &a);
    fair_queue_remove(&f, &b);
    fair_queue_remove(&f, &b);
    fair_queue_remove(&f, &a);
    ck_assert_ptr_eq(fair_queue_next(&f, 5), &c);
    fair_queue_remove(&f, &c);
    ck_assert(fair_queue_next(&f, 5) == NULL && f.first == NULL && f.last == NULL);
}
END_TEST

START_TEST(bodies_under_way_are_bounded)
{
    struct fair_queue f = { .bytes = FAIR_QUEUE_BYTES - 1 };
    struct fair_ticket a = { .waits = false };
    fair_queue_add(&f, &a, 1);
    ck_assert_ptr_eq(fair_queue_next(&f, 5), &a);
    f.bytes = FAIR_QUEUE_BYTES;
    ck_assert(!fair_queue_has_room(&f));
    ck_assert_ptr_null(fair_queue_next(&f, 5));
    ck_assert(!fair_queue_may_send(&f, 0, f.bytes));
    f.bytes = 1000;
    ck_assert(fair_queue_may_send(&f, FAIR_QUEUE_REQUESTS - 1, 1000));
    ck_assert(!fair_queue_may_send(&f, FAIR_QUEUE_REQUESTS, 1000));
    f.bytes = 1000 + FAIR_QUEUE_BYTES_PER_JOB;
    ck_assert(!fair_queue_may_send(&f, 1, 1000));
    ck_assert(fair_queue_may_send(&f, 1, 2000)); /* requests of others ended meanwhile */
    ck_assert(fair_queue_may_send(&f, 1, f.bytes + 5000));
}
END_TEST

/* ---- a server that takes some milliseconds for a request, and a limit of requests in flight ---- */

enum { JOBS_MAX = 1201, AT_ONCE = 64, ANSWER_MS = 5 };

struct client {
    int64_t arrives_ms;
    int left, in_flight;
    size_t bytes; /* of each request */
    struct fair_ticket ticket;
    int64_t done_ms; /* when the last was answered; 0: not yet */
};
struct sent {
    struct client *of;
};
struct server {
    struct fair_queue fair;
    struct client *clients;
    int n;
    struct sent queue[1024]; /* sent, in the order of sending */
    int first, end;
    size_t most_bytes;
};

static void take_turns(struct server *s, int64_t now)
{
    struct fair_ticket *next;
    while (s->end - s->first < AT_ONCE && (next = fair_queue_next(&s->fair, now)) != NULL) {
        struct client *c = s->clients;
        while (&c->ticket != next)
            c++;
        fair_queue_remove(&s->fair, next);
        size_t then = s->fair.bytes;
        for (int sent = 0; c->left > 0 && fair_queue_may_send(&s->fair, sent, then); sent++) {
            s->queue[s->end++ % 1024] = (struct sent){ c };
            s->fair.bytes += c->bytes;
            s->most_bytes = MAX(s->most_bytes, s->fair.bytes);
            c->in_flight++;
            fair_queue_count(&c->ticket, now);
            c->left--;
        }
        if (c->left > 0)
            fair_queue_add(&s->fair, &c->ticket, now);
    }
}

static void answer_one(struct server *s, int64_t now)
{
    if (s->first == s->end)
        return;
    struct client *c = s->queue[s->first++ % 1024].of;
    s->fair.bytes -= c->bytes;
    if (--c->in_flight == 0 && c->left == 0)
        c->done_ms = now;
}

static void serve(struct server *s, int64_t until_ms)
{
    for (int64_t now = 0; now < until_ms; now += ANSWER_MS) {
        for (int i = 0; i < s->n; i++)
            if (s->clients[i].arrives_ms <= now && s->clients[i].arrives_ms > now - ANSWER_MS && s->clients[i].left > 0)
                fair_queue_add(&s->fair, &s->clients[i].ticket, now);
        take_turns(s, now);
        answer_one(s, now + ANSWER_MS);
    }
}

/* Requests in flight are answered first: 64 and the rest of a turn, 5 ms each. */
START_TEST(a_small_job_beside_large_ones_waits_for_what_is_under_way)
{
    static const struct {
        int large, workers;
        size_t bytes;
    } CASES[] = { { 1, 1000, 3000 },  { 1, 10000, 3000 },  { 12, 1000, 3000 },
                  { 30, 2000, 3000 }, { 1, 1000, 160000 }, { 12, 1000, 160000 } };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct client clients[40] = { { .left = 0 } };
        struct server s = { .clients = clients, .n = CASES[i].large + 1 };
        for (int j = 0; j < CASES[i].large; j++)
            clients[j] = (struct client){ .left = CASES[i].workers, .bytes = CASES[i].bytes };
        clients[CASES[i].large] = (struct client){ .arrives_ms = 2000, .left = 6, .bytes = 3000 };
        serve(&s, 10000);
        int64_t waited = clients[CASES[i].large].done_ms - 2000;
        ck_assert_msg(waited > 0 && waited < 500, "case %zu: the small job waited %lld ms", i, (long long)waited);
        ck_assert_uint_lt(s.most_bytes, FAIR_QUEUE_BYTES + CASES[i].bytes);
    }
}
END_TEST

/* New small jobs arrive as fast as the server works: the large one still makes progress. */
START_TEST(a_large_job_goes_on_beside_many_small_ones)
{
    struct client clients[JOBS_MAX] = { { .left = 2000, .bytes = 3000 } };
    struct server s = { .clients = clients, .n = JOBS_MAX };
    for (int j = 1; j < JOBS_MAX; j++)
        clients[j] = (struct client){ .arrives_ms = (j - 1) * 25, .left = 5, .bytes = 3000 };
    serve(&s, 30000);
    int64_t longest = 0;
    for (int j = 1; j < JOBS_MAX - 100; j++) {
        ck_assert_msg(clients[j].done_ms > 0, "job %d of %d", j, JOBS_MAX);
        longest = MAX(longest, clients[j].done_ms - clients[j].arrives_ms);
    }
    ck_assert_int_lt(longest, 2000);
    ck_assert_int_le(clients[0].left, 2000 - 8 * FAIR_QUEUE_REQUESTS); /* four turns at first */
}
END_TEST

Suite *test_suite(void)
{
    const TTest *const TESTS[] = {
        the_fewest_sent_of_late_then_the_longest_wait,
        a_job_keeps_its_place_and_may_leave,
        bodies_under_way_are_bounded,
        a_small_job_beside_large_ones_waits_for_what_is_under_way,
        a_large_job_goes_on_beside_many_small_ones,
    };
    Suite *s = suite_create("fair_queue");
    TCase *t = tcase_create("fair_queue");
    for (size_t i = 0; i < COUNT_OF(TESTS); i++)
        tcase_add_test(t, TESTS[i]);
    suite_add_tcase(s, t);
    return s;
}
