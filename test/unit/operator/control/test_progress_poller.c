/* Polls of a leader's page: a controller with a scripted API server, and a real leader at an address that only this
 * process has. */
#include "check_main.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "control/controller_internal.h"
#include "identity/tls_dir.h"
#include "net/http_server.h"
#include "temp_folder.h"
#include "test/fake/api_server.h"

#define MASTER    "/api/v1/namespaces/default/secrets/" MASTER_KEY_SECRET
#define KEYS_A    "{\"data\":{\"20200101T000000Z\":\"QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=\"}}"
#define JOB_WATCH "*/trainjobs[?]watch=true*"
#define POD_WATCH "*/pods[?]watch=true*"
#define POD_POSTS "/api/v1/namespaces/a/pods[?]*"
#define STATUS    "/apis/trainyard.dev/v1alpha1/namespaces/a/trainjobs/j/status*"
#define EMPTY     "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}"

struct world {
    struct fake_api *api;
    struct kubeconfig *config;
    struct loop *loop;
    struct kube_client *client;
    struct dispatch *dispatch;
    struct registry *registry;
    struct strlist namespaces, scrapers;
    struct identity_issuer *issuer;
    struct controller *controller;
    struct http_server *leader;
    char folder[64], ip[32];
    atomic_int made, asked;
};

static int take_create(void *user, const struct fake_request *r, struct buf *body)
{
    struct world *w = user;
    json_auto_t *object = NULL;
    ck_assert_int_eq(json_parse(r->body, r->body_len, "body", &object, NULL), 0);
    json_t *meta = json_object_get(object, "metadata");
    int n = atomic_fetch_add(&w->made, 1);
    json_object_set_new(meta, "uid", json_sprintf("u-%d", n));
    const char *prefix = json_string_value(json_object_get(meta, "generateName"));
    if (prefix != NULL)
        json_object_set_new(meta, "name", json_sprintf("%sx%d", prefix, n));
    json_emit(object, body);
    return 201;
}

static void world_init(struct world *w, bool insecure)
{
    *w = (struct world){ .api = fake_api_new(), .loop = loop_new(), .registry = registry_new() };
    w->config = fake_api_config(w->api, NULL);
    w->client =
        kube_client_new(w->loop, w->config, &(struct kube_settings){ .user_agent = "test", .field_manager = "test" });
    w->dispatch = dispatch_new(w->client);
    fake_api_on(w->api, "GET", MASTER, &(struct fake_answer){ .body = KEYS_A });
    fake_api_on(w->api, "GET", "*[?]limit=*", &(struct fake_answer){ .body = EMPTY });
    fake_api_on(w->api, "GET", "*[?]watch=true*", &(struct fake_answer){ .body = "", .open = true });
    fake_api_on(w->api, "POST", "*", &(struct fake_answer){ .handle = take_create, .user = w });
    fake_api_on(w->api, "PATCH", "*", &(struct fake_answer){ .body = "{}" });
    w->issuer = identity_issuer_new(w->client, &(struct identity_issuer_settings){
                                                   .insecure = insecure, .lifetime_s = 3600, .registry = w->registry });
    const struct controller_settings s = {
        .build = { .trainer_image = "i",
                   .operator_ns = "o",
                   .scraper_namespaces = &w->scrapers,
                   .pull_policy = "",
                   .tensorboard_image = "t",
                   .cluster_domain = "",
                   .gang_scheduler = "" },
        .namespaces = &w->namespaces,
        .workers = 4,
        .progress_ms = 100,
        .instance = "it",
        .registry = w->registry,
        .issuer = w->issuer,
        .dispatch = w->dispatch,
    };
    w->controller = controller_new(w->client, &KIND_TRAINJOB, &s);
    strcpy(w->folder, "/tmp/trainyard-poll.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(w->folder));
    unsigned id = (unsigned)getpid(); /* of loopback addresses, each process has one of its own */
    str_fmt(w->ip, sizeof(w->ip), "127.%u.%u.%u", id >> 16 & 127, id >> 8 & 255, id & 255);
}

static void world_fini(struct world *w)
{
    controller_free(w->controller);
    identity_issuer_free(w->issuer);
    dispatch_free(w->dispatch);
    kube_client_free(w->client);
    kubeconfig_free(w->config);
    registry_free(w->registry);
    http_server_free(w->leader);
    loop_free(w->loop);
    fake_api_free(w->api);
    remove_tree(w->folder);
}
DEFINE_AUTO_FINI(world, world_fini);

static int progress(void *user, struct buf *body, const char **content_type UNUSED)
{
    struct world *w = user;
    atomic_fetch_add(&w->asked, 1);
    buf_str(body, "{\"step\": 7}");
    return 200;
}

/* A process at the address of the leader's pod, which has this certificate; role -1: it speaks plain HTTP. */
static void start_leader(struct world *w, int role, int index)
{
    struct err e = { .code = ERR_NONE };
    AUTO(ca) *c = NULL;
    AUTO_FINI(leaf) leaf = { 0 };
    unsigned char master[CA_MASTER_SIZE];
    const struct http_route route = { "/progress", progress, w, role >= 0 ? IDENTITY_BIT(IDENTITY_OPERATOR) : 0 };
    auto_free char *dir = path_join(w->folder, "tls"), *address = xasprintf("%s:%d", w->ip, role >= 0 ? 8443 : 8080);

    memset(master, 'A', sizeof(master));
    ck_ok_e(ca_derive(master, "a", "job-1", (int64_t)clock_wall(), &c, &e));
    if (role >= 0) {
        ck_ok_e(ca_issue(c, role, index, (int64_t)clock_wall(), 3600, &leaf, &e));
        ck_ok_e(tls_dir_write(dir, ca_pem(c), &leaf, &e));
    }
    ck_ok_e(http_server_start(address, role >= 0 ? dir : NULL, &route, 1, &w->leader, &e));
}

struct streams {
    struct world *w;
    const char *pattern;
};
static bool is_open(void *user)
{
    const struct streams *s = user;
    return fake_api_streams(s->w->api, s->pattern) > 0;
}

static void push(struct world *w, const char *pattern, const char *type, const char *object)
{
    auto_free char *line = xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, object);
    fake_until(w->loop, is_open, &(struct streams){ w, pattern });
    ck_assert_uint_gt(fake_api_push(w->api, pattern, line), 0);
}

