#include "kube/leader_elector.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "check_main.h"
#include "kube/leader_elector_internal.h"
#include "test/fake/api_server.h"

static const struct lease_settings SETTINGS = {
    .ns = "kubeflow", .name = "tj", .identity = "me", .duration_s = 15, .renew_s = 10, .retry_s = 2
};

/* ---- decisions ---- */

static const struct {
    const char *what, *holder; /* holder NULL: there is no lease */
    int duration_s;
    int64_t unchanged_ms;
    bool holding;
    int64_t renewed_ms; /* ago */
    enum lease_step want;
} LOOKS[] = {
    { "there is none", NULL, 0, 0, false, 0, LEASE_CREATE },
    { "another holds it", "you", 15, 14999, false, 0, LEASE_WAIT },
    { "another is silent", "you", 15, 15000, false, 0, LEASE_TAKE },
    { "another asked for longer", "you", 60, 59999, false, 0, LEASE_WAIT },
    { "another is silent for longer", "you", 60, 60000, false, 0, LEASE_TAKE },
    { "a lease without duration", "you", 0, 14999, false, 0, LEASE_WAIT },
    { "a lease without duration, over", "you", 0, 15000, false, 0, LEASE_TAKE },
    { "given away", "", 1, 0, false, 0, LEASE_TAKE },
    { "ours, though we did not see it", "me", 15, 0, false, 0, LEASE_RENEW },
    { "ours", "me", 15, 2000, true, 2000, LEASE_RENEW },
    { "ours, not renewed in time", "me", 15, 10000, true, 10000, LEASE_LOST },
    { "taken from us", "you", 15, 0, true, 2000, LEASE_LOST },
    { "given away for us", "", 1, 0, true, 2000, LEASE_TAKE },
    { "deleted under us", NULL, 0, 0, true, 2000, LEASE_CREATE },
    { "deleted under us, too late", NULL, 0, 0, true, 10000, LEASE_LOST },
};
START_TEST(what_to_do_with_a_lease)
{
    enum { NOW = 1000000 };
    struct lease_record seen = { .exists = LOOKS[_i].holder != NULL,
                                 .duration_s = LOOKS[_i].duration_s,
                                 .changed_ms = NOW - LOOKS[_i].unchanged_ms };
    snprintf(seen.holder, sizeof(seen.holder), "%s", LOOKS[_i].holder != NULL ? LOOKS[_i].holder : "");
    enum lease_step got = lease_next(&SETTINGS, &seen, LOOKS[_i].holding, NOW - LOOKS[_i].renewed_ms, NOW);
    ck_assert_msg(got == LOOKS[_i].want, "%s: %d", LOOKS[_i].what, (int)got);
}
END_TEST

static json_t *parse(const char *text)
{
    json_t *v = NULL;
    struct err e;
    ck_ok_e(json_parse(text, strlen(text), "test", &v, &e));
    return v;
}

START_TEST(time_counts_from_the_last_change_by_our_clock)
{
    json_auto_t *first = parse("{\"metadata\":{\"resourceVersion\":\"5\"},\"spec\":{\"holderIdentity\":\"you\","
                               "\"leaseDurationSeconds\":15,\"renewTime\":\"1999-01-01T00:00:00.000000Z\"}}");
    json_auto_t *second = parse(
        "{\"metadata\":{\"resourceVersion\":\"6\"},\"spec\":{\"holderIdentity\":\"you\",\"leaseDurationSeconds\":15}}");
    struct lease_record seen = { 0 };
    lease_observe(&seen, first, 1000);
    lease_observe(&seen, first, 9000);
    ck_assert_int_eq(seen.changed_ms, 1000);
    ck_assert_int_eq(lease_next_ms(&SETTINGS, &seen, 3000, 9000), 12000);
    ck_assert_int_eq(lease_next_ms(&SETTINGS, &seen, 3000, 14000), 16000); /* the moment of its expiry */
    lease_observe(&seen, second, 10000);
    ck_assert_int_eq(seen.changed_ms, 10000);
    lease_observe(&seen, NULL, 11000);
    ck_assert(!seen.exists);
}
END_TEST

static const char *at(const json_t *v, const char *path)
{
    return json_string_value(json_at(v, path));
}
#define WALL 1772600767.25 /* 2026-03-04T05:06:07.250Z */

