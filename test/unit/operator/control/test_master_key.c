#include "check_main.h"

#include <string.h>

#include "api/time.h"
#include "codec/base64.h"
#include "control/master_key.h"
#include "test/fake/api_server.h"

#define SECRET "/api/v1/namespaces/default/secrets/" MASTER_KEY_SECRET
#define POSTS  "/api/v1/namespaces/default/secrets[?]*"
#define DAY_MS (INT64_C(24) * 3600 * 1000)
#define KEY_A  "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=" /* 32 times A */
#define KEY_B  "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI="

/* ---- pure ---- */

static size_t parse(const char *text, struct master_key keys[MASTER_KEYS_MAX], struct buf *bad)
{
    struct err e = { .code = ERR_NONE };
    json_auto_t *v = NULL;
    ck_ok_e(json_parse(text, strlen(text), "test", &v, &e));
    return master_keys_parse(v, keys, bad);
}

START_TEST(entries_are_read_in_the_order_of_their_times)
{
    struct master_key keys[MASTER_KEYS_MAX];
    AUTO_FINI(buf) bad = BUF_INIT;
    size_t n = parse("{\"20261124T000000Z\":\"" KEY_B "\",\"20261123T100000Z\":\"" KEY_A "\"}", keys, &bad);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(bad.data, "");
    ck_assert_str_eq(keys[0].name, "20261123T100000Z");
    ck_assert_int_eq(keys[0].time_ms, time_parse("2026-11-23T10:00:00Z"));
    ck_assert_int_eq(keys[0].bytes[31], 'A');
    ck_assert_int_eq(keys[1].bytes[0], 'B');
}
END_TEST

START_TEST(entries_that_are_not_keys_are_named)
{
    struct master_key keys[MASTER_KEYS_MAX];
    AUTO_FINI(buf) bad = BUF_INIT;
    size_t n = parse("{\"note\":\"" KEY_A "\",\"20261323T100000Z\":\"" KEY_A "\",\"20261123t100000Z\":\"" KEY_A
                     "\",\"20261123T100000\":\"" KEY_A "\",\"20261123T100001Z\":\"QUFB\",\"20261123T100002Z\":\"%\","
                     "\"20261123T100003Z\":7,\"20261123T100004Z\":\"" KEY_A "\"}",
                     keys, &bad);
    ck_assert_uint_eq(n, 1);
    ck_assert_str_eq(keys[0].name, "20261123T100004Z");
    ck_assert_str_eq(bad.data, "note, 20261323T100000Z, 20261123t100000Z, 20261123T100000, 20261123T100001Z, "
                               "20261123T100002Z, 20261123T100003Z");
}
END_TEST

START_TEST(the_newest_eight_count)
{
    struct master_key keys[MASTER_KEYS_MAX];
    AUTO_FINI(buf) bad = BUF_INIT;
    AUTO_FINI(buf) text = BUF_INIT;
    for (int i = 0; i < 12; i++) /* in no order */
        buf_printf(&text, "%s\"202611%02dT000000Z\":\"" KEY_A "\"", i > 0 ? "," : "{", (i * 7) % 12 + 1);
    buf_str(&text, "}");
    ck_assert_uint_eq(parse(text.data, keys, &bad), MASTER_KEYS_MAX);
    for (int i = 0; i < MASTER_KEYS_MAX; i++) {
        char name[20];
        str_fmt(name, sizeof(name), "202611%02dT000000Z", i + 5);
        ck_assert_str_eq(keys[i].name, name);
    }
    ck_assert_uint_eq(parse("null", keys, &bad), 0);
    ck_assert_uint_eq(parse("[1]", keys, &bad), 0);
}
END_TEST

/* Keys a, b, c made at these hours; at an hour, the trusted ones with the issuing one first, and the next change. */
static void assert_selected(const char *what, const double made[], size_t n, double at, const char *want, double next)
{
    struct master_key keys[MASTER_KEYS_MAX] = { { .time_ms = 0 } };
    struct master_key_set got;
    char text[MASTER_KEYS_MAX + 1] = "";
    const int64_t t0 = time_parse("2026-11-23T10:00:00Z");
    for (size_t i = 0; i < n; i++)
        keys[i].time_ms = t0 + (int64_t)(made[i] * 3600000);
    master_keys_select(keys, n, DAY_MS, t0 + (int64_t)(at * 3600000), &got);
    for (size_t i = 0; i < got.n; i++)
        text[i] = (char)('a' + (got.keys[i] - keys));
    ck_assert_msg(strcmp(text, want) == 0, "%s, at %.2f: '%s', not '%s'", what, at, text, want);
    double is = got.until_ms == 0 ? 0 : (double)(got.until_ms - t0) / 3600000;
    ck_assert_msg(is > next - 0.001 && is < next + 0.001, "%s, at %.2f: until %.3f, not %.3f", what, at, is, next);
}

