/* Services: made, adopted and deleted, with the same care as pods. */
#include "base/str.h"
#include "control/apply_internal.h"

static json_t *service_build(struct context *x, const struct action *a)
{
    return build_service(&x->r->view, apply_spec(x), a->role, a->index);
}

static void take_service(struct task *t, struct record *r, const json_t *object)
{
    AUTO(service_info) *is = xcalloc(1, sizeof(*is));
    if (service_info_parse(t->c->kind, object, is) == 0)
        record_put_service(r, TAKE(is));
}

static void service_over(struct task *t, struct record *r, const json_t *object)
{
    struct service_info *s = record_service(r, t->name);
    if (object == NULL) {
        if (s != NULL)
            s->patching = false;
        record_drop_expected_service(r, t->name, NULL);
        return;
    }
    if (s != NULL && (s->creating || s->patching)) /* else the watch was faster */
        take_service(t, r, object);
    if (t->action.kind == ACT_CREATE_SERVICE)
        counter_add(t->c->metrics.services_created, 1);
}

static const struct child SERVICE = { .resource = &SERVICES,
                                      .adopts = true,
                                      .follows = true,
                                      .rules = { .whole = { "spec.selector" } },
                                      .build = service_build,
                                      .over = service_over };

void apply_create_service(struct context *x, const struct action *a)
{
    struct record *r = x->r;
    char name[128];
    const char *its = a->index < 0 ? r->view.name : job_spec_pod_name(&r->view, a->role, a->index, name);
    if (record_service(r, its) != NULL || !apply_may_send(x, a->kind))
        return;
    struct service_info *expectation = xcalloc(1, sizeof(*expectation));
    *expectation = (struct service_info){
        .name = xstrdup(its), .owner_uid = xstrdup(r->view.uid), .role = a->role, .index = a->index, .creating = true
    };
    record_put_service(r, expectation);
    child_ensure(x, a, &SERVICE);
}

void apply_adopt_service(struct context *x, const struct action *a)
{
    struct service_info *s = record_service(x->r, a->name);
    if (s == NULL || s->owner_uid != NULL || s->patching || !apply_may_send(x, a->kind))
        return;
    s->patching = true;
    child_adopt(x, a, &SERVICE);
}

/* It was changed since we looked, or another one has its name. */
static void on_service_found(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (kube_ok(a) && str_eq(json_string_value(json_at(a->body, "metadata.uid")), t->object_uid))
        take_service(t, r, a->body);
    else
        record_remove_service(r, t->name, t->object_uid);
    controller_wake(t->c, r);
}

static void on_service_deleted(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (a->status == 409) {
        apply_get(t, r, &SERVICES, true, on_service_found);
        return;
    }
    if (kube_ok(a) || a->status == 404) {
        record_remove_service(r, t->name, t->object_uid);
        if (kube_ok(a)) {
            r->deletes = (struct pause){ 0 };
            apply_done(t, r, "SuccessfulDeleteService", "Deleted service");
        }
    } else {
        struct service_info *s = record_service(r, t->name);
        if (s != NULL && str_eq(s->uid, t->object_uid))
            s->deleting = false;
        apply_failed(t, r, "FailedDeleteService", "deleting", a);
    }
    controller_wake(t->c, r);
}

void apply_delete_service(struct context *x, const struct action *a)
{
    struct service_info *s = record_service(x->r, a->name);
    if (s == NULL || s->creating || s->deleting || !apply_may_send(x, a->kind))
        return;
    s->deleting = true;
    apply_delete(x, a, &SERVICES, on_service_deleted);
}
