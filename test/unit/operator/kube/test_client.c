#include "check_main.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "kube/client_internal.h"
#include "kube/kubeconfig_parse.h"
#include "net/registry.h"
#include "test/fake/api_server.h"

static const struct kube_resource PODS = { "", "v1", "pods", "Pod" },
                                  JOBS = { "kubeflow.org", "v1", "tfjobs", "TFJob" };

/* ---- decisions ---- */

START_TEST(paths)
{
    static const struct {
        const struct kube_resource *r;
        const char *ns, *name, *sub, *path;
        bool list;
    } CASES[] = {
        { &PODS, NULL, NULL, NULL, "/api/v1/pods", true },
        { &PODS, "a", NULL, NULL, "/api/v1/namespaces/a/pods", true },
        { &PODS, "a", "b", NULL, "/api/v1/namespaces/a/pods/b", false },
        { &JOBS, NULL, NULL, NULL, "/apis/kubeflow.org/v1/tfjobs", true },
        { &JOBS, "a", NULL, NULL, "/apis/kubeflow.org/v1/namespaces/a/tfjobs", true },
        { &JOBS, "a", "b/c d", NULL, "/apis/kubeflow.org/v1/namespaces/a/tfjobs/b%2Fc%20d", false },
    };
    AUTO_FINI(buf) path = BUF_INIT;

    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        buf_clear(&path);
        kube_path(&path, CASES[i].r, CASES[i].ns, CASES[i].name, CASES[i].sub);
        ck_assert_str_eq(path.data, CASES[i].path);
        ck_assert_int_eq(kube_path_is_list(path.data), CASES[i].list);
        kube_query(&path, "labelSelector", "a=b,c in (d)");
        kube_query(&path, "limit", "5");
        ck_assert_int_eq(kube_path_is_list(path.data), CASES[i].list);
    }
    ck_assert(str_ends(path.data, "?labelSelector=a%3Db%2Cc%20in%20%28d%29&limit=5"));
    buf_clear(&path);
    kube_path(&path, &JOBS, "a", "b", "status");
    ck_assert_str_eq(path.data, "/apis/kubeflow.org/v1/namespaces/a/tfjobs/b/status");
}
END_TEST

START_TEST(a_bucket_gives_its_burst_and_then_its_rate)
{
    struct bucket b = bucket_of(20, 3, 1000), none = bucket_of(0, 0, 1000);

    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(bucket_take(&b, 1000), 0);
    ck_assert_int_eq(bucket_take(&b, 1000), 50);
    ck_assert_int_eq(bucket_take(&b, 1030), 20);
    ck_assert_int_eq(bucket_take(&b, 1050), 0);
    ck_assert_int_eq(bucket_take(&b, 1050), 50);
    for (int i = 0; i < 3; i++) /* an hour later it is full, and no fuller */
        ck_assert_int_eq(bucket_take(&b, 3600000), 0);
    ck_assert_int_eq(bucket_take(&b, 3600000), 50);
    ck_assert_int_gt(bucket_take(&b, 0), 0); /* a clock that stands still */
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(bucket_take(&none, 1000), 0);
}
END_TEST

START_TEST(a_window_halves_when_refused_and_grows_by_rounds)
{
    struct concurrency_limit w = concurrency_limit_of(64);

    ck_assert(!concurrency_limit_answer(&w, 201, 1, 0, 1));
    ck_assert_int_eq(concurrency_limit_now(&w), 64);
    ck_assert(concurrency_limit_answer(&w, 429, 48, 5, 10)); /* of the requests that were running, not of the limit */
    ck_assert_int_eq(concurrency_limit_now(&w), 24);
    ck_assert(!concurrency_limit_answer(&w, 429, 47, 10, 11)); /* sent with the first */
    ck_assert_int_eq(concurrency_limit_now(&w), 24);
    for (int i = 0; i < 25; i++)
        ck_assert(
            !concurrency_limit_answer(&w, i % 2 == 0 ? 200 : 409, 24, 11, 12)); /* a conflict was accepted as well */
    ck_assert_int_eq(concurrency_limit_now(&w), 25);
    ck_assert(!concurrency_limit_answer(&w, 0, 24, 11, 12)); /* no answer changes nothing */
    for (int64_t now = 20; now < 40; now += 2)
        ck_assert(concurrency_limit_answer(&w, 429, 60, now, now + 1));
    ck_assert_int_eq(concurrency_limit_now(&w), 1);
    for (int i = 0; i < 10000; i++)
        concurrency_limit_answer(&w, 200, 1, 50, 51);
    ck_assert_int_eq(concurrency_limit_now(&w), 64);
}
END_TEST

