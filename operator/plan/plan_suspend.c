/* Suspension: all pods of a TFJob are deleted at once; our processes stop in order, so that no training progress is
 * lost. */
#include "plan/plan_internal.h"

/* The leader saves a checkpoint first, which needs the ps; workers stop before ps. Replicas that have not started or
 * have ended are ignored. */
int plan_shutdown_step(const struct reconcile *rec, const struct pod_info *p)
{
    if (!rec->own_binaries || pod_ended(p) || p->phase == POD_PENDING)
        return 0;
    if (p->role == rec->leader && (p->role == ROLE_CHIEF || p->index == 0))
        return 0;
    return p->role == ROLE_PS ? 2 : 1;
}

/* The replica for which that step waits; NULL: all have stopped. */
static const struct pod_info *delete_step(struct reconcile *rec, int step)
{
    const struct pod_info *waited_for = NULL;
    for (size_t i = 0; i < rec->observed->npods; i++) {
        const struct pod_info *p = rec->observed->pods[i];
        if (!reconcile_ours(rec, p) || plan_shutdown_step(rec, p) != step || p->held_by != NULL)
            continue;
        if (!p->creating && !pod_terminating(p))
            plan_delete_pod(rec, p, -1);
        if (waited_for == NULL || waited_for->phase != POD_RUNNING)
            waited_for = p;
    }
    return waited_for;
}

const struct pod_info *plan_stop_pods(struct reconcile *rec)
{
    const struct pod_info *waited_for = NULL;
    for (int step = 0; step < 3 && waited_for == NULL; step++)
        waited_for = delete_step(rec, step);
    return waited_for;
}

static void delete_services(struct reconcile *rec)
{
    for (size_t i = 0; i < rec->observed->nservices; i++) {
        const struct service_info *s = rec->observed->services[i];
        if (!s->creating && !s->deleting && reconcile_our_service(rec, s))
            plan_delete_service(rec, s);
    }
}

static void delete_group(struct reconcile *rec)
{
    bool there = rec->observed->group == GROUP_PENDING || rec->observed->group == GROUP_ADMITTED;
    bool just_now = !job_status_is(rec->prev, COND_SUSPENDED);
    if (rec->settings->gang && (there || (rec->observed->group == GROUP_UNKNOWN && just_now && rec->started)))
        plan_add_action(rec, ACT_DELETE_GROUP, ROLE_COUNT, -1);
}

/* The first pod that has ended and whose object remains; NULL: none. */
static const struct pod_info *kept_by_finalizer(const struct reconcile *rec)
{
    for (size_t i = 0; i < rec->observed->npods; i++)
        if (rec->observed->pods[i]->held_by != NULL && reconcile_ours(rec, rec->observed->pods[i]))
            return rec->observed->pods[i];
    return NULL;
}

static char *suspended_message(const struct reconcile *rec, const struct pod_info *waited_for,
                               const struct pod_info *kept)
{
    const char *kind = rec->kind->resource.kind, *name = rec->spec->name;
    if (kept != NULL)
        return xasprintf("%s %s is suspended; pod %s has ended, but the finalizer %s keeps it", kind, name, kept->name,
                         kept->held_by);
    if (!rec->own_binaries || waited_for == NULL)
        return xasprintf("%s %s is suspended.", kind, name);
    if (rec->waiting.text != NULL)
        return xasprintf("%s %s is suspended: waiting for %s", kind, name, rec->waiting.text);
    bool saves = plan_shutdown_step(rec, waited_for) == 0 && waited_for->phase == POD_RUNNING;
    return xasprintf("%s %s is suspended: waiting for %s to %s", kind, name, waited_for->name,
                     saves ? "save its checkpoint" : "terminate");
}

static void set_suspended(struct reconcile *rec, const char *text)
{
    bool before = job_status_is(rec->status, COND_SUSPENDED);
    const char *reason = plan_reason(rec, COND_SUSPENDED);
    auto_free char *first = xasprintf("%s %s is suspended.", rec->kind->resource.kind, rec->spec->name);

    if (job_status_is(rec->status, COND_RUNNING) || job_status_is(rec->status, COND_RESTARTING))
        plan_set_condition(rec, COND_RUNNING, false, reason, first);
    if (job_status_is(rec->status, COND_STALLED))
        plan_set_condition(rec, COND_STALLED, false, reason, first);
    plan_clear_waiting(rec);
    plan_set_condition(rec, COND_SUSPENDED, true, reason, text);
    if (!before)
        plan_add_event(rec, false, reason, ROLE_COUNT, "%s", first);
}

void plan_suspend(struct reconcile *rec)
{
    const struct pod_info *waited_for = plan_stop_pods(rec);
    if (waited_for == NULL || !rec->own_binaries)
        delete_services(rec);
    delete_group(rec);
    plan_force_delete(rec);
    const struct pod_info *kept = waited_for == NULL ? kept_by_finalizer(rec) : NULL;
    const struct condition *before = job_status_find(rec->prev, COND_SUSPENDED);
    auto_free char *text = suspended_message(rec, waited_for, kept);
    set_suspended(rec, text);
    if (kept != NULL && (before == NULL || !str_eq(before->message, text)))
        plan_add_event(rec, true, "PodKeptByFinalizer", kept->role, "pod %s has ended, but the finalizer %s keeps it",
                       kept->name, kept->held_by);
}