START_TEST(the_phases_of_a_key)
{
    static const double ONE[] = { 0 }, TWO[] = { 0, 100 }, THREE[] = { 0, 100, 110 };
    const double sixth = 1.0 / 6; /* 10 min */
    assert_selected("none", ONE, 0, 0, "", 0);
    assert_selected("the only one issues at once", ONE, 1, 0, "a", 0);
    assert_selected("whatever the clock says", ONE, 1, -50, "a", 0);
    assert_selected("a new one is trusted", TWO, 2, 100, "ab", 100 + sixth);
    assert_selected("even before its time", TWO, 2, 99, "ab", 100 + sixth);
    assert_selected("it issues after 10 min", TWO, 2, 100.2, "ba", 125 + sixth);
    assert_selected("the old one is trusted for 25 h", TWO, 2, 125.1, "ba", 125 + sixth);
    assert_selected("then it is not", TWO, 2, 125.2, "b", 0);
    assert_selected("three", THREE, 3, 105, "bca", 110 + sixth);
    assert_selected("the third issues", THREE, 3, 111, "cba", 125 + sixth);
    assert_selected("the first is over", THREE, 3, 126, "cb", 135 + sixth);
    assert_selected("the second is over", THREE, 3, 136, "c", 0);
    assert_selected("the clock jumps back", THREE, 3, 1, "acb", 100 + sixth);
}
END_TEST

/* ---- with an API server ---- */

struct world {
    struct fake_api *api;
    struct kubeconfig *config;
    struct loop *loop;
    struct kube_client *client;
    struct master_keys *keys;
    int changes;
};

static void on_change(void *user)
{
    ((struct world *)user)->changes++;
}

static void world_init(struct world *w)
{
    *w = (struct world){ .api = fake_api_new(), .loop = loop_new() };
    w->config = fake_api_config(w->api, NULL);
    w->client =
        kube_client_new(w->loop, w->config, &(struct kube_settings){ .user_agent = "test", .field_manager = "test" });
}

static void begin(struct world *w)
{
    w->keys = master_keys_new(
        w->client, &(struct master_keys_settings){ .lifetime_ms = 60000, .on_change = on_change, .user = w });
}

static void world_fini(struct world *w)
{
    master_keys_free(w->keys);
    kube_client_free(w->client);
    kubeconfig_free(w->config);
    loop_free(w->loop);
    fake_api_free(w->api);
}
DEFINE_AUTO_FINI(world, world_fini);

static bool has_changed(void *user)
{
    return ((struct world *)user)->changes > 0;
}

static struct master_key_set trusted(const struct world *w)
{
    struct master_key_set s;
    master_keys_trusted(w->keys, kube_client_time(w->client), &s);
    return s;
}

static void on(struct world *w, const char *method, const char *pattern, struct fake_answer a)
{
    fake_api_on(w->api, method, pattern, &a);
}

START_TEST(the_secret_is_read)
{
    AUTO_FINI(world) w;
    world_init(&w);
    on(&w, "GET", SECRET, (struct fake_answer){ .body = "{\"data\":{\"20261123T100000Z\":\"" KEY_A "\"}}" });
    begin(&w);
    ck_assert_uint_eq(trusted(&w).n, 0);
    fake_until(w.loop, has_changed, &w);
    ck_assert_uint_eq(trusted(&w).n, 1);
    ck_assert_int_eq(trusted(&w).keys[0]->bytes[0], 'A');
    ck_assert_uint_eq(fake_api_count(w.api, "POST", "*"), 0);
    /* it is read again, and an unchanged Secret is not reported */
    fake_api_wait(w.api, w.loop, "GET", SECRET, 3);
    ck_assert_int_eq(w.changes, 1);
}
END_TEST

struct kept {
    char body[2000];
};

static int keep(void *user, const struct fake_request *r, struct buf *body)
{
    struct kept *k = user;
    str_fmt(k->body, sizeof(k->body), "%s", r->body);
    buf_str(body, "{}");
    return 201;
}

static int give(void *user, const struct fake_request *r, struct buf *body)
{
    (void)r;
    buf_str(body, ((struct kept *)user)->body);
    return 200;
}

START_TEST(it_is_made_when_it_is_absent)
{
    AUTO_FINI(world) w;
    struct kept kept = { .body = "" };
    struct fake_request r;
    world_init(&w);
    on(&w, "GET", SECRET, (struct fake_answer){ .status = 404, .times = 1 });
    on(&w, "POST", POSTS, (struct fake_answer){ .handle = keep, .user = &kept });
    on(&w, "GET", SECRET, (struct fake_answer){ .handle = give, .user = &kept });
    begin(&w);
    fake_until(w.loop, has_changed, &w);
    ck_assert_uint_eq(trusted(&w).n, 1);
    ck_assert_uint_eq(fake_api_count(w.api, "POST", POSTS), 1);
    ck_assert(fake_api_request(w.api, "POST", POSTS, 0, &r));
    ck_assert_msg(strstr(r.body, "\"name\":\"trainyard-master-key\"") != NULL, "%s", r.body);
}
END_TEST

