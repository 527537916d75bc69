/* The end of a job: success, failure, and the cleanup afterwards. */
#include "plan/plan_internal.h"

/* After success our ps and workers exit by themselves once the chief has notified them, within LEAVE_MS. LATE_MS: until
 * the last kubelet has reported which pods had started by then. */
enum { LEAVE_MS = 30000, LATE_MS = 5000 };
enum { SHOWN_MS = 60000 }; /* an ended job can be seen for so long, or for its whole TTL */

static void count_active_as_succeeded(struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        rec->status->roles[r].succeeded += rec->status->roles[r].active;
        rec->status->roles[r].active = 0;
    }
}

static void report_group_end(struct reconcile *rec)
{
    if (rec->settings->gang && rec->started)
        plan_add_event(rec, false, "JobTerminated", ROLE_COUNT, "Job has been terminated. Deleting PodGroup");
}

/* The end may be noticed late, by an operator that was down. Clocks of nodes may be ahead. */
static int64_t completion_ms(const struct reconcile *rec)
{
    int64_t ended = rec->decided_ms > 0 ? MIN(rec->decided_ms, rec->now) : rec->now;
    return MAX(ended, MIN(rec->status->start_ms, rec->now));
}

/* When the last of the pods ended that had to succeed. */
static int64_t succeeded_ms(const struct reconcile *rec)
{
    int64_t last = 0;
    bool all = rec->leader == ROLE_WORKER && rec->spec->all_workers;
    for (int i = 0; i < (all ? reconcile_replicas(rec, rec->leader) : 1); i++) {
        const struct replica_slot *slot = reconcile_slot(rec, rec->leader, i);
        last = MAX(last, slot != NULL && slot->pod != NULL ? slot->pod->ended_ms : 0);
    }
    return last;
}

void plan_succeed(struct reconcile *rec)
{
    auto_free char *text =
        xasprintf("%s %s/%s successfully completed.", rec->kind->resource.kind, rec->spec->ns, rec->spec->name);
    rec->decided_ms = succeeded_ms(rec);
    rec->status->completion_ms = completion_ms(rec);
    plan_clear_waiting(rec);
    plan_set_condition(rec, COND_SUCCEEDED, true, plan_reason(rec, COND_SUCCEEDED), text);
    plan_add_event(rec, false, plan_reason(rec, COND_SUCCEEDED), ROLE_COUNT, "%s", text);
    plan_count_pods(rec);
    count_active_as_succeeded(rec);
    report_group_end(rec);
}

void plan_fail(struct reconcile *rec, const char *reason, char *message, bool warning)
{
    auto_free char *text = message;
    rec->status->completion_ms = completion_ms(rec);
    plan_set_condition(rec, COND_FAILED, true, reason, text);
    plan_add_event(rec, warning, plan_reason(rec, COND_FAILED), ROLE_COUNT, "%s", text);
    plan_count_pods(rec);
    report_group_end(rec);
}

/* ---- cleaning up ---- */

static bool is_to_clean(const struct reconcile *rec, const struct pod_info *p)
{
    if (!reconcile_ours(rec, p) || p->creating || pod_terminating(p))
        return false;
    return rec->spec->clean == CLEAN_ALL || !pod_ended(p) || p->lingers; /* a lingering pod still has a sidecar */
}

/* After a failure, too, our replicas stop in order, because the chief may have to save a checkpoint. */
static int first_shutdown_step(const struct reconcile *rec)
{
    int step = 2;
    for (size_t i = 0; i < rec->observed->npods; i++) {
        const struct pod_info *p = rec->observed->pods[i];
        if (reconcile_ours(rec, p) && !pod_ended(p) && p->held_by == NULL)
            step = MIN(step, plan_shutdown_step(rec, p));
    }
    return step;
}

static void clean_pods(struct reconcile *rec)
{
    int step = job_status_is(rec->status, COND_FAILED) ? first_shutdown_step(rec) : 2;
    for (size_t i = 0; i < rec->observed->npods; i++)
        if (is_to_clean(rec, rec->observed->pods[i]) && plan_shutdown_step(rec, rec->observed->pods[i]) <= step)
            plan_delete_pod(rec, rec->observed->pods[i], -1);
    if (rec->own_binaries && job_status_is(rec->status, COND_FAILED))
        plan_force_delete(rec); /* pods on a dead node must not block the shutdown */
}

/* An ended pod that is kept keeps its service. */
static bool has_staying_pod(const struct reconcile *rec, const struct service_info *s)
{
    const struct replica_slot *slot = reconcile_slot(rec, s->role, s->index);
    return slot != NULL && slot->pod != NULL && pod_ended(slot->pod) && !pod_terminating(slot->pod) && !slot->leaving;
}

