/* The Service and the Deployment of TensorBoard: created, updated and deleted with the spec. */
#include "base/log.h"
#include "control/apply_internal.h"

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