START_TEST(a_new_lease_has_the_form_of_client_go)
{
    json_auto_t *v = lease_body(&SETTINGS, NULL, false, WALL);
    AUTO_FINI(buf) text = BUF_INIT;
    json_emit(v, &text);
    ck_assert_str_eq(text.data,
                     "{\"metadata\":{\"name\":\"tj\",\"namespace\":\"kubeflow\"},\"spec\":{\"holderIdentity\":\"me\","
                     "\"leaseDurationSeconds\":15,\"renewTime\":\"2026-03-04T05:06:07.250000Z\","
                     "\"acquireTime\":\"2026-03-04T05:06:07.250000Z\",\"leaseTransitions\":0},"
                     "\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\"}");
}
END_TEST

START_TEST(what_we_do_not_know_in_a_lease_survives)
{
    json_auto_t *old = parse(
        "{\"apiVersion\":\"coordination.k8s.io/"
        "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"tj\",\"namespace\":\"kubeflow\",\"resourceVersion\":\"5\","
        "\"labels\":{\"a\":\"b\"}},\"spec\":{\"holderIdentity\":\"you\",\"leaseDurationSeconds\":30,\"acquireTime\":"
        "\"2026-01-01T00:00:00.000000Z\",\"leaseTransitions\":6,\"strategy\":\"OldestEmulationVersion\"},\"more\":1}");
    json_auto_t *taken = lease_body(&SETTINGS, old, false, WALL);
    ck_assert_str_eq(at(taken, "metadata.resourceVersion"), "5");
    ck_assert_str_eq(at(taken, "metadata.labels.a"), "b");
    ck_assert_str_eq(at(taken, "spec.strategy"), "OldestEmulationVersion");
    ck_assert_int_eq(json_integer_value(json_at(taken, "more")), 1);
    ck_assert_str_eq(at(taken, "spec.holderIdentity"), "me");
    ck_assert_int_eq(json_integer_value(json_at(taken, "spec.leaseTransitions")), 7);
    ck_assert_str_eq(at(taken, "spec.acquireTime"), "2026-03-04T05:06:07.250000Z");

    json_auto_t *renewed = lease_body(&SETTINGS, taken, false, WALL + 2);
    ck_assert_int_eq(json_integer_value(json_at(renewed, "spec.leaseTransitions")), 7);
    ck_assert_str_eq(at(renewed, "spec.acquireTime"), "2026-03-04T05:06:07.250000Z");
    ck_assert_str_eq(at(renewed, "spec.renewTime"), "2026-03-04T05:06:09.250000Z");

    json_auto_t *released = lease_body(&SETTINGS, renewed, true, WALL + 4);
    ck_assert_str_eq(at(released, "spec.holderIdentity"), "");
    ck_assert_int_eq(json_integer_value(json_at(released, "spec.leaseDurationSeconds")), 1);
}
END_TEST

/* ---- electors against a server that keeps one lease ---- */

struct store {
    pthread_mutex_t lock;
    json_t *lease;
    int version;
    bool down;
};

static int answer_with(struct store *s, struct buf *body)
{
    json_emit(s->lease, body);
    return 200;
}

static int refuse(int status, const char *reason, struct buf *body)
{
    buf_printf(body, "{\"kind\":\"Status\",\"code\":%d,\"reason\":\"%s\",\"message\":\"%s\"}", status, reason, reason);
    return status;
}

static int take(struct store *s, json_t *lease, struct buf *body)
{
    char version[16];
    snprintf(version, sizeof(version), "%d", ++s->version);
    json_decref(s->lease);
    s->lease = json_incref(lease);
    json_object_set_new(json_object_get(lease, "metadata"), "resourceVersion", json_string(version));
    return answer_with(s, body);
}

static int serve(void *user, const struct fake_request *r, struct buf *body)
{
    struct store *s = user;
    json_auto_t *sent = NULL;
    int status;

    pthread_mutex_lock(&s->lock);
    if (r->body_len > 0 && json_parse(r->body, r->body_len, "body", &sent, NULL) < 0)
        sent = NULL;
    if (s->down)
        status = refuse(500, "InternalError", body);
    else if (strcmp(r->method, "POST") == 0)
        status = s->lease != NULL ? refuse(409, "AlreadyExists", body) : take(s, sent, body);
    else if (s->lease == NULL)
        status = refuse(404, "NotFound", body);
    else if (strcmp(r->method, "GET") == 0)
        status = answer_with(s, body);
    else if (!str_eq(at(sent, "metadata.resourceVersion"), at(s->lease, "metadata.resourceVersion")))
        status = refuse(409, "Conflict", body);
    else
        status = take(s, sent, body);
    pthread_mutex_unlock(&s->lock);
    return status;
}

