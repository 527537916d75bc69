/* Pods: made, deleted, adopted. A pod stands among the facts from the moment its create is sent, so that none is made
 * twice however late the watch is. */
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "control/apply_internal.h"

enum { FOREIGN_RETRY_MS = 2000, MAKING_MAX = 128 /* a pod of a job with 1,000 replicas is 80 kB of addresses */ };

/* The answer's pod, if it is the one among the facts. The watch may have been faster, and have told of the pod's end: then
 * nothing would ever tell of it again. */
static void take_pod(struct task *t, struct record *r, const json_t *object)
{
    struct pod_facts *old = record_pod(r, t->name);
    const char *its_uid = json_string_value(json_at(object, "metadata.uid"));
    if (its_uid == NULL) /* no pod at all: it is asked for again */
        record_drop_ghost_pod(r, t->name, NULL);
    if (old == NULL || its_uid == NULL || (!old->creating && !str_eq(old->uid, its_uid)))
        return;
    if (old->creating != (t->action.kind == ACT_CREATE_POD)) /* the answer to a create has no status: the watch told more */
        return;
    AUTO(pod_facts) *p = xcalloc(1, sizeof *p);
    if (pod_facts_parse(t->c->kind, object, p) < 0) { /* somebody else's under our name: no labels of ours */
        const char *uid = facts_owner_uid(json_object_get(object, "metadata"));
        pod_facts_fini(p);
        *p = (struct pod_facts){ .name = xstrdup(t->name), .uid = xstrdup(its_uid),
                                 .owner_uid = xstrdup(uid != NULL ? uid : "nobody"), .role = t->action.role,
                                 .index = t->action.index, .exit_code = -1 };
    }
    record_put_pod(r, TAKE(p));
}

static void on_pod_found(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (kube_ok(a) && str_eq(facts_owner_uid(json_object_get(a->body, "metadata")), r->view.uid)) {
        take_pod(t, r, a->body);
        apply_made(t, r, false);
    } else { /* another's, perhaps of an earlier life of this job and soon gone: looked at again */
        record_drop_ghost_pod(r, t->name, NULL);
        if (kube_ok(a) && json_at(a->body, "metadata.deletionTimestamp") == NULL && r->makes.failures > 0)
            apply_foreign(t, r);
        apply_block(t->c, r, ACT_CREATE_POD, kube_ok(a) ? FOREIGN_RETRY_MS : 0);
    }
    controller_wake(t->c, r);
}

static void on_pod_created(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (kube_ok(a)) {
        take_pod(t, r, a->body);
        r->makes = (struct pause){ 0 };
        counter_add(t->c->meters.pods_created, 1);
        apply_made(t, r, true);
    } else if (str_eq(a->reason, "AlreadyExists")) {
        apply_look(t, r, &PODS, false, on_pod_found);
        return;
    } else {
        record_drop_ghost_pod(r, t->name, NULL);
        apply_not_made(t, r, a);
    }
    controller_wake(t->c, r);
}

/* Warnings of the builder, "REASON: text" a line. */
static void say_warnings(struct context *x, const struct buf *warn, enum role role)
{
    AUTO_FINI(strlist) lines = { 0 };
    strlist_split(&lines, warn->data, '\n');
    for (size_t i = 0; i < lines.n; i++) {
        char *colon = strstr(lines.items[i], ": ");
        if (colon == NULL)
            continue;
        auto_free char *reason = xstrndup(lines.items[i], (size_t)(colon - lines.items[i]));
        controller_event(x->c, x->r, true, reason, job_view_role_key(&x->r->view, role), colon + 2);
    }
}

/* Each answer wakes the job, which then makes the next ones. */
void apply_create_pod(struct context *x, const struct action *a)
{
    char name[128];
    AUTO_FINI(buf) warn = BUF_INIT;
    struct record *r = x->r;
    job_view_pod_name(&r->view, a->role, a->index, name);
    if (x->hold_pods || x->making >= MAKING_MAX || record_pod(r, name) != NULL)
        return;
    x->making++;
    json_auto_t *pod = build_pod(&r->view, apply_spec(x), a->role, a->index, a->restarts, r->claims, r->claims_known ? r->view.nclaims : 0,
                                 &x->c->settings.build, &warn);
    say_warnings(x, &warn, a->role);
    struct pod_facts *ghost = xcalloc(1, sizeof *ghost);
    *ghost = (struct pod_facts){ .name = xstrdup(name), .owner_uid = xstrdup(r->view.uid), .role = a->role, .index = a->index,
                                 .creating = true, .exit_code = -1, .restarts = a->restarts };
    record_put_pod(r, ghost);
    apply_send(x, a, KUBE_CREATE, &PODS, name, pod, on_pod_created);
}

static void on_pod_deleted(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    struct pod_facts *p = record_pod(r, t->name);
    if (kube_ok(a)) {
        r->deletes = (struct pause){ 0 };
        counter_add(t->c->meters.pods_deleted, 1);
        if (str_eq(json_string_value(json_object_get(a->body, "kind")), "Pod") &&
            json_integer_value(json_at(a->body, "metadata.deletionGracePeriodSeconds")) > 0)
            take_pod(t, r, a->body); /* it leaves in its own time; the watch tells when it is gone */
        apply_done(t, r, "SuccessfulDeletePod", "Deleted pod");
    } else if (a->status == 404 || a->status == 409) { /* it, or this life of it, is gone */
        record_remove_pod(r, t->name, t->object_uid);
    } else {
        if (p != NULL && str_eq(p->uid, t->object_uid))
            p->deleting = false;
        apply_failed(t, r, "FailedDeletePod", "deleting", a);
    }
    controller_wake(t->c, r);
}

void apply_delete_pod(struct context *x, const struct action *a)
{
    struct pod_facts *p = record_pod(x->r, a->name);
    if (p == NULL || p->creating || p->deleting)
        return;
    p->deleting = true;
    apply_delete(x, a, &PODS, on_pod_deleted);
}

static void on_adopted(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (kube_ok(a)) {
        take_pod(t, r, a->body);
        log_info("%s %s: adopted pod %s", t->c->kind->resource.kind, r->key, t->name);
    } else if (a->status == 404) {
        record_remove_pod(r, t->name, t->object_uid);
    } else {
        struct pod_facts *p = record_pod(r, t->name);
        if (p != NULL && str_eq(p->uid, t->object_uid))
            free(TAKE(p->owner_uid));
        apply_failed(t, r, "FailedAdoptPod", "adopting", a);
    }
    controller_wake(t->c, r);
}

void apply_adopt_pod(struct context *x, const struct action *a)
{
    struct pod_facts *p = record_pod(x->r, a->name);
    AUTO_FINI(buf) path = BUF_INIT;
    if (p == NULL || p->owner_uid != NULL)
        return;
    p->owner_uid = xstrdup(x->r->view.uid);
    json_auto_t *patch = build_adoption(&x->r->view, a->uid);
    kube_path(&path, &PODS, x->r->view.ns, a->name, NULL);
    task_send(x->c, x->r, a, (struct kube_request){ .verb = KUBE_MERGE_PATCH, .urgency = KUBE_NORMAL, .path = path.data, .body = patch }, on_adopted);
}
