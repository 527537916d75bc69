#include "check_main.h"
#include "control/operator_leaf.h"

#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "test/fake/api_server.h"

#define MASTER "/api/v1/namespaces/default/secrets/" MASTER_KEY_SECRET
#define KEYS_A "{\"data\":{\"20200101T000000Z\":\"QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=\"}}"

enum { LIFETIME_S = 3600 };

/* An issuer whose master key is known. */
struct world {
    struct fake_api *api;
    struct kubeconfig *config;
    struct loop *loop;
    struct kube_client *client;
    struct registry *registry;
    struct identity_issuer *issuer;
    struct operator_leaves *leaves;
    int64_t now_ms;
};

static struct job_spec job(const char *name, const char *uid)
{
    return (struct job_spec){ .kind = &KIND_TRAINJOB,
                              .ns = (char *)(uintptr_t) "a",
                              .name = (char *)(uintptr_t)name,
                              .uid = (char *)(uintptr_t)uid,
                              .roles = { [ROLE_WORKER] = { .present = true, .replicas = 2 } } };
}

static bool keys_are_known(void *user)
{
    struct world *w = user;
    const struct job_spec v = job("j", "u-1");
    struct http_own_tls tls;
    struct err e;
    return operator_leaves_get(w->leaves, &v, w->now_ms, &tls, &e) == 0;
}

static void world_init(struct world *w)
{
    *w = (struct world){ .api = fake_api_new(), .loop = loop_new(), .registry = registry_new() };
    w->config = fake_api_config(w->api, NULL);
    w->client =
        kube_client_new(w->loop, w->config, &(struct kube_settings){ .user_agent = "test", .field_manager = "test" });
    fake_api_on(w->api, "GET", MASTER, &(struct fake_answer){ .body = KEYS_A });
    w->issuer = identity_issuer_new(
        w->client, &(struct identity_issuer_settings){ .lifetime_s = LIFETIME_S, .registry = w->registry });
    w->leaves = operator_leaves_new(w->issuer);
    w->now_ms = (int64_t)clock_wall() * 1000;
}

static void world_fini(struct world *w)
{
    operator_leaves_free(w->leaves);
    identity_issuer_free(w->issuer);
    kube_client_free(w->client);
    kubeconfig_free(w->config);
    registry_free(w->registry);
    loop_free(w->loop);
    fake_api_free(w->api);
}
DEFINE_AUTO_FINI(world, world_fini);

/* The certificate for a job at a time, in hours from now; owned by the case. */
static char *get(struct world *w, const struct job_spec *v, double hours)
{
    struct http_own_tls tls;
    struct err e = { .code = ERR_NONE };
    ck_ok_e(operator_leaves_get(w->leaves, v, w->now_ms + (int64_t)(hours * 3600000), &tls, &e));
    ck_ok_e(certificate_check(tls.ca, tls.cert, tls.key, &e));
    return xstrdup(tls.cert);
}

START_TEST(a_certificate_is_kept_for_two_thirds_of_its_life)
{
    AUTO_FINI(world) w;
    const struct job_spec one = job("j", "u-1"), other = job("k", "u-2"), again = job("j", "u-3");
    struct certificate_info info;
    struct err e = { .code = ERR_NONE };
    struct http_own_tls tls;

    world_init(&w);
    ck_assert_int_eq(operator_leaves_get(w.leaves, &one, w.now_ms, &tls, &e), -1);
    ck_assert_int_eq(e.code, ERR_NOT_READY);
    fake_until(w.loop, keys_are_known, &w);
    auto_free char *first = get(&w, &one, 0), *second = get(&w, &other, 0);
    ck_ok_e(certificate_read(first, &info, &e));
    ck_assert_str_eq(info.identity.ns, "a");
    ck_assert_str_eq(info.identity.job_uid, "u-1");
    ck_assert_int_eq(info.identity.role, IDENTITY_OPERATOR);
    ck_assert_int_eq(info.not_after_s, w.now_ms / 1000 + LIFETIME_S);
    ck_assert_str_ne(first, second);

    auto_free char *same = get(&w, &one, 0.66), *renewed = get(&w, &one, 0.67), *back = get(&w, &one, 0.1),
                   *of_other = get(&w, &other, 0.1), *of_again = get(&w, &again, 0.1);
    ck_assert_str_eq(same, first);
    ck_assert_str_ne(renewed, first);
    ck_assert_str_ne(back, renewed); /* the clock was set back: it might not be valid yet */
    ck_assert_str_eq(of_other, second);
    ck_ok_e(certificate_read(of_again, &info, &e)); /* another job of that name */
    ck_assert_str_eq(info.identity.job_uid, "u-3");
    operator_leaves_drop(w.leaves, "a/k");
    auto_free char *after = get(&w, &other, 0.1);
    ck_assert_str_ne(after, second);
}
END_TEST

/* role and index of the peer, uid of its job, and whether it is the leader of job u-1, which has no chief */
static const struct {
    int role, index;
    const char *uid, *refused;
} PEERS[] = {
    { ROLE_WORKER, 0, "u-1", NULL },     { ROLE_WORKER, 1, "u-1", "worker-1" },
    { ROLE_CHIEF, 0, "u-1", "chief-0" }, { IDENTITY_OPERATOR, 0, "u-1", "operator" },
    { ROLE_WORKER, 0, "u-2", "u-2" },
};
START_TEST(only_the_leader_of_the_job_counts)
{
    const struct job_spec v = job("j", "u-1");
    AUTO(ca) *c = NULL;
    AUTO_FINI(leaf) leaf = { 0 };
    struct err e = { .code = ERR_NONE };
    int64_t now_s = (int64_t)clock_wall();

    ck_ok_e(ca_new("a", PEERS[_i].uid, now_s, &c, &e));
    ck_ok_e(ca_issue(c, PEERS[_i].role, PEERS[_i].index, now_s, LIFETIME_S, &leaf, &e));
    int rc = operator_leaf_check_leader(&v, leaf.certificate, &e);
    ck_assert_int_eq(rc, PEERS[_i].refused != NULL ? -1 : 0);
    if (rc == 0)
        return;
    ck_assert_int_eq(e.code, ERR_REFUSED);
    ck_assert_msg(strstr(e.msg, PEERS[_i].refused) != NULL, "%s", e.msg);
}
END_TEST

START_TEST(a_peer_without_a_certificate_is_not_the_leader)
{
    const struct job_spec v = job("j", "u-1");
    struct err e = { .code = ERR_NONE };
    ck_assert_int_eq(operator_leaf_check_leader(&v, NULL, &e), -1);
    ck_assert_int_eq(e.code, ERR_REFUSED);
    ck_assert_int_eq(operator_leaf_check_leader(&v, "x", &e), -1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("operator_leaf");
    TCase *c = tcase_create("operator_leaf");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, a_certificate_is_kept_for_two_thirds_of_its_life);
    tcase_add_loop_test(c, only_the_leader_of_the_job_counts, 0, (int)COUNT_OF(PEERS));
    tcase_add_test(c, a_peer_without_a_certificate_is_not_the_leader);
    suite_add_tcase(s, c);
    return s;
}