/* Two operators: the one that was faster wins. */
START_TEST(what_another_has_made_counts)
{
    AUTO_FINI(world) w;
    world_init(&w);
    on(&w, "GET", SECRET, (struct fake_answer){ .status = 404, .times = 1 });
    on(&w, "POST", POSTS, (struct fake_answer){ .status = 409, .body = "{\"reason\":\"AlreadyExists\"}" });
    on(&w, "GET", SECRET, (struct fake_answer){ .body = "{\"data\":{\"20261123T100000Z\":\"" KEY_B "\"}}" });
    begin(&w);
    fake_until(w.loop, has_changed, &w);
    ck_assert_int_eq(trusted(&w).keys[0]->bytes[0], 'B');
}
END_TEST

/* The jobs that run have certificates of these keys. */
START_TEST(a_deleted_secret_is_made_again_with_the_same_keys)
{
    AUTO_FINI(world) w;
    struct kept kept = { .body = "" };
    world_init(&w);
    on(&w, "GET", SECRET,
       (struct fake_answer){ .body = "{\"data\":{\"20261123T100000Z\":\"" KEY_A "\"}}", .times = 1 });
    on(&w, "GET", SECRET, (struct fake_answer){ .status = 404, .times = 1 });
    on(&w, "POST", POSTS, (struct fake_answer){ .handle = keep, .user = &kept });
    on(&w, "GET", SECRET, (struct fake_answer){ .handle = give, .user = &kept });
    begin(&w);
    fake_api_wait(w.api, w.loop, "GET", SECRET, 3);
    ck_assert_msg(strstr(kept.body, "\"20261123T100000Z\":\"" KEY_A "\"") != NULL, "%s", kept.body);
    ck_assert_uint_eq(trusted(&w).n, 1);
    ck_assert_int_eq(w.changes, 1);
}
END_TEST

START_TEST(faults_are_errors)
{
    static const struct {
        struct fake_answer answer;
        const char *words;
    } CASES[] = {
        { { .status = 403, .body = "{\"message\":\"secrets is forbidden\"}" },
          "cannot read Secret default/trainyard-master-key with the master keys: secrets is forbidden; the chart and "
          "deploy/rbac grant this right" },
        { { .body = "{\"data\":{\"x\":\"eA==\"}}" }, "Secret default/trainyard-master-key has no valid master key" },
        { { .body = "{}" }, "Secret default/trainyard-master-key has no valid master key" },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        AUTO_FINI(world) w;
        world_init(&w);
        on(&w, "GET", SECRET, CASES[i].answer);
        begin(&w);
        ck_assert_ptr_null(master_keys_fault(w.keys));
        fake_until(w.loop, has_changed, &w);
        ck_assert_msg(strstr(master_keys_fault(w.keys), CASES[i].words) != NULL, "%s", master_keys_fault(w.keys));
        ck_assert_uint_eq(fake_api_count(w.api, "POST", "*"), 0);
    }
}
END_TEST

/* A moment without the right to read harms nobody. */
START_TEST(known_keys_survive_a_fault)
{
    AUTO_FINI(world) w;
    world_init(&w);
    on(&w, "GET", SECRET,
       (struct fake_answer){ .body = "{\"data\":{\"20261123T100000Z\":\"" KEY_A "\"}}", .times = 1 });
    on(&w, "GET", SECRET, (struct fake_answer){ .body = "{\"data\":{}}", .times = 1 });
    on(&w, "GET", SECRET,
       (struct fake_answer){ .body = "{\"data\":{\"20261123T100000Z\":\"" KEY_A "\",\"20261123T110000Z\":\"" KEY_B
                                     "\"}}" });
    begin(&w);
    fake_api_wait(w.api, w.loop, "GET", SECRET, 3);
    ck_assert_uint_ge(trusted(&w).n, 1);
    fake_api_wait(w.api, w.loop, "GET", SECRET, 4);
    ck_assert_ptr_null(master_keys_fault(w.keys));
    ck_assert_uint_ge(master_keys_version(w.keys), 3);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("master_key");
    TCase *t = tcase_create("master_key");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, entries_are_read_in_the_order_of_their_times);
    tcase_add_test(t, entries_that_are_not_keys_are_named);
    tcase_add_test(t, the_newest_eight_count);
    tcase_add_test(t, the_phases_of_a_key);
    tcase_add_test(t, the_secret_is_read);
    tcase_add_test(t, it_is_made_when_it_is_absent);
    tcase_add_test(t, what_another_has_made_counts);
    tcase_add_test(t, a_deleted_secret_is_made_again_with_the_same_keys);
    tcase_add_test(t, faults_are_errors);
    tcase_add_test(t, known_keys_survive_a_fault);
    suite_add_tcase(s, t);
    return s;
}