START_TEST(pauses_grow_and_obey_the_server)
{
    static const int64_t WANT[] = { 100, 200, 400, 800, 1600, 3200, 5000, 5000 };

    for (int i = 0; i < (int)COUNT_OF(WANT); i++) {
        ck_assert_int_eq(retry_pause_ms(i + 1, 0, 0.5), WANT[i]);
        ck_assert_int_eq(retry_pause_ms(i + 1, 0, 0), WANT[i] * 3 / 4);
        ck_assert_int_le(retry_pause_ms(i + 1, 0, 0.999999), WANT[i] * 5 / 4);
    }
    ck_assert_int_eq(retry_pause_ms(1000000, 0, 0.5), 5000);
    ck_assert_int_eq(retry_pause_ms(1, 3, 0.5), 3000);
    ck_assert_int_eq(retry_pause_ms(7, 1, 0.5), 5000);
    ck_assert_int_eq(retry_pause_ms(1, 1e18, 0.5), 60000);
}
END_TEST

START_TEST(what_may_be_tried_again)
{
    struct err lost = { .code = ERR_LOST }, late = { .code = ERR_TIMEOUT }, bad = { .code = ERR_INPUT };
    const struct {
        struct http_answer a;
        bool want;
    } CASES[] = {
        { { .status = 0, .err = &lost }, true },
        { { .status = 0, .err = &late }, true },
        { { .status = 0, .err = &bad }, false },
        { { .status = 429 }, true },
        { { .status = 503, .retry_after_s = 1 }, true },
        { { .status = 500, .retry_after_s = 1 }, true },
        { { .status = 503 }, false },
        { { .status = 500 }, false },
        { { .status = 404, .retry_after_s = 1 }, false },
        { { .status = 409 }, false },
        { { .status = 401 }, false },
        { { .status = 200 }, false },
    };

    for (size_t i = 0; i < COUNT_OF(CASES); i++)
        ck_assert_msg(retry_wanted(&CASES[i].a) == CASES[i].want, "case %zu, status %d", i, CASES[i].a.status);
}
END_TEST

START_TEST(delete_options)
{
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *all = kube_delete_options("u-1", 17, 0), *none = kube_delete_options(NULL, 17, -1);

    json_emit(all, &text);
    ck_assert_str_eq(text.data,
                     "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"propagationPolicy\":\"Background\","
                     "\"preconditions\":{\"uid\":\"u-1\",\"resourceVersion\":\"17\"},\"gracePeriodSeconds\":0}");
    ck_assert_ptr_null(json_object_get(none, "preconditions"));
    ck_assert_ptr_null(json_object_get(none, "gracePeriodSeconds"));
}
END_TEST

/* ---- with a server ---- */

struct world {
    struct fake_api *api;
    struct loop *l;
    struct kubeconfig *config;
    struct registry *registry;
    struct kube_client *k;
};

static void world_fini(struct world *w)
{
    kube_client_free(w->k);
    kubeconfig_free(w->config);
    registry_free(w->registry);
    loop_free(w->l);
    fake_api_free(w->api);
}
DEFINE_AUTO_FINI(world, world_fini);

static struct world world(struct kube_settings s)
{
    struct world w = { .api = fake_api_new(), .l = loop_new(), .registry = registry_new() };

    fake_api_share_clock(w.api, w.l);
    w.config = fake_api_config(w.api, "secret");
    s.registry = w.registry;
    s.field_manager = "tester";
    s.user_agent = "tests/1";
    w.k = kube_client_new(w.l, w.config, &s);
    return w;
}

struct got {
    struct world *w;
    int done, status;
    enum err_code code;
    char reason[64], message[ERR_TEXT_MAX], name[64];
    struct kube_call *cancel; /* by done(), or by on_line() */
    bool free_client, sent;
    struct buf lines;
};

static bool is_done(void *user)
{
    return ((struct got *)user)->done > 0;
}

static void done(void *user, const struct kube_answer *a)
{
    struct got *g = user;
    const char *name = json_string_value(json_at(a->body, "metadata.name"));

    ck_assert(g->sent); /* never from within kube_send */
    g->done++;
    g->status = a->status;
    g->code = a->err != NULL ? a->err->code : ERR_NONE;
    str_fmt(g->reason, sizeof(g->reason), "%s", a->reason);
    str_fmt(g->message, sizeof(g->message), "%s", a->message);
    str_fmt(g->name, sizeof(g->name), "%s", name != NULL ? name : "");
    kube_cancel(g->cancel);
    if (g->free_client)
        kube_client_free(TAKE(g->w->k));
}

static struct kube_call *send(struct world *w, struct got *g, struct kube_request r)
{
    r.done = done;
    r.user = g;
    g->w = w;
    struct kube_call *c = kube_send(w->k, &r);
    g->sent = true;
    return c;
}

