/* Services: made and deleted, with the same care as pods. */
#include "base/str.h"
#include "control/apply_internal.h"

enum { FOREIGN_RETRY_MS = 2000 };

static void on_service_created(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    struct service_facts *s = record_service(r, t->name);
    if (kube_ok(a)) {
        AUTO(service_facts) *made = xcalloc(1, sizeof *made);
        if (s != NULL && s->creating && service_facts_parse(t->c->kind, a->body, made) == 0) /* else the watch was faster */
            record_put_service(r, TAKE(made));
        counter_add(t->c->meters.services_created, 1);
        apply_made(t, r, true);
    } else {
        record_drop_ghost_service(r, t->name, NULL); /* when it exists, the watch will tell */
        if (str_eq(a->reason, "AlreadyExists") && r->makes.failures == 0)
            apply_block(t->c, r, ACT_CREATE_SERVICE, FOREIGN_RETRY_MS);
        else
            apply_not_made(t, r, a);
    }
    controller_wake(t->c, r);
}

void apply_create_service(struct context *x, const struct action *a)
{
    struct record *r = x->r;
    json_auto_t *service = build_service(&r->view, apply_spec(x), a->role, a->index);
    const char *name = json_string_value(json_at(service, "metadata.name"));
    if (name == NULL || record_service(r, name) != NULL)
        return;
    struct service_facts *ghost = xcalloc(1, sizeof *ghost);
    *ghost = (struct service_facts){ .name = xstrdup(name), .owner_uid = xstrdup(r->view.uid), .role = a->role, .index = a->index, .creating = true };
    record_put_service(r, ghost);
    apply_send(x, a, KUBE_CREATE, &SERVICES, name, service, on_service_created);
}

static void on_service_deleted(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (kube_ok(a) || a->status == 404 || a->status == 409) {
        record_remove_service(r, t->name, t->object_uid);
        if (kube_ok(a)) {
            r->deletes = (struct pause){ 0 };
            apply_done(t, r, "SuccessfulDeleteService", "Deleted service");
        }
    } else {
        struct service_facts *s = record_service(r, t->name);
        if (s != NULL && str_eq(s->uid, t->object_uid))
            s->deleting = false;
        apply_failed(t, r, "FailedDeleteService", "deleting", a);
    }
    controller_wake(t->c, r);
}

void apply_delete_service(struct context *x, const struct action *a)
{
    struct service_facts *s = record_service(x->r, a->name);
    if (s == NULL || s->creating || s->deleting)
        return;
    s->deleting = true;
    apply_delete(x, a, &SERVICES, on_service_deleted);
}
