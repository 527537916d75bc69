/* Services: created, adopted and deleted, with the same preconditions as pods. */
#include "base/str.h"
#include "control/apply_internal.h"

static json_t *service_build(struct apply_context *ctx, const struct action *a)
{
    return build_service(&ctx->entry->spec, apply_spec(ctx), a->role, a->index);
}

static void take_service(struct in_flight_request *req, struct cache_entry *entry, const json_t *object)
{
    AUTO(service_info) *is = xcalloc(1, sizeof(*is));
    if (service_info_parse(req->env->kind, object, is) == 0)
        cache_entry_put_service(entry, TAKE(is));
}

static void service_over(struct in_flight_request *req, struct cache_entry *entry, const json_t *object)
{
    struct service_info *s = cache_entry_service(entry, req->name);
    if (object == NULL) {
        if (s != NULL)
            s->patching = false;
        cache_entry_drop_expected_service(entry, req->name, NULL);
        return;
    }
    if (s != NULL && (s->creating || s->patching)) /* else the watch was faster */
        take_service(req, entry, object);
    if (req->action.kind == ACT_CREATE_SERVICE)
        counter_add(req->env->metrics.services_created, 1);
}

static const struct dependent SERVICE = { .resource = &RESOURCE_SERVICES,
                                          .adopts = true,
                                          .follows = true,
                                          .rules = { .whole = { "spec.selector" } },
                                          .build = service_build,
                                          .over = service_over };

void apply_create_service(struct apply_context *ctx, const struct action *a)
{
    struct cache_entry *entry = ctx->entry;
    char name[128];
    const char *its = a->index < 0 ? entry->spec.name : job_spec_pod_name(&entry->spec, a->role, a->index, name);
    if (cache_entry_service(entry, its) != NULL || !apply_may_send(ctx, a->kind))
        return;
    struct service_info *expectation = xcalloc(1, sizeof(*expectation));
    *expectation = (struct service_info){ .name = xstrdup(its),
                                          .owner_uid = xstrdup(entry->spec.uid),
                                          .role = a->role,
                                          .index = a->index,
                                          .creating = true };
    cache_entry_put_service(entry, expectation);
    dependent_ensure(ctx, a, &SERVICE);
}

void apply_adopt_service(struct apply_context *ctx, const struct action *a)
{
    struct service_info *s = cache_entry_service(ctx->entry, a->name);
    if (s == NULL || s->owner_uid != NULL || s->patching || !apply_may_send(ctx, a->kind))
        return;
    s->patching = true;
    dependent_adopt(ctx, a, &SERVICE);
}

/* It was changed since it was observed, or another service has its name. */
static void on_service_found(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    if (kube_ok(a) && str_eq(json_string_value(json_at(a->body, "metadata.uid")), req->object_uid))
        take_service(req, entry, a->body);
    else
        cache_entry_remove_service(entry, req->name, req->object_uid);
    env_enqueue(req->env, entry);
}

static void on_service_deleted(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a)
{
    if (entry == NULL)
        return;
    if (a->status == 409) {
        apply_get(req, entry, &RESOURCE_SERVICES, true, on_service_found);
        return;
    }
    if (kube_ok(a) || a->status == 404) {
        cache_entry_remove_service(entry, req->name, req->object_uid);
        if (kube_ok(a)) {
            entry->delete_backoff = (struct retry_backoff){ 0 };
            apply_record_event(req, entry, "SuccessfulDeleteService", "Deleted service");
        }
    } else {
        struct service_info *s = cache_entry_service(entry, req->name);
        if (s != NULL && str_eq(s->uid, req->object_uid))
            s->deleting = false;
        apply_failed(req, entry, "FailedDeleteService", "deleting", a);
    }
    env_enqueue(req->env, entry);
}

void apply_delete_service(struct apply_context *ctx, const struct action *a)
{
    struct service_info *s = cache_entry_service(ctx->entry, a->name);
    if (s == NULL || s->creating || s->deleting || !apply_may_send(ctx, a->kind))
        return;
    s->deleting = true;
    apply_delete(ctx, a, &RESOURCE_SERVICES, on_service_deleted);
}
