#include "check_main.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "test/fake/api_server.h"
#include "training_operator_detector.h"

#define EMPTY    "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}"
#define LEASES   "*/leases[?]"
#define WEBHOOKS "*/validatingwebhookconfigurations[?]"
#define NAME     "1ca428e5.training-operator.kubeflow.org"
#define LEASE(version, holder, renewed)                                                                                \
    "{\"metadata\":{\"namespace\":\"kubeflow\",\"name\":\"" NAME "\",\"uid\":\"1\",\"resourceVersion\":\"" version     \
    "\"},"                                                                                                             \
    "\"spec\":{\"holderIdentity\":\"" holder "\",\"renewTime\":\"" renewed "\",\"leaseDurationSeconds\":1}}"
#define LIST(item) "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[" item "]}"

struct world {
    struct fake_api *api;
    struct kubeconfig *config;
    struct loop *loop;
    struct kube_client *client;
    struct detector *detector;
    int reported;
    char why[400]; /* "": no other operator is running */
};

static void on_change(void *user, const char *why)
{
    struct world *w = user;
    w->reported++;
    str_fmt(w->why, sizeof(w->why), "%s", why != NULL ? why : "");
}

static void on(struct world *w, const char *pattern, struct fake_answer a)
{
    fake_api_on(w->api, "GET", pattern, &a);
}

static void world_init(struct world *w)
{
    *w = (struct world){ .api = fake_api_new(), .loop = loop_new() };
    fake_api_share_clock(w->api, w->loop);
    w->config = fake_api_config(w->api, NULL);
    w->client = kube_client_new(w->loop, w->config, &(struct kube_settings){ .user_agent = "test" });
    on(w, "*[?]limit=*", (struct fake_answer){ .body = EMPTY });
    on(w, "*[?]watch=true*", (struct fake_answer){ .body = "", .open = true });
}

static void world_fini(struct world *w)
{
    detector_free(w->detector);
    kube_client_free(w->client);
    kubeconfig_free(w->config);
    loop_free(w->loop);
    fake_api_free(w->api);
}
DEFINE_AUTO_FINI(world, world_fini);

struct times {
    const struct world *w;
    int n;
};
static bool was_told(void *user)
{
    const struct times *t = user;
    return t->w->reported >= t->n;
}
static void wait_told(struct world *w, int n)
{
    fake_until(w->loop, was_told, &(struct times){ w, n });
    ck_assert_int_eq(w->reported, n);
}

#define START()                                                                                                        \
    AUTO_FINI(world) w;                                                                                                \
    world_init(&w)

START_TEST(nobody_is_there)
{
    START();
    w.detector = detector_new(w.client, 40000, on_change, &w);
    wait_told(&w, 1);
    ck_assert_str_eq(w.why, "");
}
END_TEST

/* Its lease is renewed at first, and then not for its duration: the other operator is gone. */
START_TEST(a_lease_that_is_not_renewed_runs_out)
{
    START();
    on(&w, LEASES "limit=*", (struct fake_answer){ .body = LIST(LEASE("5", "other_1", "2026-01-01T00:00:00Z")) });
    int64_t began = loop_now(w.loop);
    w.detector = detector_new(w.client, 40000, on_change, &w);
    wait_told(&w, 1);
    ck_assert_msg(strstr(w.why, "Lease kubeflow/" NAME " (other_1)") != NULL, "%s", w.why);
    wait_told(&w, 2);
    ck_assert_str_eq(w.why, "");
    ck_assert_int_ge(loop_now(w.loop) - began, 900);
}
END_TEST

START_TEST(a_lease_given_away_counts_at_once)
{
    START();
    on(&w, LEASES "limit=*", (struct fake_answer){ .body = LIST(LEASE("5", "", "2026-01-01T00:00:00Z")) });
    w.detector = detector_new(w.client, 40000, on_change, &w);
    wait_told(&w, 1);
    ck_assert_str_eq(w.why, "");
}
END_TEST

START_TEST(a_webhook_counts_while_it_is_there)
{
    START();
    on(&w, WEBHOOKS "limit=*",
       (struct fake_answer){ .body = LIST("{\"metadata\":{\"name\":\"validator.training-operator.kubeflow.org\","
                                          "\"uid\":\"1\",\"resourceVersion\":\"4\"}}") });
    w.detector = detector_new(w.client, 40000, on_change, &w);
    wait_told(&w, 1);
    ck_assert_msg(strstr(w.why, "ValidatingWebhookConfiguration") != NULL, "%s", w.why);
    fake_api_wait(w.api, w.loop, "GET", WEBHOOKS "watch=true*", 1);
    while (fake_api_push(w.api, WEBHOOKS "watch=true*",
                         "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"validator.training-operator."
                         "kubeflow.org\",\"uid\":\"1\",\"resourceVersion\":\"10\"}}}\n") == 0)
        ck_assert_int_eq(loop_turn(w.loop, 5, NULL), 0);
    wait_told(&w, 2);
    ck_assert_str_eq(w.why, "");
}
END_TEST

/* Not at once, because an API server that has just started refuses requests for a moment; but in the end. */
START_TEST(a_refusal_counts_when_it_lasts)
{
    START();
    on(&w, LEASES "limit=*",
       (struct fake_answer){ .status = 403,
                             .delay_ms = 100,
                             .body = "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\"}" });
    int64_t began = loop_now(w.loop);
    w.detector = detector_new(w.client, 600, on_change, &w);
    wait_told(&w, 1);
    ck_assert_str_eq(w.why, "");
    ck_assert_int_ge(loop_now(w.loop) - began, 600);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("detector");
    TCase *t = tcase_create("detector");

    tcase_set_timeout(t, 30);
    tcase_add_test(t, nobody_is_there);
    tcase_add_test(t, a_lease_that_is_not_renewed_runs_out);
    tcase_add_test(t, a_lease_given_away_counts_at_once);
    tcase_add_test(t, a_webhook_counts_while_it_is_there);
    tcase_add_test(t, a_refusal_counts_when_it_lasts);
    suite_add_tcase(s, t);
    return s;
}
