/* What a job has once: the answers about its claims, its job file, its policy, its gang, its TensorBoard. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/apply_internal.h"

enum { FOREIGN_RETRY_MS = 1000, GROUP_LOOK_MS = 1500 };

/* ---- claims ---- */

static bool has_mode(const json_t *claim, const char *mode)
{
    const json_t *list = json_at(claim, "spec.accessModes"), *one;
    size_t i;
    json_array_foreach((json_t *)(uintptr_t)list, i, one)
        if (str_eq(json_string_value(one), mode))
            return true;
    return false;
}

static void on_claim(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL || r->claims == NULL || r->claims_asked == 0 || t->round != r->claims_round || t->claim >= r->view.nclaims)
        return;
    struct claim_facts *f = &r->claims[t->claim];
    f->found = kube_ok(a);
    f->refused = f->found || a->status == 404 ? 0 : a->status != 0 ? a->status : -1;
    if (f->found) {
        f->read_write_many = has_mode(a->body, "ReadWriteMany");
        f->read_write_once = has_mode(a->body, "ReadWriteOnce");
        f->read_write_once_pod = has_mode(a->body, "ReadWriteOncePod");
        f->read_only_many = has_mode(a->body, "ReadOnlyMany");
    } else if (f->refused != 0) {
        log_warning("%s %s: PersistentVolumeClaim %s: %s", t->c->kind->resource.kind, r->key, f->name, a->message);
    }
    if (--r->claims_asked > 0)
        return;
    r->claims_known = true;
    r->claims_ms = clock_ms();
    free(r->claims_fault);
    r->claims_fault = build_claims_fault(&r->view, r->claims, r->view.nclaims);
    controller_wake(t->c, r);
}

void apply_claims(struct context *x, const struct action *a)
{
    struct record *r = x->r;
    if (r->claims_asked > 0)
        return;
    if (r->claims == NULL)
        r->claims = xcalloc(r->view.nclaims, sizeof *r->claims);
    r->claims_asked = r->view.nclaims;
    for (size_t i = 0; i < r->view.nclaims; i++) {
        if (r->claims[i].name == NULL)
            r->claims[i].name = xstrdup(r->view.claims[i].name);
        apply_send(x, a, KUBE_GET, &CLAIMS, r->view.claims[i].name, NULL, on_claim);
        task_last(x->c)->claim = i;
        task_last(x->c)->round = r->claims_round;
    }
}

/* ---- the job file and the policy: created, and looked at when they exist ---- */

static void ensured(struct task *t, struct record *r)
{
    if (t->action.kind == ACT_ENSURE_CONFIG) {
        r->config_ensured = true;
        job_view_shrink(&r->view);
    } else {
        r->policy_ensured = true;
    }
    r->ensured_ms = clock_ms();
    apply_made(t, r, false);
}

static bool *asked(struct record *r, enum action_kind k)
{
    return k == ACT_ENSURE_CONFIG ? &r->config_asked : &r->policy_asked;
}

static const struct kube_resource *resource_of(enum action_kind k)
{
    return k == ACT_ENSURE_CONFIG ? &CONFIG_MAPS : &NETWORK_POLICIES;
}

static void on_found(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    *asked(r, t->action.kind) = false;
    if (kube_ok(a) && str_eq(facts_owner_uid(json_object_get(a->body, "metadata")), r->view.uid)) {
        ensured(t, r);
    } else { /* of an earlier life of this job, and soon gone */
        log_info("%s %s: waiting for the old %s %s to be deleted", t->c->kind->resource.kind, r->key, resource_of(t->action.kind)->kind, t->name);
        if (r->makes.failures > 2) /* or it is somebody else's and stays */
            apply_foreign(t, r);
        apply_block(t->c, r, t->action.kind, FOREIGN_RETRY_MS);
    }
    controller_wake(t->c, r);
}

static void on_ensured(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (str_eq(a->reason, "AlreadyExists")) {
        apply_look(t, r, resource_of(t->action.kind), true, on_found);
        return;
    }
    *asked(r, t->action.kind) = false;
    if (kube_ok(a))
        ensured(t, r);
    else
        apply_not_made(t, r, a);
    controller_wake(t->c, r);
}