static void set_lease(struct store *s, const char *text)
{
    pthread_mutex_lock(&s->lock);
    json_decref(s->lease);
    s->lease = text != NULL ? parse(text) : NULL;
    pthread_mutex_unlock(&s->lock);
}

static void set_down(struct store *s, bool down)
{
    pthread_mutex_lock(&s->lock);
    s->down = down;
    pthread_mutex_unlock(&s->lock);
}

struct world {
    struct fake_api *api;
    struct kubeconfig *config;
    struct loop *loop;
    struct kube_client *client;
    struct store store;
};

struct candidate {
    struct leader_elector *elector;
    int leading, lost, released;
    char why[200], leader[64];
};

static void on_leading(void *user)
{
    ((struct candidate *)user)->leading++;
}
static void on_lost(void *user, const char *why)
{
    struct candidate *c = user;
    c->lost++;
    snprintf(c->why, sizeof(c->why), "%s", why);
    leader_elector_free(TAKE(c->elector)); /* a callback may */
}
static void on_leader(void *user, const char *identity)
{
    snprintf(((struct candidate *)user)->leader, sizeof((struct candidate *)user)->leader, "%s", identity);
}
static void on_released(void *user)
{
    ((struct candidate *)user)->released++;
}

static void world_init(struct world *w)
{
    *w = (struct world){ .api = fake_api_new(), .loop = loop_new(), .store = { .lock = PTHREAD_MUTEX_INITIALIZER } };
    fake_api_share_clock(w->api, w->loop);
    w->config = fake_api_config(w->api, NULL);
    w->client = kube_client_new(w->loop, w->config, &(struct kube_settings){ .user_agent = "test" });
    fake_api_on(w->api, "*", "/apis/coordination.k8s.io/v1/namespaces/kubeflow/leases*",
                &(struct fake_answer){ .handle = serve, .user = &w->store });
}

static void world_fini(struct world *w)
{
    kube_client_free(w->client);
    kubeconfig_free(w->config);
    loop_free(w->loop);
    fake_api_free(w->api);
    json_decref(w->store.lease);
}
DEFINE_AUTO_FINI(world, world_fini);

static void stand(struct world *w, struct candidate *c, const char *identity, int duration_s, int renew_s, int retry_s)
{
    struct lease_settings s = { "kubeflow", "tj", identity, duration_s, renew_s, retry_s };
    *c = (struct candidate){ 0 };
    c->elector = leader_elector_new(w->client, &s, &(struct leader_callbacks){ on_leading, on_lost, on_leader, c });
}

static bool leads(void *user)
{
    return ((struct candidate *)user)->leading > 0;
}
static bool has_lost(void *user)
{
    return ((struct candidate *)user)->lost > 0;
}
static bool has_released(void *user)
{
    return ((struct candidate *)user)->released > 0;
}
static bool knows_a_leader(void *user)
{
    return ((struct candidate *)user)->leader[0] != '\0';
}

static bool is_held(void *user)
{
    struct store *s = user;
    pthread_mutex_lock(&s->lock);
    bool held = s->lease != NULL;
    pthread_mutex_unlock(&s->lock);
    return held;
}

#define START()                                                                                                        \
    AUTO_FINI(world) w;                                                                                                \
    world_init(&w);                                                                                                    \
    struct candidate a = { 0 }, b = { 0 }
#define END()                                                                                                          \
    leader_elector_free(a.elector);                                                                                    \
    leader_elector_free(b.elector)

START_TEST(one_leads_and_what_it_gives_away_another_takes_at_once)
{
    START();
    stand(&w, &a, "a", 15, 10, 2);
    fake_until(w.loop, leads, &a);
    stand(&w, &b, "b", 15, 10, 1);
    fake_until(w.loop, knows_a_leader, &b);
    ck_assert_str_eq(b.leader, "a");
    ck_assert_int_eq(b.leading, 0);
    int64_t began = loop_now(w.loop);
    leader_elector_release(a.elector, on_released, &a);
    ck_assert_int_eq(a.released, 0); /* never from within */
    fake_until(w.loop, has_released, &a);
    fake_until(w.loop, leads, &b);
    ck_assert_int_lt(loop_now(w.loop) - began, 12000); /* not only when 15 s are over */
    ck_assert_int_eq(a.lost, 0);
    ck_assert_str_eq(at(w.store.lease, "spec.holderIdentity"), "b");
    ck_assert_int_eq(json_integer_value(json_at(w.store.lease, "spec.leaseTransitions")), 1);
    END();
}
END_TEST

