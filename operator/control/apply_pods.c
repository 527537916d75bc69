/* Pods: made, deleted, adopted. A pod stands among the facts from the moment its create is sent, so that none is made
 * twice however late the watch is. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/apply_internal.h"

enum { FOREIGN_RETRY_MS = 2000, LABEL_AGAIN_MS = 1000 };

/* The answer's pod, if it is the one among the facts. The watch may have been faster, and have told of the pod's end:
 * then nothing would ever tell of it again. */
static void take_pod(struct task *t, struct record *r, const json_t *object)
{
    struct pod_info *old = record_pod(r, t->name);
    const char *its_uid = json_string_value(json_at(object, "metadata.uid"));
    if (its_uid == NULL) /* no pod at all: it is asked for again */
        record_drop_expected_pod(r, t->name, NULL);
    if (old == NULL || its_uid == NULL || (!old->creating && !str_eq(old->uid, its_uid)))
        return;
    if (old->creating !=
        (t->action.kind == ACT_CREATE_POD)) /* the answer to a create has no status: the watch told more */
        return;
    AUTO(pod_info) *p = xcalloc(1, sizeof(*p));
    if (pod_info_parse(t->c->kind, object, p) < 0) { /* somebody else's under our name: no labels of ours */
        const char *uid = object_owner_uid(json_object_get(object, "metadata"));
        pod_info_fini(p);
        *p = (struct pod_info){ .name = xstrdup(t->name),
                                .uid = xstrdup(its_uid),
                                .owner_uid = xstrdup(uid != NULL ? uid : "nobody"),
                                .role = t->action.role,
                                .index = t->action.index,
                                .exit_code = -1 };
    }
    record_put_pod(r, TAKE(p));
}

static void on_pod_found(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (kube_ok(a) && str_eq(object_owner_uid(json_object_get(a->body, "metadata")), r->view.uid)) {
        take_pod(t, r, a->body);
        apply_made(t, r, false);
    } else { /* another's, perhaps of an earlier life of this job and soon gone: looked at again */
        record_drop_expected_pod(r, t->name, NULL);
        if (kube_ok(a) && json_at(a->body, "metadata.deletionTimestamp") == NULL && r->makes[MAKE_PODS].failures > 0)
            apply_foreign(t, r, &PODS);
        apply_block(t->c, r, ACT_CREATE_POD, kube_ok(a) ? FOREIGN_RETRY_MS : 0);
    }
    controller_wake(t->c, r);
}

/* What the API server thinks of a TFJob's template: misspelt keys, and what the namespace's policies warn of. */
static void say_server_warnings(struct task *t, struct record *r, const char *warnings)
{
    AUTO_FINI(strlist) lines = { 0 };
    AUTO_FINI(buf) note = BUF_INIT;
    if (r->view.kind->own_processes || warnings[0] == '\0')
        return;
    strlist_split(&lines, warnings, '\n');
    buf_printf(&note, "pod %s: ", t->name);
    for (size_t i = 0; i < lines.n; i++)
        buf_printf(&note, "%s%s", i > 0 ? "; " : "", lines.items[i]);
    log_warning("%s %s: PodTemplateWarning: %s", t->c->kind->resource.kind, r->key, note.data);
    controller_event(t->c, r, true, "PodTemplateWarning", job_spec_role_key(&r->view, t->action.role), note.data);
}

static void on_pod_created(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (kube_ok(a)) {
        take_pod(t, r, a->body);
        say_server_warnings(t, r, a->warnings);
        counter_add(t->c->metrics.pods_created, 1);
        apply_made(t, r, true);
    } else if (str_eq(a->reason, "AlreadyExists")) {
        apply_get(t, r, &PODS, false, on_pod_found);
        return;
    } else {
        record_drop_expected_pod(r, t->name, NULL);
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
        controller_event(x->c, x->r, true, reason, job_spec_role_key(&x->r->view, role), colon + 2);
    }
}

