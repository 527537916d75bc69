/* The PodGroup of a gang scheduler: made, followed, deleted, and asked for its phase while pods wait. */
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "control/apply_internal.h"

enum { GROUP_POLL_MS = 1500 };

static enum group_phase phase_of(const json_t *group)
{
    const char *phase = json_string_value(json_at(group, "status.phase"));
    return phase == NULL || phase[0] == '\0' || str_eq(phase, "Pending") ? GROUP_PENDING : GROUP_ADMITTED;
}

int apply_completed(const struct record *r)
{
    int n = 0;
    for (int i = 0; i < ROLE_COUNT; i++)
        n += index_set_count(&r->status.roles[i].completed);
    return n;
}

static void group_over(struct task *t, struct record *r, const json_t *object)
{
    r->group_asked = false;
    r->group_ms = clock_ms();
    if (object == NULL)
        return;
    r->group = phase_of(object);
    if (t->completed == apply_completed(r))
        return;
    struct context x = { .c = t->c, .r = r }; /* one more has done its work meanwhile */
    apply_group(&x, &t->action);
    json_decref(x.spec);
}

static json_t *group_build(struct context *x, const struct action *a)
{
    (void)a;
    return build_pod_group(&x->r->view, apply_spec(x), apply_completed(x->r), &x->c->settings.build);
}

static void group_gone(struct task *t, struct record *r, const struct kube_answer *a, bool deleted)
{
    r->group_asked = false;
    if (kube_ok(a) || a->status == 404)
        r->group = GROUP_ABSENT;
    else
        apply_failed(t, r, "FailedDeletePodGroup", "deleting the PodGroup", a);
    if (deleted)
        apply_done(t, r, "SuccessfulDeletePodGroup", "Deleted PodGroup");
}

/* A queue that somebody moved it to, a webhook of Volcano or a person, stays. */
static const struct child GROUP = { .follows = true,
                                    .build = group_build,
                                    .over = group_over,
                                    .gone = group_gone,
                                    .rules = { .whole = { "spec.minResources", "spec.priorityClassName",
                                                          "spec.scheduleTimeoutSeconds" },
                                               .keep = "spec.queue" } };

void apply_group(struct context *x, const struct action *a)
{
    if (x->r->group_asked || !apply_may_send(x, a->kind))
        return;
    x->r->group_asked = true;
    child_ensure(x, a, &GROUP);
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

void apply_get_group(struct context *x)
{
    struct record *r = x->r;
    if (!x->c->settings.plan.gang_waits || r->group != GROUP_PENDING || r->group_asked ||
        clock_ms() - r->group_ms < GROUP_POLL_MS)
        return;
    r->group_asked = true;
    apply_send(x, &(struct action){ .kind = ACT_ENSURE_GROUP }, KUBE_GET,
               build_pod_group_resource(&x->c->settings.build), r->view.name, NULL, on_group_seen);
}

void apply_delete_group(struct context *x, const struct action *a)
{
    if (x->r->group_asked || !apply_may_send(x, a->kind))
        return;
    x->r->group_asked = true;
    child_delete(x, a, x->r->view.name, &GROUP);
}