START_TEST(who_does_not_lead_gives_nothing_away)
{
    START();
    set_lease(
        &w.store,
        "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":\"you\",\"leaseDurationSeconds\":15}}");
    stand(&w, &a, "a", 15, 10, 2);
    fake_until(w.loop, knows_a_leader, &a);
    leader_elector_release(a.elector, on_released, &a);
    fake_until(w.loop, has_released, &a);
    ck_assert_str_eq(at(w.store.lease, "spec.holderIdentity"), "you");
    ck_assert_uint_eq(fake_api_count(w.api, "PUT", "*"), 0);
    END();
}
END_TEST

START_TEST(a_silent_leader_is_followed_when_its_lease_is_over)
{
    START();
    set_lease(
        &w.store,
        "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"holderIdentity\":\"you\",\"leaseDurationSeconds\":1}}");
    int64_t began = loop_now(w.loop);
    stand(&w, &a, "a", 15, 10, 8);
    fake_until(w.loop, leads, &a);
    ck_assert_int_ge(loop_now(w.loop) - began, 1000);
    ck_assert_int_lt(loop_now(w.loop) - began, 7900); /* not only at the next round of 8 s */
    END();
}
END_TEST

/* renew_s 1: a lease that cannot be renewed for a second is lost, and that is reported once. */
START_TEST(what_cannot_be_renewed_is_lost)
{
    START();
    stand(&w, &a, "a", 3, 1, 1);
    fake_until(w.loop, leads, &a);
    set_down(&w.store, true);
    fake_until(w.loop, has_lost, &a);
    ck_assert_str_eq(a.why, "it could not be renewed for 1 s");
    ck_assert_int_eq(a.lost, 1);
    END();
}
END_TEST

START_TEST(what_another_took_is_lost)
{
    START();
    stand(&w, &a, "a", 15, 10, 1);
    fake_until(w.loop, leads, &a);
    set_lease(&w.store, "{\"metadata\":{\"resourceVersion\":\"99\"},\"spec\":{\"holderIdentity\":\"you\","
                        "\"leaseDurationSeconds\":15}}");
    fake_until(w.loop, has_lost, &a);
    ck_assert_str_eq(a.why, "you holds it now");
    ck_assert_str_eq(at(w.store.lease, "spec.holderIdentity"), "you");
    END();
}
END_TEST

/* kubectl delete lease: the lease is re-created, and no elector has lost it. */
START_TEST(a_lease_that_is_deleted_is_made_again)
{
    START();
    stand(&w, &a, "a", 15, 10, 1);
    fake_until(w.loop, leads, &a);
    set_lease(&w.store, NULL);
    fake_api_wait(w.api, w.loop, "POST", "*", 2);
    fake_until(w.loop, is_held, &w.store);
    ck_assert_int_eq(a.lost * 10 + a.leading, 1);
    ck_assert_str_eq(at(w.store.lease, "spec.holderIdentity"), "a");
    END();
}
END_TEST

/* A renewal counts from the moment it was sent; the others count from the moment it was written. */
START_TEST(the_time_counts_from_the_question)
{
    START();
    fake_api_on(w.api, "POST", "*", &(struct fake_answer){ .handle = serve, .user = &w.store, .delay_ms = 1200 });
    stand(&w, &a, "a", 6, 4, 4);
    fake_until(w.loop, leads, &a);
    int64_t began = loop_now(w.loop);
    set_down(&w.store, true);
    fake_until(w.loop, has_lost, &a);
    ck_assert_int_lt(loop_now(w.loop) - began, 3700); /* 2.8 s */
    END();
}
END_TEST

/* Stopped while the lease is being acquired: the result is unknown, so the lease is read and released. */
START_TEST(what_is_being_taken_is_given_back)
{
    START();
    fake_api_on(w.api, "POST", "*",
                &(struct fake_answer){ .handle = serve, .user = &w.store, .delay_ms = 200, .times = 1 });
    stand(&w, &a, "a", 15, 10, 1);
    fake_api_wait(w.api, w.loop, "POST", "*", 1);
    leader_elector_release(a.elector, on_released, &a);
    set_lease(
        &w.store,
        "{\"metadata\":{\"resourceVersion\":\"4\"},\"spec\":{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15}}");
    fake_until(w.loop, has_released, &a);
    ck_assert_str_eq(at(w.store.lease, "spec.holderIdentity"), "");
    ck_assert_int_eq(a.leading, 0);
    END();
}
END_TEST

