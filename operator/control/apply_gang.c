/* The PodGroup of a gang scheduler: created, updated with the spec, deleted, and polled for its phase while pods wait.
 */
#include "base/log.h"
#include "base/str.h"
#include "control/apply_internal.h"

enum { GROUP_POLL_MS = 1500 };

static enum group_phase phase_of(const json_t *group)
{
    const char *phase = json_string_value(json_at(group, "status.phase"));
    return phase == NULL || phase[0] == '\0' || str_eq(phase, "Pending") ? GROUP_PENDING : GROUP_ADMITTED;
}

int apply_completed(const struct cache_entry *entry)
{
    int n = 0;
    for (int i = 0; i < ROLE_COUNT; i++)
        n += index_set_count(&entry->status.roles[i].completed);
    return n;
}

static void group_over(struct in_flight_request *req, struct cache_entry *entry, const json_t *object)
{
    entry->group_in_flight = false;
    entry->group_ms = env_clock(req->env);
    if (object == NULL)
        return;
    entry->group = phase_of(object);
    if (req->completed == apply_completed(entry))
        return;
    struct apply_context ctx = { .env = req->env, .entry = entry }; /* a replica completed meanwhile */
    apply_group(&ctx, &req->action);
    json_decref(ctx.spec);
}

static json_t *group_build(struct apply_context *ctx, const struct action *a)
{
    (void)a;
    return build_pod_group(&ctx->entry->spec, apply_spec(ctx), apply_completed(ctx->entry), &ctx->env->settings->build);
}

static void group_gone(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a,
                       bool deleted)
{
    entry->group_in_flight = false;
    if (kube_ok(a) || a->status == 404)
        entry->group = GROUP_ABSENT;
    else
        apply_failed(req, entry, "FailedDeletePodGroup", "deleting the PodGroup", a);
    if (deleted)
        apply_record_event(req, entry, "SuccessfulDeletePodGroup", "Deleted PodGroup");
}

/* Keeps the queue to which Volcano's webhook or a user moved it. */
static const struct dependent GROUP = { .follows = true,
                                        .build = group_build,
                                        .over = group_over,
                                        .gone = group_gone,
                                        .rules = { .whole = { "spec.minResources", "spec.priorityClassName",
                                                              "spec.scheduleTimeoutSeconds" },
                                                   .keep = "spec.queue" } };

void apply_group(struct apply_context *ctx, const struct action *a)
{
    if (ctx->entry->group_in_flight || !apply_may_send(ctx, a->kind))
        return;
    ctx->entry->group_in_flight = true;
    dependent_ensure(ctx, a, &GROUP);
}

/* After 404 it is created again. */
static void on_group_seen(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    entry->group_in_flight = false;
    entry->group_ms = env_clock(req->env);
    if (kube_ok(a))
        entry->group = phase_of(a->body);
    else if (a->status == 404)
        entry->group = GROUP_UNKNOWN;
    else
        log_warning("%s %s: PodGroup: %s", req->env->kind->resource.kind, entry->key, a->message);
    env_enqueue(req->env, entry);
}

void apply_poll_group(struct apply_context *ctx)
{
    struct cache_entry *entry = ctx->entry;
    if (!ctx->env->settings->plan.gang_waits || entry->group != GROUP_PENDING || entry->group_in_flight ||
        env_clock(ctx->env) - entry->group_ms < GROUP_POLL_MS)
        return;
    entry->group_in_flight = true;
    apply_send(ctx, &(struct action){ .kind = ACT_ENSURE_GROUP }, KUBE_GET,
               build_pod_group_resource(&ctx->env->settings->build), entry->spec.name, NULL, on_group_seen);
}

void apply_delete_group(struct apply_context *ctx, const struct action *a)
{
    if (ctx->entry->group_in_flight || !apply_may_send(ctx, a->kind))
        return;
    ctx->entry->group_in_flight = true;
    dependent_delete(ctx, a, ctx->entry->spec.name, &GROUP);
}