START_TEST(each_verb_is_sent_as_the_server_wants_it)
{
    static const struct {
        enum kube_verb verb;
        const char *method, *path, *type;
    } CASES[] = {
        { KUBE_GET, "GET", "/x", "" },
        { KUBE_CREATE, "POST", "/x?fieldManager=tester", "application/json" },
        { KUBE_MERGE_PATCH, "PATCH", "/x?fieldManager=tester", "application/merge-patch+json" },
        { KUBE_STRATEGIC_PATCH, "PATCH", "/x?fieldManager=tester", "application/strategic-merge-patch+json" },
        { KUBE_JSON_PATCH, "PATCH", "/x?fieldManager=tester", "application/json-patch+json" },
        { KUBE_DELETE, "DELETE", "/x", "application/json" },
        { KUBE_UPDATE, "PUT", "/x?fieldManager=tester", "application/json" },
    };
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct fake_request r;
    char value[256];

    fake_api_on(w.api, "*", "*", &(struct fake_answer){ .body = "{\"metadata\":{\"name\":\"it\"}}" });
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct got g = { .done = 0 };
        json_auto_t *body = CASES[i].verb == KUBE_GET ? NULL : json_pack("{s:i}", "a", 1);
        send(&w, &g, (struct kube_request){ .verb = CASES[i].verb, .path = "/x", .body = body });
        fake_until(w.l, is_done, &g);
        ck_assert_int_eq(g.status, 200);
        ck_assert_str_eq(g.name, "it");
        ck_assert(fake_api_request(w.api, "*", "*", i, &r));
        ck_assert_str_eq(r.method, CASES[i].method);
        ck_assert_str_eq(r.path, CASES[i].path);
        ck_assert_str_eq(r.body, body != NULL ? "{\"a\":1}" : "");
        ck_assert_str_eq(fake_header(&r, "content-type", value), CASES[i].type);
        ck_assert_str_eq(fake_header(&r, "authorization", value), "Bearer secret");
        ck_assert_str_eq(fake_header(&r, "user-agent", value), "tests/1");
        ck_assert_str_eq(fake_header(&r, "accept", value), "application/json");
    }
}
END_TEST

START_TEST(metadata_only_asks_for_lists_and_objects_in_their_own_words)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct got list = { .done = 0 }, object = { .done = 0 };
    struct fake_request r;
    char value[256];

    send(&w, &list, (struct kube_request){ .path = "/api/v1/pods?limit=1", .metadata_only = true });
    send(&w, &object, (struct kube_request){ .path = "/api/v1/namespaces/a/pods/b", .metadata_only = true });
    fake_until(w.l, is_done, &list);
    fake_until(w.l, is_done, &object);
    ck_assert(fake_api_request(w.api, "GET", "/api/v1/pods*", 0, &r));
    ck_assert_str_eq(fake_header(&r, "accept", value),
                     "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json");
    ck_assert(fake_api_request(w.api, "GET", "*/b", 0, &r));
    ck_assert_str_eq(fake_header(&r, "accept", value),
                     "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
}
END_TEST

START_TEST(refusals_have_reason_and_message)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct got g = { .done = 0 }, text = { .done = 0 };

    fake_api_on(
        w.api, "POST", "/x*",
        &(struct fake_answer){
            .status = 409,
            .body =
                "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"pods \\\"x\\\" already exists\"}" });
    fake_api_on(w.api, "GET", "/y", &(struct fake_answer){ .status = 502, .body = "bad gateway" });
    send(&w, &g, (struct kube_request){ .verb = KUBE_CREATE, .path = "/x" });
    send(&w, &text, (struct kube_request){ .path = "/y" });
    fake_until(w.l, is_done, &g);
    fake_until(w.l, is_done, &text);
    ck_assert_int_eq(g.status, 409);
    ck_assert_str_eq(g.reason, "AlreadyExists");
    ck_assert_str_eq(g.message, "pods \"x\" already exists");
    ck_assert_int_eq(text.status, 502);
    ck_assert_str_eq(text.message, "bad gateway");
}
END_TEST

/* A proxy on the way does not answer as an API server does: there is a message all the same, of limited length. */
START_TEST(refusals_without_words_get_some)
{
    static const struct {
        const char *body, *want; /* the message, or how it begins */
        size_t most;
    } CASES[] = {
        { "", "the API server answered with status 503 and no message", 100 },
        { "{}", "{}", 2 },
        { "\n <html>\r\n<b>Busy\xff</b>\n", "<html>  <b>Busy </b>", 20 },
        { NULL, "xxxxxxxx", 299 },
    };
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    char page[5000];

    memset(page, 'x', sizeof(page) - 1);
    page[sizeof(page) - 1] = '\0';
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct got g = { .done = 0 };
        fake_api_on(w.api, "GET", "/x",
                    &(struct fake_answer){ .status = 503, .body = CASES[i].body != NULL ? CASES[i].body : page });
        send(&w, &g, (struct kube_request){ .path = "/x" });
        fake_until(w.l, is_done, &g);
        ck_assert_msg(str_starts(g.message, CASES[i].want) && strlen(g.message) <= CASES[i].most, "'%s'", g.message);
    }
}
END_TEST

/* ---- retries ---- */

static const struct fake_answer PASSING[] = {
    { .status = 429, .body = "{\"reason\":\"TooManyRequests\"}", .times = 2 },
    { .status = 503, .headers = "Retry-After: 1\r\n", .times = 1 },
    { .drop = true, .times = 2 },
    { .body = "{\"metadata\":{}}", .cut = 3, .times = 1 },
    { .silent = true, .times = 1 },
};

