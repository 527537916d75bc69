/* The deletion of a job whose time to live has expired. */
#include <string.h>

#include "base/str.h"
#include "control/apply_internal.h"

/* The watch may report the deletion before the answer arrives: then there is no cache entry. */
static void say_job_deleted(const struct in_flight_request *req)
{
    const struct job_kind *k = req->env->kind;
    auto_free char *ns = xstrndup(req->key, strcspn(req->key, "/")), *note = xasprintf("Deleted job: %s", req->name);
    event_record(
        req->env->events,
        &(struct event_object){
            .api_version = k->api_version, .kind = k->resource.kind, .ns = ns, .name = req->name, .uid = req->uid },
        EVENT_NORMAL, "SuccessfulDeleteJob", "", note);
}

static void on_job_deleted(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (kube_ok(a)) {
        say_job_deleted(req);
    } else if (entry != NULL && a->status != 404 && a->status != 409) {
        entry->spec.deleting = false;
        apply_failed(req, entry, "FailedDeleteJob", "deleting", a);
    }
}

void apply_delete_job(struct apply_context *ctx, const struct action *a)
{
    struct action with_name = {
        .kind = a->kind, .name = ctx->entry->spec.name, .uid = ctx->entry->spec.uid, .grace_s = -1
    };
    if (ctx->entry->spec.deleting || !apply_may_send(ctx, a->kind))
        return;
    ctx->entry->spec.deleting = true;
    apply_delete(ctx, &with_name, &ctx->env->kind->resource, on_job_deleted);
}
