/* controller_case - a controller with a scripted API server: lists are empty, watches stay open, creates and patches
 * are accepted, and the master key is known, unless a test says otherwise. */
#ifndef TRAINYARD_TEST_CONTROLLER_CASE_H
#define TRAINYARD_TEST_CONTROLLER_CASE_H

#include "check_main.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "control/controller_internal.h"
#include "test/fake/api_server.h"

#define MASTER    "/api/v1/namespaces/default/secrets/" MASTER_KEY_SECRET
#define POD_POSTS "/api/v1/namespaces/a/pods[?]*"
#define POD_WATCH "*/pods[?]watch=true*"
#define EMPTY     "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}"
/* 32 bytes 'A' */
#define KEYS_A "{\"data\":{\"20200101T000000Z\":\"QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=\"}}"

struct world {
    struct fake_api *api;
    struct kubeconfig *config;
    struct loop *loop;
    struct kube_client *client;
    struct dispatch *dispatch;
    struct registry *registry;
    struct strlist namespaces, scrapers;
    struct identity_issuer *issuer; /* issue(); NULL: the controller makes no certificates */
    struct controller *controller;
    int made; /* in the server's thread */
    bool network_policy;
    int64_t progress_ms;
};

static inline int take_create(void *user, const struct fake_request *r, struct buf *body)
{
    struct world *w = user;
    json_auto_t *object = NULL;
    ck_assert_int_eq(json_parse(r->body, r->body_len, "body", &object, NULL), 0);
    json_t *meta = json_object_get(object, "metadata");
    int n = ++w->made;
    json_object_set_new(meta, "uid", json_sprintf("u-%d", n));
    json_object_set_new(meta, "resourceVersion", json_sprintf("%d", 100 + n));
    const char *prefix = json_string_value(json_object_get(meta, "generateName"));
    if (prefix != NULL)
        json_object_set_new(meta, "name", json_sprintf("%sx%d", prefix, n));
    json_object_del(object, "stringData");
    json_emit(object, body);
    return 201;
}

static inline void on(struct world *w, const char *method, const char *pattern, struct fake_answer a)
{
    fake_api_on(w->api, method, pattern, &a);
}

static inline void world_init(struct world *w)
{
    *w = (struct world){ .api = fake_api_new(), .loop = loop_new(), .registry = registry_new(), .progress_ms = 1000 };
    fake_api_share_clock(w->api, w->loop);
    w->config = fake_api_config(w->api, NULL);
    w->client =
        kube_client_new(w->loop, w->config, &(struct kube_settings){ .user_agent = "test", .field_manager = "test" });
    w->dispatch = dispatch_new(w->client);
    on(w, "GET", MASTER, (struct fake_answer){ .body = KEYS_A });
    on(w, "GET", "*[?]limit=*", (struct fake_answer){ .body = EMPTY });
    on(w, "GET", "*[?]watch=true*", (struct fake_answer){ .body = "", .open = true });
    on(w, "POST", "*", (struct fake_answer){ .handle = take_create, .user = w });
    on(w, "PATCH", "*", (struct fake_answer){ .body = "{}" });
}

/* Before begin(): the controller makes certificates. */
static inline void issue(struct world *w, bool insecure)
{
    w->issuer = identity_issuer_new(w->client, &(struct identity_issuer_settings){
                                                   .insecure = insecure, .lifetime_s = 3600, .registry = w->registry });
}

static inline void begin(struct world *w, const struct job_kind *k)
{
    const struct controller_settings s = {
        .plan = { .network_policy = w->network_policy },
        .build = { .trainer_image = "i",
                   .pull_policy = "",
                   .tensorboard_image = "t",
                   .cluster_domain = "",
                   .gang_scheduler = "",
                   .operator_ns = "o",
                   .scraper_namespaces = &w->scrapers },
        .namespaces = &w->namespaces,
        .default_clean = CLEAN_NONE,
        .workers = 4,
        .progress_ms = w->progress_ms,
        .instance = "it",
        .registry = w->registry,
        .issuer = w->issuer,
        .dispatch = w->dispatch,
    };
    w->controller = controller_new(w->client, k, &s);
}

/* The operator ends. */
static inline void end(struct world *w)
{
    controller_free(TAKE(w->controller));
    identity_issuer_free(TAKE(w->issuer));
}

static inline void world_fini(struct world *w)
{
    end(w);
    dispatch_free(w->dispatch);
    kube_client_free(w->client);
    kubeconfig_free(w->config);
    registry_free(w->registry);
    strlist_fini(&w->namespaces);
    loop_free(w->loop);
    fake_api_free(w->api);
}
DEFINE_AUTO_FINI(world, world_fini);

static inline void wait_for(struct world *w, const char *method, const char *pattern, size_t n)
{
    fake_api_wait(w->api, w->loop, method, pattern, n);
}

struct streams {
    struct world *w;
    const char *pattern;
};
static inline bool is_open(void *user)
{
    const struct streams *s = user;
    return fake_api_streams(s->w->api, s->pattern) > 0;
}
/* Waits until the watch of `pattern` is open, and tells it of an object. */
static inline void push(struct world *w, const char *pattern, const char *type, const char *object)
{
    auto_free char *line = xasprintf("{\"type\":\"%s\",\"object\":%s}\n", type, object);
    fake_until(w->loop, is_open, &(struct streams){ w, pattern });
    ck_assert_uint_gt(fake_api_push(w->api, pattern, line), 0);
}

#endif
