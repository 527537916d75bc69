/* Suspension: everything of a TFJob goes at once; our processes leave in order, so that nothing learnt is lost. */
#include "plan/plan_internal.h"

/* The leader saves a checkpoint first, which needs the ps; workers before ps. Who has not begun or has ended has no
 * part in it. */
int plan_step(const struct reconcile *l, const struct pod_info *p)
{
    if (!l->own || pod_ended(p) || p->phase == POD_PENDING)
        return 0;
    if (p->role == l->leader && (p->role == ROLE_CHIEF || p->index == 0))
        return 0;
    return p->role == ROLE_PS ? 2 : 1;
}

/* The replica that is waited for in that step, or NULL: all have left. */
static const struct pod_info *leave(struct reconcile *l, int step)
{
    const struct pod_info *waited_for = NULL;
    for (size_t i = 0; i < l->o->npods; i++) {
        const struct pod_info *p = l->o->pods[i];
        if (!reconcile_ours(l, p) || plan_step(l, p) != step || p->held_by != NULL)
            continue;
        if (!p->creating && !pod_terminating(p))
            plan_delete(l, p, -1);
        if (waited_for == NULL || waited_for->phase != POD_RUNNING)
            waited_for = p;
    }
    return waited_for;
}

static void drop_services(struct reconcile *l)
{
    for (size_t i = 0; i < l->o->nservices; i++) {
        const struct service_info *s = l->o->services[i];
        if (!s->creating && !s->deleting && reconcile_our_service(l, s))
            plan_delete_service(l, s);
    }
}

static void drop_group(struct reconcile *l)
{
    bool there = l->o->group == GROUP_PENDING || l->o->group == GROUP_ADMITTED;
    bool just_now = !job_status_is(l->was, COND_SUSPENDED);
    if (l->s->gang && (there || (l->o->group == GROUP_UNKNOWN && just_now && l->begun)))
        plan_add(l, ACT_DELETE_GROUP, ROLE_COUNT, -1);
}

/* The first pod that has left and whose object stays; NULL: none. */
static const struct pod_info *held(const struct reconcile *l)
{
    for (size_t i = 0; i < l->o->npods; i++)
        if (l->o->pods[i]->held_by != NULL && reconcile_ours(l, l->o->pods[i]))
            return l->o->pods[i];
    return NULL;
}

static char *text_of(const struct reconcile *l, const struct pod_info *waited_for, const struct pod_info *kept)
{
    const char *kind = l->k->resource.kind, *name = l->v->name;
    if (kept != NULL)
        return xasprintf("%s %s is suspended; pod %s has ended, but the finalizer %s keeps it", kind, name, kept->name,
                         kept->held_by);
    if (!l->own || waited_for == NULL)
        return xasprintf("%s %s is suspended.", kind, name);
    if (l->wait.text != NULL)
        return xasprintf("%s %s is suspended: waiting for %s", kind, name, l->wait.text);
    bool saves = plan_step(l, waited_for) == 0 && waited_for->phase == POD_RUNNING;
    return xasprintf("%s %s is suspended: waiting for %s to %s", kind, name, waited_for->name,
                     saves ? "save its checkpoint" : "leave");
}

static void tell(struct reconcile *l, const char *text)
{
    bool before = job_status_is(l->st, COND_SUSPENDED);
    const char *reason = plan_reason(l, COND_SUSPENDED);
    auto_free char *first = xasprintf("%s %s is suspended.", l->k->resource.kind, l->v->name);

    if (job_status_is(l->st, COND_RUNNING) || job_status_is(l->st, COND_RESTARTING))
        plan_set(l, COND_RUNNING, false, reason, first);
    if (job_status_is(l->st, COND_STALLED))
        plan_set(l, COND_STALLED, false, reason, first);
    plan_forget_waiting(l);
    plan_set(l, COND_SUSPENDED, true, reason, text);
    if (!before)
        plan_event(l, false, reason, ROLE_COUNT, "%s", first);
}

void plan_suspend(struct reconcile *l)
{
    const struct pod_info *waited_for = NULL;
    for (int step = 0; step < 3 && waited_for == NULL; step++)
        waited_for = leave(l, step);
    if (waited_for == NULL || !l->own)
        drop_services(l);
    drop_group(l);
    plan_force(l);
    const struct pod_info *kept = waited_for == NULL ? held(l) : NULL;
    const struct condition *before = job_status_find(l->was, COND_SUSPENDED);
    auto_free char *text = text_of(l, waited_for, kept);
    tell(l, text);
    if (kept != NULL && (before == NULL || !str_eq(before->message, text)))
        plan_event(l, true, "PodKeptByFinalizer", kept->role, "pod %s has ended, but the finalizer %s keeps it",
                   kept->name, kept->held_by);
}