/* Each answer wakes the job, which then makes the next ones. */
void apply_create_pod(struct context *x, const struct action *a)
{
    char name[128];
    AUTO_FINI(buf) warn = BUF_INIT;
    struct record *r = x->r;
    job_spec_pod_name(&r->view, a->role, a->index, name);
    if (x->hold_pods || (x->core_only && !plan_is_core(&r->view, a->role, a->index)) || record_pod(r, name) != NULL ||
        apply_waits_for_counts(r, a->role, a->index) || !apply_may_send(x, a->kind))
        return;
    json_auto_t *pod = build_pod(&r->view, apply_spec(x), a->role, a->index, a->restarts, r->claims,
                                 r->claims_known ? r->view.nclaims : 0, &x->c->settings.build, &warn);
    say_warnings(x, &warn, a->role);
    struct pod_info *expectation = xcalloc(1, sizeof(*expectation));
    *expectation = (struct pod_info){ .name = xstrdup(name),
                                      .owner_uid = xstrdup(r->view.uid),
                                      .role = a->role,
                                      .index = a->index,
                                      .creating = true,
                                      .exit_code = -1,
                                      .restarts = a->restarts };
    record_put_pod(r, expectation);
    apply_send(x, a, KUBE_CREATE, &PODS, name, pod, on_pod_created);
}

/* It was changed since we looked, or another one has its name. */
static void on_pod_read(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    struct pod_info *p = record_pod(r, t->name);
    bool same = kube_ok(a) && str_eq(json_string_value(json_at(a->body, "metadata.uid")), t->object_uid);
    if (p != NULL && str_eq(p->uid, t->object_uid))
        p->deleting = p->patching = false;
    if (same)
        take_pod(t, r, a->body);
    else if (a->status == 404 || kube_ok(a))
        record_remove_pod(r, t->name, t->object_uid);
    else
        apply_failed(t, r, "FailedGetPod", "reading", a);
    controller_wake(t->c, r);
}

static void on_pod_deleted(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    struct pod_info *p = record_pod(r, t->name);
    if (kube_ok(a)) {
        r->deletes = (struct pause){ 0 };
        counter_add(t->c->metrics.pods_deleted, 1);
        if (str_eq(json_string_value(json_object_get(a->body, "kind")), "Pod") &&
            json_integer_value(json_at(a->body, "metadata.deletionGracePeriodSeconds")) > 0)
            take_pod(t, r, a->body); /* it leaves in its own time; the watch tells when it is gone */
        apply_done(t, r, "SuccessfulDeletePod", "Deleted pod");
    } else if (a->status == 404) {
        record_remove_pod(r, t->name, t->object_uid);
    } else if (a->status == 409) {
        apply_get(t, r, &PODS, false, on_pod_read);
        return;
    } else {
        if (p != NULL && str_eq(p->uid, t->object_uid))
            p->deleting = false;
        apply_failed(t, r, "FailedDeletePod", "deleting", a);
    }
    controller_wake(t->c, r);
}

void apply_delete_pod(struct context *x, const struct action *a)
{
    struct pod_info *p = record_pod(x->r, a->name);
    bool counted = p != NULL && index_counts_get(&x->r->status.roles[a->role].again, a->index) > p->restarts;
    if (p == NULL || p->creating || p->deleting || (counted && apply_waits_for_counts(x->r, a->role, a->index)) ||
        !apply_may_send(x, a->kind))
        return;
    p->deleting = true;
    apply_delete(x, a, &PODS, on_pod_deleted);
}

static void patched(struct task *t, struct record *r)
{
    struct pod_info *p = record_pod(r, t->name);
    if (p != NULL && str_eq(p->uid, t->object_uid))
        p->patching = false;
}

static void on_adopted(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    patched(t, r);
    if (kube_ok(a)) {
        take_pod(t, r, a->body);
        apply_made(t, r, false);
        log_info("%s %s: adopted pod %s", t->c->kind->resource.kind, r->key, t->name);
    } else if (a->status == 404) {
        record_remove_pod(r, t->name, t->object_uid);
    } else if (a->status == 409) {
        apply_get(t, r, &PODS, false, on_pod_read);
        return;
    } else {
        apply_failed(t, r, "FailedAdoptPod", "adopting", a);
    }
    controller_wake(t->c, r);
}