static void ensure(struct context *x, const struct action *a, json_t *object)
{
    json_auto_t *owned = object;
    if (*asked(x->r, a->kind))
        return;
    *asked(x->r, a->kind) = true;
    apply_send(x, a, KUBE_CREATE, resource_of(a->kind), json_string_value(json_at(owned, "metadata.name")), owned, on_ensured);
}

static void on_whole(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    r->config_asked = false;
    if (kube_ok(a) && str_eq(json_string_value(json_at(a->body, "metadata.uid")), r->view.uid))
        watch_new_spec(t->c, r, a->body);
    else /* it is gone, and the watch will say so; or it may not be read now */
        apply_block(t->c, r, ACT_ENSURE_CONFIG, FOREIGN_RETRY_MS);
    controller_wake(t->c, r);
}

/* The model is not kept once the job file exists: when that must be made again, the object is read again. */
void apply_config(struct context *x, const struct action *a)
{
    if (x->r->view.whole) {
        ensure(x, a, build_config(&x->r->view, apply_spec(x)));
    } else if (!x->r->config_asked) {
        x->r->config_asked = true;
        apply_send(x, a, KUBE_GET, &x->c->kind->resource, x->r->view.name, NULL, on_whole);
    }
}

void apply_policy(struct context *x, const struct action *a)
{
    ensure(x, a, build_network_policy(&x->r->view, &x->c->settings.build));
}

/* ---- the gang ---- */

static enum group_phase phase_of(const json_t *group)
{
    const char *phase = json_string_value(json_at(group, "status.phase"));
    return phase == NULL || phase[0] == '\0' || str_eq(phase, "Pending") ? GROUP_PENDING : GROUP_ADMITTED;
}

static int completed_of(const struct record *r)
{
    int n = 0;
    for (int i = 0; i < ROLE_COUNT; i++)
        n += index_set_count(&r->status.roles[i].completed);
    return n;
}

static void on_group(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    r->group_asked = false;
    r->group_ms = clock_ms();
    if (kube_ok(a)) {
        r->group = phase_of(a->body);
        apply_made(t, r, false);
    } else {
        apply_not_made(t, r, a);
    }
    if (kube_ok(a) && t->completed != completed_of(r)) { /* meanwhile */
        struct context x = { .c = t->c, .r = r };
        apply_group(&x, &t->action);
        json_decref(x.spec);
    }
    controller_wake(t->c, r);
}

static void send_group(struct context *x, const struct action *a, const char *queue)
{
    int completed = completed_of(x->r);
    json_auto_t *group = build_pod_group(&x->r->view, apply_spec(x), completed, &x->c->settings.build);
    if (queue != NULL && *queue != '\0')
        json_object_set_new(json_object_get(group, "spec"), "queue", json_string(queue));
    apply_send(x, a, KUBE_APPLY, build_pod_group_resource(&x->c->settings.build), x->r->view.name, group, on_group);
    task_last(x->c)->completed = completed;
}

/* A queue that somebody moved it to, a webhook of Volcano or a person, stays. */
static void on_group_found(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (!kube_ok(a) && a->status != 404) {
        on_group(t, r, a);
        return;
    }
    struct context x = { .c = t->c, .r = r };
    send_group(&x, &t->action, kube_ok(a) ? json_string_value(json_at(a->body, "spec.queue")) : NULL);
    json_decref(x.spec);
}

void apply_group(struct context *x, const struct action *a)
{
    const struct kube_resource *resource = build_pod_group_resource(&x->c->settings.build);
    if (x->r->group_asked)
        return;
    x->r->group_asked = true;
    if (x->c->settings.plan.gang_waits) /* Volcano, which has queues */
        apply_send(x, a, KUBE_GET, resource, x->r->view.name, NULL, on_group_found);
    else
        send_group(x, a, NULL);
}

/* Somebody deleted it: it is made again. */
static void on_group_seen(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    r->group_asked = false;
    r->group_ms = clock_ms();
    if (kube_ok(a))
        r->group = phase_of(a->body);
    else if (a->status == 404)
        r->group = GROUP_UNKNOWN;
    else
        log_warning("%s %s: PodGroup: %s", t->c->kind->resource.kind, r->key, a->message);
    controller_wake(t->c, r);
}