/* A job of one worker, which leads, and its running pod. */
static void start_job(struct world *w)
{
    push(w, JOB_WATCH, "ADDED",
         "{\"apiVersion\":\"trainyard.dev/"
         "v1alpha1\",\"kind\":\"TrainJob\",\"metadata\":{\"namespace\":\"a\",\"name\":\"j\","
         "\"uid\":\"job-1\",\"resourceVersion\":\"2\",\"generation\":1,\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},"
         "\"spec\":{\"model\":{\"inputShape\":[2],\"layers\":[{\"Dense\":{\"units\":1}}]},\"compile\":{\"optimizer\":"
         "\"SGD\",\"loss\":\"mse\"},\"data\":{\"train\":{\"format\":\"npy\",\"features\":\"x.npy\",\"labels\":\"y."
         "npy\"}},\"fit\":{\"epochs\":1,"
         "\"batchSize\":1}}}");
    fake_api_wait(w->api, w->loop, "POST", POD_POSTS, 1);
    auto_free char *pod = xasprintf(
        "{\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"a\",\"name\":\"j-worker-0\",\"uid\":\"p-0\","
        "\"resourceVersion\":"
        "\"5\",\"labels\":{\"trainyard.dev/operator-name\":\"trainjob-controller\",\"trainyard.dev/job-name\":\"j\","
        "\"trainyard.dev/replica-type\":\"worker\",\"trainyard.dev/"
        "replica-index\":\"0\"},\"ownerReferences\":[{\"uid\":"
        "\"job-1\",\"controller\":true}]},\"status\":{\"phase\":\"Running\",\"podIP\":\"%s\",\"containerStatuses\":[{"
        "\"name\":\"trainer\",\"ready\":true,\"state\":{\"running\":{}}}]}}",
        w->ip);
    push(w, POD_WATCH, "ADDED", pod);
}

static const struct cache_entry *entry_of(const struct world *w)
{
    return cache_find(&w->controller->env.cache, "a/j");
}

static bool has_progress(void *user)
{
    return entry_of(user)->progress.present;
}

static bool was_asked_twice(void *user)
{
    struct world *w = user;
    return atomic_load(&w->asked) >= 2;
}

START_TEST(the_leader_shows_who_it_is)
{
    AUTO_FINI(world) w;
    world_init(&w, false);
    start_leader(&w, ROLE_WORKER, 0);
    start_job(&w);
    fake_until(w.loop, has_progress, &w);
    ck_assert_int_eq(entry_of(&w)->progress.step, 7);
    fake_until(w.loop, was_asked_twice, &w);
    ck_assert_uint_eq(http_server_refused(w.leader), 0);
}
END_TEST

/* Another replica at the leader's address: its answers are not used. */
START_TEST(another_replica_is_not_believed)
{
    AUTO_FINI(world) w;
    world_init(&w, false);
    start_leader(&w, ROLE_WORKER, 1);
    start_job(&w);
    fake_until(w.loop, was_asked_twice, &w);
    ck_assert(!entry_of(&w)->progress.present);
}
END_TEST

START_TEST(a_job_without_certificates_is_polled_by_plain_http)
{
    AUTO_FINI(world) w;
    world_init(&w, true);
    start_leader(&w, -1, 0);
    start_job(&w);
    fake_until(w.loop, has_progress, &w);
    ck_assert(entry_of(&w)->status.identity.insecure);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("progress_poller");
    TCase *c = tcase_create("progress_poller");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, the_leader_shows_who_it_is);
    tcase_add_test(c, another_replica_is_not_believed);
    tcase_add_test(c, a_job_without_certificates_is_polled_by_plain_http);
    suite_add_tcase(s, c);
    return s;
}