START_TEST(passing_trouble_is_overcome)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct got g = { .done = 0 };
    const struct fake_answer *trouble = &PASSING[_i];
    int64_t began = loop_now(w.l);

    fake_api_on(w.api, "POST", "/x*", trouble);
    fake_api_on(w.api, "POST", "/x*",
                &(struct fake_answer){ .status = 201, .body = "{\"metadata\":{\"name\":\"it\"}}" });
    json_auto_t *body = json_pack("{s:i}", "a", 1);
    send(&w, &g,
         (struct kube_request){
             .verb = KUBE_CREATE, .path = "/x", .body = body, .timeout_ms = trouble->silent ? 1000 : 0 });
    ck_assert_uint_eq(kube_pending(w.k, KUBE_URGENT), 1); /* the zero priority */
    fake_until(w.l, is_done, &g);
    ck_assert_int_eq(g.status, 201);
    ck_assert_str_eq(g.name, "it");
    ck_assert_uint_eq(fake_api_count(w.api, "POST", "/x*"), (size_t)trouble->times + 1);
    ck_assert_uint_eq(kube_pending(w.k, KUBE_URGENT), 0);
    if (trouble->headers != NULL)
        ck_assert_int_ge(loop_now(w.l) - began, 1000);
}
END_TEST

START_TEST(lasting_trouble_is_told_after_its_time)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct got g = { .done = 0 }, once = { .done = 0 }, lost = { .done = 0 };

    fake_api_on(w.api, "*", "/busy", &(struct fake_answer){ .status = 429 });
    fake_api_on(w.api, "*", "/drop", &(struct fake_answer){ .drop = true });
    send(&w, &g, (struct kube_request){ .path = "/busy", .retry_ms = 500 });
    send(&w, &once, (struct kube_request){ .path = "/drop", .retry_ms = -1 });
    fake_until(w.l, is_done, &g);
    fake_until(w.l, is_done, &once);
    ck_assert_int_eq(g.status, 429);
    size_t tries = fake_api_count(w.api, "*", "/busy");
    ck_assert(tries >= 2 && tries <= 4);
    ck_assert_int_eq(once.code, ERR_LOST);
    ck_assert_uint_eq(fake_api_count(w.api, "*", "/drop"), 1);
    ck_assert_msg(strstr(once.message, fake_api_url(w.api)) != NULL, "%s", once.message);
    fake_api_refuse(w.api, true);
    send(&w, &lost, (struct kube_request){ .path = "/x", .retry_ms = 300 });
    fake_until(w.l, is_done, &lost);
    ck_assert_int_eq(lost.status, 0);
    ck_assert_int_eq(lost.code, ERR_LOST);
}
END_TEST

/* 401 is about the token: one more try with a new token, then the caller gets the error. */
START_TEST(a_refused_token_is_tried_once_more)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct got passing = { .done = 0 }, lasting = { .done = 0 };

    fake_api_on(w.api, "*", "/passing", &(struct fake_answer){ .status = 401, .times = 1 });
    fake_api_on(w.api, "*", "/passing", &(struct fake_answer){ .body = "{}" });
    fake_api_on(w.api, "*", "/lasting", &(struct fake_answer){ .status = 401 });
    send(&w, &passing, (struct kube_request){ .path = "/passing" });
    send(&w, &lasting, (struct kube_request){ .path = "/lasting" });
    fake_until(w.l, is_done, &passing);
    fake_until(w.l, is_done, &lasting);
    ck_assert_int_eq(passing.status, 200);
    ck_assert_int_eq(lasting.status, 401);
    ck_assert_uint_eq(fake_api_count(w.api, "*", "/lasting"), 2);
}
END_TEST

/* As with SIGSTOP: a request ends by its time limit, is sent again, and is answered when the server continues. */
START_TEST(a_server_that_stands_still_and_goes_on)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct got first = { .done = 0 }, g = { .done = 0 };

    fake_api_on(w.api, "*", "*", &(struct fake_answer){ .body = "{}" });
    send(&w, &first, (struct kube_request){ .path = "/first" });
    fake_until(w.l, is_done, &first);
    fake_api_freeze(w.api, true);
    send(&w, &g, (struct kube_request){ .path = "/x", .timeout_ms = 200 });
    fake_pass(w.l, 500);
    ck_assert_int_eq(g.done, 0);
    fake_api_freeze(w.api, false);
    fake_until(w.l, is_done, &g);
    ck_assert_int_eq(g.status, 200);
}
END_TEST

/* ---- order and rate ---- */

static bool is_idle(void *user)
{
    const struct world *w = user;
    size_t n = 0;
    for (int u = 0; u < KUBE_PRIORITIES; u++)
        n += kube_pending(w->k, (enum kube_priority)u);
    return n == 0;
}