static void clean_services(struct reconcile *rec)
{
    for (size_t i = 0; i < rec->observed->nservices; i++) {
        const struct service_info *s = rec->observed->services[i];
        if (s->creating || s->deleting || !reconcile_our_service(rec, s))
            continue;
        if (rec->spec->clean == CLEAN_ALL || (s->index >= 0 && !has_staying_pod(rec, s)))
            plan_delete_service(rec, s);
    }
}

/* A replica that starts after the leader's end has no chief and would wait forever. An evaluator still has the last
 * checkpoint to evaluate. */
static bool started_too_late(const struct reconcile *rec, const struct pod_info *p)
{
    const struct replica_slot *slot = reconcile_slot(rec, rec->leader, 0);
    const struct pod_info *leader = slot != NULL ? slot->pod : NULL;
    if (!reconcile_ours(rec, p) || p->creating || pod_terminating(p) || p->role == ROLE_EVALUATOR)
        return false;
    if (rec->spec->clean == CLEAN_NONE || leader == NULL || p->phase != POD_RUNNING) /* policy None keeps every log */
        return p->phase == POD_PENDING;
    return leader->ended_ms > 0 && p->started_ms > leader->ended_ms;
}

static int64_t late_due_ms(const struct reconcile *rec)
{
    return rec->status->completion_ms + LATE_MS;
}

static void delete_late_pods(struct reconcile *rec)
{
    int64_t due = late_due_ms(rec);
    for (size_t i = 0; i < rec->observed->npods; i++) {
        if (!started_too_late(rec, rec->observed->pods[i]))
            continue;
        if (rec->now >= due)
            plan_delete_pod(rec, rec->observed->pods[i], -1);
        else
            plan_requeue_at(rec, due);
    }
}

/* Does not wait for a late pod that is deleted now. */
static bool any_pod_runs(const struct reconcile *rec)
{
    for (size_t i = 0; i < rec->observed->npods; i++) {
        const struct pod_info *p = rec->observed->pods[i];
        if (reconcile_ours(rec, p) && pod_runs(p) && !(rec->now >= late_due_ms(rec) && started_too_late(rec, p)))
            return true;
    }
    return false;
}

static bool wait_for_exits(struct reconcile *rec)
{
    int64_t until = rec->status->completion_ms + LEAVE_MS;
    if (rec->now >= until || !any_pod_runs(rec))
        return false;
    plan_requeue_at(rec, until);
    return true;
}

static void clean_dependents(struct reconcile *rec)
{
    bool well = rec->own_binaries && job_status_is(rec->status, COND_SUCCEEDED);
    if (well && (rec->spec->clean == CLEAN_NONE || wait_for_exits(rec))) {
        delete_late_pods(rec);
    } else if (rec->spec->clean != CLEAN_NONE) {
        clean_pods(rec);
        clean_services(rec);
    }
}

static void clean_group(struct reconcile *rec)
{
    bool there = rec->observed->group == GROUP_PENDING || rec->observed->group == GROUP_ADMITTED;
    bool just_ended = !job_status_finished(rec->prev);
    if (rec->settings->gang && (there || (rec->observed->group == GROUP_UNKNOWN && just_ended && rec->started)))
        plan_add_action(rec, ACT_DELETE_GROUP, ROLE_COUNT, -1);
}

/* When the end was written. Another controller may have written it without a completion time. */
static int64_t ended_ms(const struct reconcile *rec)
{
    const struct condition *c =
        job_status_find(rec->status, job_status_is(rec->status, COND_FAILED) ? COND_FAILED : COND_SUCCEEDED);
    return c->changed_ms > 0 ? c->changed_ms : rec->now;
}

/* Counted from the end; one that was noticed late is shown for a while before. */
static void apply_ttl(struct reconcile *rec)
{
    if (rec->spec->ttl_s < 0 || rec->spec->suspend)
        return;
    int64_t ttl_ms = rec->spec->ttl_s * 1000;
    int64_t due = MAX(rec->status->completion_ms + ttl_ms, ended_ms(rec) + MIN(ttl_ms, (int64_t)SHOWN_MS));
    if (rec->now >= due)
        plan_add_action(rec, ACT_DELETE_JOB, ROLE_COUNT, -1);
    else
        plan_requeue_at(rec, due);
}

/* A failed job's pods may continue (policy None) or need time to stop: the status has the number that still run. */
static void recount_active(struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        rec->status->roles[r].active = 0;
        for (int i = 0; i < reconcile_replicas(rec, (enum role)r); i++)
            rec->status->roles[r].active += pod_runs(rec->slots[r][i].pod) && !rec->slots[r][i].leaving;
    }
}

void plan_clean_up(struct reconcile *rec)
{
    if (rec->status->completion_ms == 0)
        rec->status->completion_ms = ended_ms(rec);
    clean_dependents(rec);
    if (job_status_is(rec->status, COND_FAILED))
        recount_active(rec);
    clean_group(rec);
    plan_tensorboard(rec);
    apply_ttl(rec);
}
