/* The ConfigMap with the job file or the addresses, and the NetworkPolicy: created, adopted, re-created when deleted.
 */
#include "base/str.h"
#include "control/apply_internal.h"

enum { FOREIGN_RETRY_MS = 1000 };

static bool *asked(struct cache_entry *entry, enum action_kind k)
{
    return k == ACT_ENSURE_CONFIG ? &entry->config_in_flight : &entry->policy_in_flight;
}

static void config_over(struct in_flight_request *req, struct cache_entry *entry, const json_t *object)
{
    *asked(entry, req->action.kind) = false;
    if (object == NULL)
        return;
    *(req->action.kind == ACT_ENSURE_CONFIG ? &entry->config_ensured : &entry->policy_ensured) = true;
    entry->ensured_ms = env_clock(req->env);
    if (req->action.kind == ACT_ENSURE_CONFIG)
        job_spec_drop_model(&entry->spec);
}

static json_t *config_build(struct apply_context *ctx, const struct action *a)
{
    (void)a;
    return ctx->entry->spec.whole ? build_config_map(&ctx->entry->spec, apply_spec(ctx), &ctx->env->settings->build)
                                  : NULL;
}

static json_t *policy_build(struct apply_context *ctx, const struct action *a)
{
    (void)a;
    return build_network_policy(&ctx->entry->spec, &ctx->env->settings->build);
}

static const struct dependent CONFIG = { .resource = &RESOURCE_CONFIG_MAPS,
                                         .adopts = true,
                                         .rules = { .whole = { "data", "binaryData" } },
                                         .build = config_build,
                                         .over = config_over };
/* Addresses change with the number of replicas; a job file is never changed after the job has started. */
static const struct dependent ADDRESSES = { .resource = &RESOURCE_CONFIG_MAPS,
                                            .adopts = true,
                                            .follows = true,
                                            .rules = { .whole = { "data", "binaryData" } },
                                            .build = config_build,
                                            .over = config_over };
static const struct dependent POLICY = { .resource = &RESOURCE_NETWORK_POLICIES,
                                         .adopts = true,
                                         .rules = { .whole = { "spec" } },
                                         .build = policy_build,
                                         .over = config_over };

static void ensure(struct apply_context *ctx, const struct action *a, const struct dependent *ch)
{
    if (*asked(ctx->entry, a->kind) || !apply_may_send(ctx, a->kind))
        return;
    *asked(ctx->entry, a->kind) = true;
    dependent_ensure(ctx, a, ch);
}

static void on_whole(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    entry->config_in_flight = false;
    if (kube_ok(a) && str_eq(json_string_value(json_at(a->body, "metadata.uid")), entry->spec.uid))
        cache_entry_set_spec(entry, req->env->kind, req->env->settings, a->body);
    else /* it was deleted, and the watch will report it; or it cannot be read now */
        apply_delay(req->env, entry, ACT_ENSURE_CONFIG, FOREIGN_RETRY_MS);
    env_enqueue(req->env, entry);
}

/* The cache drops the model once the job file exists. When the file must be re-created, the job is read again. */
void apply_config(struct apply_context *ctx, const struct action *a)
{
    if (ctx->entry->spec.whole) {
        ensure(ctx, a, ctx->entry->spec.has_model ? &CONFIG : &ADDRESSES);
    } else if (!ctx->entry->config_in_flight && apply_may_send(ctx, a->kind)) {
        ctx->entry->config_in_flight = true;
        apply_send(ctx, a, KUBE_GET, &ctx->env->kind->resource, ctx->entry->spec.name, NULL, on_whole);
    }
}

void apply_policy(struct apply_context *ctx, const struct action *a)
{
    ensure(ctx, a, &POLICY);
}