/* Another elector has acquired it meanwhile, as from a leader that was paused: it keeps the lease. */
START_TEST(what_another_holds_is_not_given_away)
{
    START();
    stand(&w, &a, "a", 15, 10, 5);
    fake_until(w.loop, leads, &a);
    set_lease(&w.store, "{\"metadata\":{\"resourceVersion\":\"99\"},\"spec\":{\"holderIdentity\":\"you\","
                        "\"leaseDurationSeconds\":15}}");
    leader_elector_release(a.elector, on_released, &a);
    fake_until(w.loop, has_released, &a);
    ck_assert_str_eq(at(w.store.lease, "spec.holderIdentity"), "you");
    END();
}
END_TEST

/* Another client modified it since it was last read: it is released all the same. */
START_TEST(what_others_touched_is_given_away)
{
    START();
    stand(&w, &a, "a", 15, 10, 5);
    fake_until(w.loop, leads, &a);
    set_lease(
        &w.store,
        "{\"metadata\":{\"resourceVersion\":\"99\"},\"spec\":{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15}}");
    leader_elector_release(a.elector, on_released, &a);
    fake_until(w.loop, has_released, &a);
    ck_assert_str_eq(at(w.store.lease, "spec.holderIdentity"), "");
    END();
}
END_TEST

/* The API server does not answer: a pod that is to end does not wait for it. */
START_TEST(giving_it_away_takes_two_seconds_at_most)
{
    START();
    stand(&w, &a, "a", 15, 10, 5);
    fake_until(w.loop, leads, &a);
    fake_api_on(w.api, "PUT", "*", &(struct fake_answer){ .silent = true });
    int64_t began = loop_now(w.loop);
    leader_elector_release(a.elector, on_released, &a);
    fake_until(w.loop, has_released, &a);
    ck_assert_int_lt(loop_now(w.loop) - began, 4500); /* the request's own limit is 5 s */
    END();
}
END_TEST

/* Another client labels the lease: it has another version, but it is still ours. */
START_TEST(a_lease_that_others_touch_stays_ours)
{
    START();
    stand(&w, &a, "a", 15, 10, 1);
    fake_until(w.loop, leads, &a);
    set_lease(&w.store, "{\"metadata\":{\"resourceVersion\":\"77\",\"labels\":{\"a\":\"b\"}},\"spec\":{"
                        "\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15}}");
    fake_api_wait(w.api, w.loop, "PUT", "*", 2); /* refused, read, written again */
    leader_elector_release(a.elector, on_released, &a);
    fake_until(w.loop, has_released, &a);
    ck_assert_int_eq(a.lost, 0);
    ck_assert_str_eq(at(w.store.lease, "metadata.labels.a"), "b");
    ck_assert_str_eq(at(w.store.lease, "spec.holderIdentity"), "");
    END();
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("lease");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 30);
    tcase_add_loop_test(t, what_to_do_with_a_lease, 0, (int)COUNT_OF(LOOKS));
    tcase_add_test(t, time_counts_from_the_last_change_by_our_clock);
    tcase_add_test(t, a_new_lease_has_the_form_of_client_go);
    tcase_add_test(t, what_we_do_not_know_in_a_lease_survives);
    tcase_add_test(t, one_leads_and_what_it_gives_away_another_takes_at_once);
    tcase_add_test(t, who_does_not_lead_gives_nothing_away);
    tcase_add_test(t, a_silent_leader_is_followed_when_its_lease_is_over);
    tcase_add_test(t, what_cannot_be_renewed_is_lost);
    tcase_add_test(t, what_another_took_is_lost);
    tcase_add_test(t, a_lease_that_is_deleted_is_made_again);
    tcase_add_test(t, the_time_counts_from_the_question);
    tcase_add_test(t, what_is_being_taken_is_given_back);
    tcase_add_test(t, what_another_holds_is_not_given_away);
    tcase_add_test(t, what_others_touched_is_given_away);
    tcase_add_test(t, giving_it_away_takes_two_seconds_at_most);
    tcase_add_test(t, a_lease_that_others_touch_stays_ours);
    suite_add_tcase(s, t);
    return s;
}
