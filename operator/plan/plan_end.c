/* The end of a job: success, failure, and what is cleaned up afterwards. */
#include "plan/plan_internal.h"

/* After success our ps and workers end by themselves as soon as the chief has told them; they get this long. LATE_MS:
 * until the last kubelet has told who had begun by then. */
enum { LEAVE_MS = 30000, LATE_MS = 5000 };

static void fold_active(struct reconcile *l)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        l->st->roles[r].succeeded += l->st->roles[r].active;
        l->st->roles[r].active = 0;
    }
}

static void end_group(struct reconcile *l)
{
    if (l->s->gang && l->begun)
        plan_event(l, false, "JobTerminated", ROLE_COUNT, "Job has been terminated. Deleting PodGroup");
}

void plan_succeed(struct reconcile *l)
{
    auto_free char *text = xasprintf("%s %s/%s successfully completed.", l->k->resource.kind, l->v->ns, l->v->name);
    l->st->completion_ms = l->now;
    plan_forget_waiting(l);
    plan_set(l, COND_SUCCEEDED, true, plan_reason(l, COND_SUCCEEDED), text);
    plan_event(l, false, plan_reason(l, COND_SUCCEEDED), ROLE_COUNT, "%s", text);
    plan_count_pods(l);
    fold_active(l);
    end_group(l);
}

void plan_fail(struct reconcile *l, const char *reason, char *message, bool warning)
{
    auto_free char *text = message;
    l->st->completion_ms = l->now;
    plan_set(l, COND_FAILED, true, reason, text);
    plan_event(l, warning, plan_reason(l, COND_FAILED), ROLE_COUNT, "%s", text);
    plan_count_pods(l);
    end_group(l);
}

/* ---- cleaning up ---- */

static bool to_be_cleaned(const struct reconcile *l, const struct pod_info *p)
{
    if (!reconcile_ours(l, p) || p->creating || pod_terminating(p))
        return false;
    return l->v->clean == CLEAN_ALL || !pod_ended(p) || p->lingers; /* a sidecar still runs in one that lingers */
}

/* Also after a failure our replicas leave in order: the chief may have something to save. */
static int step_to_leave(const struct reconcile *l)
{
    int step = 2;
    for (size_t i = 0; i < l->o->npods; i++) {
        const struct pod_info *p = l->o->pods[i];
        if (reconcile_ours(l, p) && !pod_ended(p) && p->held_by == NULL)
            step = MIN(step, plan_step(l, p));
    }
    return step;
}

static void clean_pods(struct reconcile *l)
{
    int step = job_status_is(l->st, COND_FAILED) ? step_to_leave(l) : 2;
    for (size_t i = 0; i < l->o->npods; i++)
        if (to_be_cleaned(l, l->o->pods[i]) && plan_step(l, l->o->pods[i]) <= step)
            plan_delete(l, l->o->pods[i], -1);
    if (l->own && job_status_is(l->st, COND_FAILED))
        plan_force(l); /* nobody waits for ever for who left before */
}

/* An ended pod that stays keeps its service. */
static bool has_staying_pod(const struct reconcile *l, const struct service_info *s)
{
    const struct slot *slot = reconcile_slot(l, s->role, s->index);
    return slot != NULL && slot->pod != NULL && pod_ended(slot->pod) && !pod_terminating(slot->pod) && !slot->leaving;
}

static void clean_services(struct reconcile *l)
{
    for (size_t i = 0; i < l->o->nservices; i++) {
        const struct service_info *s = l->o->services[i];
        if (s->creating || s->deleting || !reconcile_our_service(l, s))
            continue;
        if (l->v->clean == CLEAN_ALL || (s->index >= 0 && !has_staying_pod(l, s)))
            plan_delete_service(l, s);
    }
}

/* Who begins after the leader's end finds nobody and would wait in vain. An evaluator has the last checkpoint to look
 * at. */