START_TEST(urgent_goes_first_and_background_last)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .at_once = 1 });
    struct got g[6] = { { .done = 0 } };
    static const enum kube_priority URGENCY[] = { KUBE_BACKGROUND, KUBE_NORMAL, KUBE_BACKGROUND,
                                                  KUBE_NORMAL,     KUBE_URGENT, KUBE_NORMAL };
    static const char *const WANT[] = { "/4", "/1", "/3", "/5", "/0", "/2" };

    fake_api_on(w.api, "*", "/1",
                &(struct fake_answer){ .body = "{}", .delay_ms = 500 }); /* the urgent one is sent meanwhile */
    fake_api_on(w.api, "*", "*", &(struct fake_answer){ .body = "{}" });
    for (int i = 0; i < 6; i++) {
        char path[8];
        str_fmt(path, sizeof(path), "/%d", i);
        send(&w, &g[i], (struct kube_request){ .path = path, .priority = URGENCY[i] });
    }
    ck_assert_uint_eq(kube_pending(w.k, KUBE_NORMAL), 3);
    fake_until(w.l, is_idle, &w);
    size_t at[2] = { 0, 0 };
    for (size_t i = 0; i < 6; i++) { /* the urgent one has its own connection: in any order with the first */
        struct fake_request r;
        ck_assert(fake_api_request(w.api, "*", "*", i, &r));
        if (strcmp(r.path, "/4") == 0)
            at[0] = i;
        else
            ck_assert_str_eq(r.path, WANT[++at[1]]);
    }
    ck_assert_uint_le(at[0], 1);
}
END_TEST

/* A request that is to be retried later does not go to the end of the queue, behind those that arrived meanwhile. */
START_TEST(what_is_tried_again_keeps_its_place)
{
    static const char *const WANT[] = { "/a", "/b", "/a", "/c" };
    AUTO_FINI(world) w = world((struct kube_settings){ .at_once = 1 });
    struct got g[3] = { { .done = 0 } };

    fake_api_on(w.api, "*", "*", &(struct fake_answer){ .body = "{}" });
    fake_api_on(w.api, "*", "/a", &(struct fake_answer){ .status = 429, .times = 1 });
    fake_api_on(w.api, "*", "/b", &(struct fake_answer){ .body = "{}", .delay_ms = 600 });
    for (int i = 0; i < 3; i++)
        send(&w, &g[i],
             (struct kube_request){ .path = (const char *[]){ "/a", "/b", "/c" }[i], .priority = KUBE_NORMAL });
    fake_until(w.l, is_idle, &w);
    for (size_t i = 0; i < COUNT_OF(WANT); i++) {
        struct fake_request r;
        ck_assert(fake_api_request(w.api, "*", "*", i, &r));
        ck_assert_str_eq(r.path, WANT[i]);
    }
}
END_TEST

START_TEST(the_refused_do_not_all_come_back_together)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .at_once = 8 });
    struct got g[8] = { { .done = 0 } };

    fake_api_on(w.api, "*", "*", &(struct fake_answer){ .status = 429, .delay_ms = 300, .times = 8 });
    fake_api_on(w.api, "*", "*", &(struct fake_answer){ .silent = true });
    for (size_t i = 0; i < COUNT_OF(g); i++)
        send(&w, &g[i], (struct kube_request){ .path = "/x", .priority = KUBE_NORMAL });
    fake_api_wait(w.api, w.l, "*", "*", 12);
    fake_pass(w.l, 500); /* all delays are over */
    ck_assert_uint_eq(fake_api_count(w.api, "*", "*"), 12);
    ck_assert(!kube_has_room(w.k));
}
END_TEST

START_TEST(the_rate_is_kept_by_all_but_leases)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 5, .burst = 2 });
    struct got g[8] = { { .done = 0 } }, lease = { .done = 0 };
    int64_t began = loop_now(w.l);
    AUTO_FINI(buf) metrics = BUF_INIT;

    fake_api_on(w.api, "*", "*", &(struct fake_answer){ .body = "{}" });
    for (int i = 0; i < 8; i++)
        send(&w, &g[i], (struct kube_request){ .path = "/x", .priority = KUBE_NORMAL });
    send(&w, &lease, (struct kube_request){ .path = "/lease", .priority = KUBE_URGENT });
    fake_until(w.l, is_done, &lease);
    ck_assert_uint_le(fake_api_count(w.api, "*", "/x"), 7);
    fake_until(w.l, is_idle, &w);
    ck_assert_int_ge(loop_now(w.l) - began, 6 * 200 - 1);
    registry_emit(w.registry, &metrics);
    ck_assert_ptr_nonnull(strstr(metrics.data, "rest_client_rate_limiter_duration_seconds_count{verb=\"GET\""));
    ck_assert_ptr_nonnull(
        strstr(metrics.data, "rest_client_requests_total{code=\"200\",method=\"GET\",host=\"127.0.0.1:"));
    ck_assert_ptr_nonnull(strstr(metrics.data, "rest_client_request_duration_seconds_count{verb=\"GET\""));
}
END_TEST