void apply_look_at_group(struct context *x)
{
    struct record *r = x->r;
    if (!x->c->settings.plan.gang_waits || r->group != GROUP_PENDING || r->group_asked || clock_ms() - r->group_ms < GROUP_LOOK_MS)
        return;
    r->group_asked = true;
    apply_send(x, &(struct action){ .kind = ACT_ENSURE_GROUP }, KUBE_GET, build_pod_group_resource(&x->c->settings.build), r->view.name, NULL, on_group_seen);
}

static void on_group_deleted(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    r->group_asked = false;
    if (kube_ok(a) || a->status == 404)
        r->group = GROUP_ABSENT;
    else
        apply_failed(t, r, "FailedDeletePodGroup", "deleting the PodGroup", a);
    if (kube_ok(a))
        apply_done(t, r, "SuccessfulDeletePodGroup", "Deleted PodGroup");
    controller_wake(t->c, r);
}

void apply_delete_group(struct context *x, const struct action *a)
{
    struct action with_name = { .kind = a->kind, .name = x->r->view.name, .grace_s = -1 };
    if (x->r->group_asked)
        return;
    x->r->group_asked = true;
    apply_delete(x, &with_name, build_pod_group_resource(&x->c->settings.build), on_group_deleted);
}

/* ---- TensorBoard ---- */

static void on_board(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    r->board_asked = false;
    if (kube_ok(a))
        r->board_ensured = true;
    else
        apply_not_made(t, r, a);
    controller_wake(t->c, r);
}

static void on_board_service(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL)
        return;
    if (kube_ok(a) && r->view.tensorboard) {
        struct context x = { .c = t->c, .r = r };
        json_auto_t *deployment = build_tensorboard(&r->view, apply_spec(&x), r->claims, r->claims_known ? r->view.nclaims : 0,
                                                    &t->c->settings.build);
        apply_send(&x, &t->action, KUBE_APPLY, &DEPLOYMENTS, t->name, deployment, on_board);
        json_decref(x.spec);
        return;
    }
    r->board_asked = false;
    if (!kube_ok(a))
        apply_not_made(t, r, a);
    controller_wake(t->c, r);
}

void apply_board(struct context *x, const struct action *a)
{
    char name[128];
    struct record *r = x->r;
    if (r->board_asked)
        return;
    r->board_asked = true;
    json_auto_t *service = build_tensorboard_service(&r->view);
    build_tensorboard_name(&r->view, name);
    apply_send(x, a, KUBE_APPLY, &SERVICES, name, service, on_board_service);
}

static void on_deleted(struct task *t, struct record *r, const struct kube_answer *a)
{
    if (r == NULL || kube_ok(a) || a->status == 404)
        return;
    log_warning("%s %s: deleting %s: %s", t->c->kind->resource.kind, r->key, t->name, a->message);
    r->board_ensured = true; /* it is still there */
    apply_block(t->c, r, t->action.kind, 0);
}

void apply_delete_board(struct context *x, const struct action *a)
{
    char name[128];
    struct action with_name = { .kind = a->kind, .name = build_tensorboard_name(&x->r->view, name), .grace_s = -1 };
    apply_delete(x, &with_name, &DEPLOYMENTS, on_deleted);
    apply_delete(x, &with_name, &SERVICES, on_deleted);
    x->r->board_ensured = x->r->board_found = false;
}

/* ---- the end of its time to live ---- */

/* The watch may have told that the job is gone before the answer comes: then there is no record. */
static void say_job_deleted(const struct task *t)
{
    const struct job_kind *k = t->c->kind;
    auto_free char *ns = xstrndup(t->key, strcspn(t->key, "/")), *note = xasprintf("Deleted job: %s", t->name);
    events_record(t->c->events, &(struct event_object){ .api_version = k->api_version, .kind = k->resource.kind, .ns = ns,
                                                        .name = t->name, .uid = t->uid },
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
    if (x->r->view.deleting)
        return;
    x->r->view.deleting = true;
    apply_delete(x, &with_name, &x->c->kind->resource, on_job_deleted);
}
