/* The deletion of a job whose time to live is over. */
#include <string.h>

#include "base/str.h"
#include "control/apply_internal.h"

/* The watch may have told that the job is gone before the answer comes: then there is no record. */
static void say_job_deleted(const struct task *t)
{
    const struct job_kind *k = t->c->kind;
    auto_free char *ns = xstrndup(t->key, strcspn(t->key, "/")), *note = xasprintf("Deleted job: %s", t->name);
    event_record(
        t->c->events,
        &(struct event_object){
            .api_version = k->api_version, .kind = k->resource.kind, .ns = ns, .name = t->name, .uid = t->uid },
        EVENT_NORMAL, "SuccessfulDeleteJob", "", note);
}

static void on_job_deleted(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (kube_ok(a)) {
        say_job_deleted(t);
    } else if (r != NULL && a->status != 404 && a->status != 409) {
        r->view.deleting = false;
        apply_failed(t, r, "FailedDeleteJob", "deleting", a);
    }
}

void apply_delete_job(struct context *x, const struct action *a)
{
    struct action with_name = { .kind = a->kind, .name = x->r->view.name, .uid = x->r->view.uid, .grace_s = -1 };
    if (x->r->view.deleting || !apply_may_send(x, a->kind))
        return;
    x->r->view.deleting = true;
    apply_delete(x, &with_name, &x->c->kind->resource, on_job_deleted);
}