/* ---- what callbacks may do ---- */

START_TEST(a_callback_may_cancel_others_and_free_the_client)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct got g = { .done = 0 }, silent = { .done = 0 }, paused = { .done = 0 }, waits = { .done = 0 };

    fake_api_on(w.api, "*", "/silent", &(struct fake_answer){ .silent = true });
    fake_api_on(w.api, "*", "/paused", &(struct fake_answer){ .status = 429, .headers = "Retry-After: 60\r\n" });
    fake_api_on(w.api, "*", "/x", &(struct fake_answer){ .body = "{}", .delay_ms = 50 });
    g.cancel = send(&w, &silent, (struct kube_request){ .path = "/silent" });
    send(&w, &paused, (struct kube_request){ .path = "/paused", .retry_ms = 600000 });
    fake_api_wait(w.api, w.l, "*", "/silent", 1);
    fake_api_wait(w.api, w.l, "*", "/paused", 1);
    send(&w, &g, (struct kube_request){ .path = "/x" });
    fake_api_wait(w.api, w.l, "*", "/x", 1);
    kube_cancel(send(&w, &waits, (struct kube_request){ .path = "/waits" }));
    g.free_client = true;
    fake_until(w.l, is_done, &g);
    ck_assert_int_eq(silent.done + paused.done + waits.done, 0);
    ck_assert_uint_eq(fake_api_count(w.api, "*", "/waits"), 0);
}
END_TEST

/* A plugin that prints credentials and counts its calls: each adds a byte to the file beside it. */
struct plugin {
    char path[64], calls[80];
};

static void plugin_fini(struct plugin *p)
{
    unlink(p->path);
    unlink(p->calls);
}
DEFINE_AUTO_FINI(plugin, plugin_fini);

static void store(const char *path, const char *text)
{
    struct err e = { .code = ERR_NONE };
    ck_ok_e(file_write(path, text, strlen(text), &e));
}

/* The world's client, with credentials of the plugin instead. status: that of its answer; "$n" is the number of the
 * call. */
static struct plugin with_plugin(struct world *w, const char *status)
{
    struct plugin p = { .path = "/tmp/test-client-XXXXXX" };
    struct err e = { .code = ERR_NONE };
    AUTO_FINI(buf) text = BUF_INIT;
    int fd = mkstemp(p.path);

    ck_assert_int_ge(fd, 0);
    close(fd);
    str_fmt(p.calls, sizeof(p.calls), "%s.calls", p.path);
    buf_printf(&text,
               "current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, "
               "cluster: {server: \"%s\"}}]\n"
               "users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, "
               "command: %s}}}]\n",
               fake_api_url(w->api), p.path);
    store(p.path, text.data);
    kube_client_free(TAKE(w->k));
    kubeconfig_free(TAKE(w->config));
    ck_ok_e(kubeconfig_load(p.path, NULL, &w->config, &e));
    buf_clear(&text);
    buf_printf(&text,
               "#!/bin/sh\nprintf x >>%s\nn=$(wc -c <%s)\ncat "
               "<<END\n{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
               "v1\",\"status\":{%s}}\nEND\n",
               p.calls, p.calls, status);
    store(p.path, text.data);
    ck_assert_int_eq(chmod(p.path, 0700), 0);
    w->k = kube_client_new(w->l, w->config, &(struct kube_settings){ .qps = 0 });
    return p;
}

static uint64_t calls_of(const struct plugin *p)
{
    struct err e = { .code = ERR_NONE };
    uint64_t n = 0;
    ck_ok_e(file_size(p->calls, &n, &e));
    return n;
}

/* Many requests are refused at the same moment: one new token is enough for all of them. */
START_TEST(a_token_is_asked_for_anew_once)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    AUTO_FINI(plugin) p = with_plugin(&w, "\"token\":\"t$n\"");
    struct got g[5] = { { .done = 0 } };

    fake_api_on(w.api, "*", "/x", &(struct fake_answer){ .status = 401, .delay_ms = 50, .times = COUNT_OF(g) });
    fake_api_on(w.api, "*", "/x", &(struct fake_answer){ .body = "{}" });
    for (size_t i = 0; i < COUNT_OF(g); i++)
        send(&w, &g[i], (struct kube_request){ .path = "/x" });
    for (size_t i = 0; i < COUNT_OF(g); i++) {
        fake_until(w.l, is_done, &g[i]);
        ck_assert_int_eq(g[i].status, 200);
    }
    ck_assert_uint_eq(calls_of(&p), 2);
}
END_TEST

/* New certificates close all connections. Requests on them fail, and their callbacks may cancel the request that caused
 * it. */