static void adopt(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    struct pod_info *p = record_pod(r, t->name);
    AUTO_FINI(buf) path = BUF_INIT;
    if (p == NULL || !str_eq(p->uid, t->object_uid))
        return;
    if (!apply_may_adopt(r, a)) { /* soon the watch will tell why */
        p->patching = false;
        apply_block(t->c, r, t->action.kind, 0);
        return;
    }
    json_auto_t *patch = build_adoption_patch(&r->view, t->object_uid, t->action.version);
    kube_path(&path, &PODS, r->view.ns, t->name, NULL);
    task_send(t->c, r, &t->action,
              (struct kube_request){
                  .verb = KUBE_STRATEGIC_PATCH, .priority = KUBE_NORMAL, .path = path.data, .body = patch },
              on_adopted);
}

static void on_labelled(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (a->status == 409) {
        apply_get(t, r, &PODS, false, on_pod_read);
        return;
    }
    patched(t, r);
    if (kube_ok(a))
        take_pod(t, r, a->body);
    else if (a->status == 404)
        record_remove_pod(r, t->name, t->object_uid);
    else
        apply_failed(t, r, "FailedLabelPod", "putting back the labels of the pod", a);
    controller_wake(t->c, r);
}

void apply_label_pod(struct context *x, const struct action *a)
{
    struct pod_info *p = record_pod(x->r, a->name);
    AUTO_FINI(buf) path = BUF_INIT;
    if (p == NULL || p->patching)
        return;
    if (!x->may_label) {
        workqueue_add_at(x->c->queue, x->r->key, x->r->label_after_ms);
        return;
    }
    if (!apply_may_send(x, a->kind))
        return;
    p->patching = true;
    x->r->label_after_ms = clock_ms() + LABEL_AGAIN_MS;
    log_info("%s %s: somebody changed the labels of pod %s: they are put back", x->c->kind->resource.kind, x->r->key,
             a->name);
    json_auto_t *patch = build_label_patch(&x->r->view, a->role, a->index, a->uid, a->version);
    kube_path(&path, &PODS, x->r->view.ns, a->name, NULL);
    task_send(
        x->c, x->r, a,
        (struct kube_request){ .verb = KUBE_MERGE_PATCH, .priority = KUBE_NORMAL, .path = path.data, .body = patch },
        on_labelled);
}

/* The record may be of another life of the job by now; the pod is gone all the same. */
static void on_pod_asked(struct task *t, struct record *r, const struct kube_answer *a)
{
    struct record *its = store_find(&t->c->store, t->key);
    bool same = kube_ok(a) && str_eq(json_string_value(json_at(a->body, "metadata.uid")), t->object_uid);
    if (its == NULL)
        return;
    if (r != NULL && same)
        take_pod(t, r, a->body);
    else
        record_remove_pod(its, t->name, t->object_uid);
    controller_wake(t->c, its);
    store_drop_if_empty(&t->c->store, its);
}

void apply_ask_pod(struct controller *c, struct record *r, struct pod_info *p)
{
    const struct action a = {
        .kind = ACT_LABEL_POD, .role = p->role, .index = p->index, .name = p->name, .uid = p->uid
    };
    AUTO_FINI(buf) path = BUF_INIT;
    kube_path(&path, &PODS, r->view.ns, p->name, NULL);
    task_send(c, r, &a, (struct kube_request){ .verb = KUBE_GET, .priority = KUBE_NORMAL, .path = path.data },
              on_pod_asked);
}

void apply_adopt_pod(struct context *x, const struct action *a)
{
    struct pod_info *p = record_pod(x->r, a->name);
    if (p == NULL || p->owner_uid != NULL || p->patching || !apply_may_send(x, a->kind))
        return;
    p->patching = true;
    apply_ask_job(x->c, x->r, a, adopt);
}