static bool came_late(const struct reconcile *l, const struct pod_info *p)
{
    const struct slot *slot = reconcile_slot(l, l->leader, 0);
    const struct pod_info *leader = slot != NULL ? slot->pod : NULL;
    if (!reconcile_ours(l, p) || p->creating || pod_terminating(p) || p->role == ROLE_EVALUATOR)
        return false;
    if (l->v->clean == CLEAN_NONE || leader == NULL || p->phase != POD_RUNNING) /* None keeps every log */
        return p->phase == POD_PENDING;
    return leader->ended_ms > 0 && p->started_ms > leader->ended_ms;
}

static int64_t late_due_ms(const struct reconcile *l)
{
    return l->st->completion_ms + LATE_MS;
}

static void dismiss_late(struct reconcile *l)
{
    int64_t due = late_due_ms(l);
    for (size_t i = 0; i < l->o->npods; i++) {
        if (!came_late(l, l->o->pods[i]))
            continue;
        if (l->now >= due)
            plan_delete(l, l->o->pods[i], -1);
        else
            plan_at(l, due);
    }
}

/* One that is dismissed now is not waited for. */
static bool any_of_ours_runs(const struct reconcile *l)
{
    for (size_t i = 0; i < l->o->npods; i++) {
        const struct pod_info *p = l->o->pods[i];
        if (reconcile_ours(l, p) && pod_runs(p) && !(l->now >= late_due_ms(l) && came_late(l, p)))
            return true;
    }
    return false;
}

static bool end_by_themselves(struct reconcile *l)
{
    int64_t until = l->st->completion_ms + LEAVE_MS;
    if (l->now >= until || !any_of_ours_runs(l))
        return false;
    plan_at(l, until);
    return true;
}

static void clean(struct reconcile *l)
{
    bool well = l->own && job_status_is(l->st, COND_SUCCEEDED);
    if (well && (l->v->clean == CLEAN_NONE || end_by_themselves(l))) {
        dismiss_late(l);
    } else if (l->v->clean != CLEAN_NONE) {
        clean_pods(l);
        clean_services(l);
    }
}

static void clean_group(struct reconcile *l)
{
    bool there = l->o->group == GROUP_PENDING || l->o->group == GROUP_ADMITTED;
    bool just_ended = !job_status_finished(l->was);
    if (l->s->gang && (there || (l->o->group == GROUP_UNKNOWN && just_ended && l->begun)))
        plan_add(l, ACT_DELETE_GROUP, ROLE_COUNT, -1);
}

static void live_on(struct reconcile *l)
{
    if (l->v->ttl_s < 0 || l->v->suspend)
        return;
    int64_t due = l->st->completion_ms + l->v->ttl_s * 1000;
    if (l->now >= due)
        plan_add(l, ACT_DELETE_JOB, ROLE_COUNT, -1);
    else
        plan_at(l, due);
}

/* Another controller may have ended it without saying when. */
static int64_t ended_ms(const struct reconcile *l)
{
    const struct condition *c =
        job_status_find(l->st, job_status_is(l->st, COND_FAILED) ? COND_FAILED : COND_SUCCEEDED);
    return c->changed_ms > 0 ? c->changed_ms : l->now;
}

/* A failed job's pods may run on (None) or need time to go: the status says how many still run. */
static void recount_active(struct reconcile *l)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        l->st->roles[r].active = 0;
        for (int i = 0; i < reconcile_replicas(l, (enum role)r); i++)
            l->st->roles[r].active += pod_runs(l->slots[r][i].pod) && !l->slots[r][i].leaving;
    }
}

void plan_clean_up(struct reconcile *l)
{
    if (l->st->completion_ms == 0)
        l->st->completion_ms = ended_ms(l);
    clean(l);
    if (job_status_is(l->st, COND_FAILED))
        recount_active(l);
    clean_group(l);
    plan_tensorboard(l);
    live_on(l);
}