START_TEST(a_request_may_be_cancelled_by_those_that_lose_their_connection)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    AUTO_FINI(plugin) p = with_plugin(&w, "\"clientCertificateData\":\"c$n\",\"clientKeyData\":\"k\"");
    struct got old = { .done = 0 }, next = { .done = 0 }, later = { .done = 0 };

    fake_api_on(w.api, "*", "/old", &(struct fake_answer){ .silent = true });
    fake_api_on(w.api, "*", "/later", &(struct fake_answer){ .body = "{}" });
    send(&w, &old, (struct kube_request){ .path = "/old", .retry_ms = -1 });
    fake_api_wait(w.api, w.l, "*", "/old", 1);
    w.config->expires_ms = w.config->asked_ms = 0; /* expired: the next request gets others */
    old.cancel = send(&w, &next, (struct kube_request){ .path = "/next" });
    fake_until(w.l, is_done, &old);
    ck_assert_int_eq(old.code, ERR_LOST);
    send(&w, &later, (struct kube_request){ .path = "/later" });
    fake_until(w.l, is_done, &later);
    ck_assert_int_eq(later.status, 200);
    ck_assert_int_eq(next.done, 0);
    ck_assert_uint_eq(fake_api_count(w.api, "*", "/next"), 0);
    ck_assert_uint_eq(calls_of(&p), 2);
}
END_TEST

/* ---- streams ---- */

static bool line(void *user, const char *text, size_t n)
{
    struct got *g = user;

    buf_add(&g->lines, text, n);
    buf_char(&g->lines, '|');
    if (g->free_client)
        kube_client_free(TAKE(g->w->k));
    kube_cancel(TAKE(g->cancel));
    return true;
}

static bool has_two_lines(void *user)
{
    const struct got *g = user;
    const char *first = strchr(g->lines.data, '|');
    return first != NULL && strchr(first + 1, '|') != NULL;
}

static struct kube_call *follow(struct world *w, struct got *g)
{
    g->w = w;
    g->sent = true;
    g->lines = (struct buf)BUF_INIT;
    return kube_watch(
        w->k, &(struct kube_stream){ .path = "/w", .silence_ms = 60000, .on_line = line, .on_end = done, .user = g });
}

/* However the bytes are split. */
START_TEST(lines_come_whole)
{
    static const char *const PIECES[] = { "{\"a\":", "1}\n{\"b\":2}", "\n\n{\"c\":3}\n{\"d", "\":4}\n{\"cut\":" };
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct got g = { .done = 0 };
    struct fake_request r;
    char value[256];

    fake_api_on(w.api, "GET", "/w", &(struct fake_answer){ .open = true });
    follow(&w, &g);
    fake_api_wait(w.api, w.l, "GET", "/w", 1);
    for (size_t i = 0; i < COUNT_OF(PIECES); i++) {
        struct err e = { .code = ERR_NONE };
        ck_assert_uint_eq(fake_api_push(w.api, "/w", PIECES[i]), 1);
        for (int turns = 0; turns < 3; turns++)
            ck_ok_e(loop_turn(w.l, 5, &e));
    }
    fake_api_end(w.api, "/w");
    fake_until(w.l, is_done, &g);
    ck_assert_str_eq(g.lines.data, "{\"a\":1}|{\"b\":2}|{\"c\":3}|{\"d\":4}|");
    ck_assert_int_eq(g.status, 200);
    ck_assert(fake_api_request(w.api, "GET", "/w", 0, &r));
    ck_assert_str_eq(fake_header(&r, "authorization", value), "Bearer secret");
    buf_fini(&g.lines);
}
END_TEST

START_TEST(a_watch_is_not_pending_and_ends_with_what_the_server_says)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 1, .burst = 1 });
    struct got g = { .done = 0 }, broken = { .done = 0 };

    fake_api_on(
        w.api, "GET", "/w",
        &(struct fake_answer){ .status = 410, .body = "{\"kind\":\"Status\",\"reason\":\"Expired\"}", .times = 1 });
    fake_api_on(w.api, "GET", "/w", &(struct fake_answer){ .open = true, .body = "{}\n{}\n" });
    follow(&w, &g);
    ck_assert(is_idle(&w));
    fake_until(w.l, is_done, &g);
    ck_assert_int_eq(g.status, 410);
    ck_assert_str_eq(g.reason, "Expired");
    follow(&w, &broken);
    fake_until(w.l, has_two_lines, &broken);
    fake_api_break(w.api, "/w");
    fake_until(w.l, is_done, &broken);
    ck_assert_int_eq(broken.status, 0);
    ck_assert_int_eq(broken.code, ERR_LOST);
    ck_assert_uint_eq(fake_api_count(w.api, "*", "*"), 2); /* no retry without the caller */
    buf_fini(&g.lines);
    buf_fini(&broken.lines);
}
END_TEST

