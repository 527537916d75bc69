/* The Service and the Deployment of TensorBoard: created, updated and deleted with the spec. */
#include "base/log.h"
#include "base/str.h"
#include "control/apply_internal.h"

enum { BOARD_FIRST_MS = 5000, BOARD_MOST_MS = 60000, BOARD_DOUBLINGS = 4, BOARD_WORDS_MAX = 1000 };

static const struct dependent BOARD;

static void board_over(struct in_flight_request *req, struct cache_entry *entry, const json_t *object)
{
    (void)req;
    entry->tensorboard_in_flight = false;
    entry->tensorboard_ensured = object != NULL;
}

/* The service comes first, then the Deployment. */
static void board_service_over(struct in_flight_request *req, struct cache_entry *entry, const json_t *object)
{
    struct apply_context ctx = { .env = req->env, .entry = entry };
    entry->tensorboard_in_flight = object != NULL && entry->spec.tensorboard;
    if (entry->tensorboard_in_flight)
        dependent_ensure(&ctx, &req->action, &BOARD);
    json_decref(ctx.spec);
}

static json_t *board_build(struct apply_context *ctx, const struct action *a)
{
    (void)a;
    return build_tensorboard(&ctx->entry->spec, apply_spec(ctx), ctx->entry->claims,
                             ctx->entry->claims_known ? ctx->entry->spec.nclaims : 0, &ctx->env->settings->build);
}

static json_t *board_service_build(struct apply_context *ctx, const struct action *a)
{
    (void)a;
    return build_tensorboard_service(&ctx->entry->spec);
}

static void board_gone(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a,
                       bool deleted)
{
    if (deleted || kube_ok(a) || a->status == 404)
        return;
    log_warning("%s %s: deleting %s: %s", req->env->kind->resource.kind, entry->key, req->name, a->message);
    entry->tensorboard_ensured = true; /* it still exists */
    apply_delay(req->env, entry, req->action.kind, 0);
}

static const struct dependent BOARD_SERVICE = { .resource = &RESOURCE_SERVICES,
                                                .adopts = true,
                                                .follows = true,
                                                .rules = { .whole = { "spec.selector" } },
                                                .build = board_service_build,
                                                .over = board_service_over,
                                                .gone = board_gone };
static const struct dependent BOARD = { .resource = &RESOURCE_DEPLOYMENTS,
                                        .follows = true,
                                        .rules = { .whole = { "spec.template.spec.affinity",
                                                              "spec.template.metadata.labels" } },
                                        .build = board_build,
                                        .over = board_over,
                                        .gone = board_gone };

void apply_tensorboard(struct apply_context *ctx, const struct action *a)
{
    if (ctx->entry->tensorboard_in_flight || !apply_may_send(ctx, a->kind))
        return;
    ctx->entry->tensorboard_in_flight = true;
    dependent_ensure(ctx, a, &BOARD_SERVICE);
}

/* The Deployment's controller reports refused pods in a condition. */
static char *board_trouble(const json_t *deployment)
{
    const json_t *c;
    size_t i;
    json_array_foreach(json_at(deployment, "status.conditions"), i, c)
    {
        const char *message = json_string_value(json_object_get(c, "message"));
        if (str_eq(json_string_value(json_object_get(c, "type")), "ReplicaFailure") &&
            str_eq(json_string_value(json_object_get(c, "status")), "True") && message != NULL)
            return text_truncate(message, BOARD_WORDS_MAX, false);
    }
    return NULL;
}

static void board_read(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    struct board_watch *w = &entry->board;
    int64_t wait_ms = MIN((int64_t)BOARD_FIRST_MS << MIN(w->reads, BOARD_DOUBLINGS), (int64_t)BOARD_MOST_MS);
    w->in_flight = false;
    w->reads++;
    w->next_ms = env_clock(req->env) + wait_ms;
    if (kube_ok(a)) {
        free(w->trouble);
        w->ready = json_integer_value(json_at(a->body, "status.availableReplicas")) > 0;
        w->trouble = w->ready ? NULL : board_trouble(a->body);
    }
    env_enqueue(req->env, entry);
}

void apply_poll_tensorboard(struct apply_context *ctx)
{
    struct cache_entry *entry = ctx->entry;
    struct board_watch *w = &entry->board;
    char name[128];
    int64_t now = env_clock(ctx->env);
    if (!entry->spec.tensorboard || !entry->tensorboard_ensured || w->ready || w->in_flight)
        return;
    if (w->next_ms == 0)
        w->next_ms = now + BOARD_FIRST_MS;
    if (now < w->next_ms) {
        workqueue_add_at(ctx->env->queue, entry->key, w->next_ms);
        return;
    }
    w->in_flight = true;
    apply_send(ctx, &(struct action){ .kind = ACT_ENSURE_TENSORBOARD, .role = ROLE_COUNT }, KUBE_GET,
               &RESOURCE_DEPLOYMENTS, build_tensorboard_name(&entry->spec, name), NULL, board_read);
}

void apply_delete_tensorboard(struct apply_context *ctx, const struct action *a)
{
    char name[128];
    if (!apply_may_send(ctx, a->kind))
        return;
    build_tensorboard_name(&ctx->entry->spec, name);
    dependent_delete(ctx, a, name, &BOARD);
    dependent_delete(ctx, a, name, &BOARD_SERVICE);
    ctx->entry->tensorboard_ensured = ctx->entry->tensorboard_found = false;
}