/* An operator of thirty namespaces has six watches in each: its lease is renewed all the same. */
START_TEST(watches_take_no_request_its_place)
{
    enum { WATCHES = 200 };
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct got watches[WATCHES], g = { .done = 0 };

    fake_api_on(w.api, "GET", "/w", &(struct fake_answer){ .open = true });
    fake_api_on(w.api, "GET", "/x", &(struct fake_answer){ .body = "{}" });
    for (int i = 0; i < WATCHES; i++) {
        watches[i] = (struct got){ .done = 0 };
        follow(&w, &watches[i]);
    }
    fake_api_wait(w.api, w.l, "GET", "/w", WATCHES);
    send(&w, &g, (struct kube_request){ .path = "/x", .priority = KUBE_URGENT });
    fake_until(w.l, is_done, &g);
    ck_assert_int_eq(g.status, 200);
    for (int i = 0; i < WATCHES; i++)
        buf_fini(&watches[i].lines);
}
END_TEST

START_TEST(a_watch_with_a_refused_token_is_tried_once_more)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct got g = { .done = 0 };

    fake_api_on(w.api, "GET", "/w", &(struct fake_answer){ .status = 401, .times = 1 });
    fake_api_on(w.api, "GET", "/w", &(struct fake_answer){ .open = true, .body = "{}\n{}\n" });
    follow(&w, &g);
    fake_until(w.l, has_two_lines, &g);
    ck_assert_int_eq(g.done, 0);
    buf_fini(&g.lines);
}
END_TEST

/* An answer that no API server may send: it is not kept until memory is full. */
START_TEST(a_line_without_end_ends_its_watch)
{
    enum { MUCH = 9 << 20 };
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct got g = { .done = 0 };
    auto_free char *body = xcalloc(1, MUCH);

    memset(body, 'x', MUCH);
    fake_api_on(w.api, "GET", "/w", &(struct fake_answer){ .open = true, .body = body, .body_len = MUCH });
    follow(&w, &g);
    fake_until(w.l, is_done, &g);
    ck_assert_int_eq(g.code, ERR_STOPPED);
    ck_assert_uint_eq(g.lines.len, 0);
    buf_fini(&g.lines);
}
END_TEST

/* _i 0: the line cancels its own watch; 1: it frees the client. No line comes after that. */
START_TEST(a_line_may_end_its_watch)
{
    AUTO_FINI(world) w = world((struct kube_settings){ .qps = 0 });
    struct got g = { .done = 0 }, other = { .done = 0 };

    fake_api_on(w.api, "GET", "/w", &(struct fake_answer){ .open = true, .body = "1\n2\n3\n" });
    g.free_client = _i == 1;
    struct kube_call *c = follow(&w, &g);
    g.cancel = _i == 0 ? c : NULL;
    while (g.lines.len == 0) {
        struct err e = { .code = ERR_NONE };
        ck_ok_e(loop_turn(w.l, 100, &e));
    }
    ck_assert_str_eq(g.lines.data, "1|");
    ck_assert_int_eq(g.done, 0);
    if (w.k != NULL) {
        send(&w, &other, (struct kube_request){ .path = "/x" });
        fake_until(w.l, is_done, &other);
        ck_assert_str_eq(g.lines.data, "1|");
    }
    buf_fini(&g.lines);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("client");
    TCase *c = tcase_create("client");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, paths);
    tcase_add_test(c, a_bucket_gives_its_burst_and_then_its_rate);
    tcase_add_test(c, a_window_halves_when_refused_and_grows_by_rounds);
    tcase_add_test(c, pauses_grow_and_obey_the_server);
    tcase_add_test(c, what_may_be_tried_again);
    tcase_add_test(c, delete_options);
    tcase_add_test(c, each_verb_is_sent_as_the_server_wants_it);
    tcase_add_test(c, metadata_only_asks_for_lists_and_objects_in_their_own_words);
    tcase_add_test(c, refusals_have_reason_and_message);
    tcase_add_test(c, refusals_without_words_get_some);
    tcase_add_loop_test(c, passing_trouble_is_overcome, 0, (int)COUNT_OF(PASSING));
    tcase_add_test(c, lasting_trouble_is_told_after_its_time);
    tcase_add_test(c, a_refused_token_is_tried_once_more);
    tcase_add_test(c, a_server_that_stands_still_and_goes_on);
    tcase_add_test(c, urgent_goes_first_and_background_last);
    tcase_add_test(c, what_is_tried_again_keeps_its_place);
    tcase_add_test(c, the_refused_do_not_all_come_back_together);
    tcase_add_test(c, the_rate_is_kept_by_all_but_leases);
    tcase_add_test(c, a_callback_may_cancel_others_and_free_the_client);
    tcase_add_test(c, a_token_is_asked_for_anew_once);
    tcase_add_test(c, a_request_may_be_cancelled_by_those_that_lose_their_connection);
    tcase_add_test(c, lines_come_whole);
    tcase_add_test(c, a_watch_is_not_pending_and_ends_with_what_the_server_says);
    tcase_add_test(c, a_watch_with_a_refused_token_is_tried_once_more);
    tcase_add_test(c, a_line_without_end_ends_its_watch);
    tcase_add_test(c, watches_take_no_request_its_place);
    tcase_add_loop_test(c, a_line_may_end_its_watch, 0, 2);
    suite_add_tcase(s, c);
    return s;
}
