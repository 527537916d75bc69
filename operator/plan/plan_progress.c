/* Writes the chief's progress into the status, and applies stallPolicy to a job without progress for stallSeconds.
 */
#include <string.h>

#include "plan/plan_internal.h"

/* backoffLimit counts restarts without progress: a step that was never reached before resets the count. The kubelet's
 * restarts of existing pods would be added again, so they are subtracted. */
static void forget_restarts(struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        int64_t present = 0;
        for (int i = 0; i < reconcile_replicas(rec, (enum role)r); i++) {
            const struct pod_info *p = rec->slots[r][i].pod;
            if (p != NULL && index_counts_get(&rec->status->roles[r].again, i) <= p->restarts)
                present += p->container_restarts;
        }
        rec->status->roles[r].counted = -present;
    }
}

void plan_merge_progress(struct reconcile *rec)
{
    const struct training_progress *is = &rec->observed->progress;
    struct training_progress *st = &rec->status->progress;
    int64_t updated_ms = st->updated_ms, highest = st->present ? st->highest_step : is->step;

    if (!is->present)
        return;
    if (!st->present || is->step != st->step)
        updated_ms = rec->now;
    if (is->step > highest && rec->kind->own_processes)
        forget_restarts(rec);
    free(st->metrics);
    *st = *is;
    st->metrics = is->metrics != NULL ? xstrdup(is->metrics) : NULL;
    st->waiting[0] = '\0';
    st->updated_ms = updated_ms;
    st->highest_step = MAX(highest, is->step);
}

/* ---- stalls ---- */

static void restart_replicas(struct reconcile *rec, enum role r)
{
    for (int i = 0; i < reconcile_replicas(rec, r); i++) {
        struct replica_slot *s = &rec->slots[r][i];
        if (s->pod == NULL || s->pod->creating || s->leaving || pod_terminating(s->pod) || pod_ended(s->pod))
            continue;
        plan_count_restart(rec, r, i, s->pod, r == rec->leader && i == 0);
        plan_delete_pod(rec, s->pod, -1);
    }
}

/* A counted pod is deleted by a later reconcile, once the count is written. */
static void restart_the_counted(struct reconcile *rec, enum role r)
{
    for (int i = 0; i < reconcile_replicas(rec, r); i++) {
        const struct replica_slot *s = &rec->slots[r][i];
        if (s->pod != NULL && !s->pod->creating && !s->leaving && !pod_terminating(s->pod) && !pod_ended(s->pod) &&
            index_counts_get(&rec->status->roles[r].again, i) > s->pod->restarts)
            plan_delete_pod(rec, s->pod, -1);
    }
}

static void apply_stall_policy(struct reconcile *rec, const char *text)
{
    if (rec->spec->stall == STALL_FAIL) {
        plan_fail(rec, "Stalled", xstrdup(text), FAIL_WARNING);
    } else if (rec->spec->stall == STALL_RESTART && plan_exceeds_backoff_limit(rec, 1)) {
        plan_fail_backoff_limit(rec, NULL, text);
    } else if (rec->spec->stall == STALL_RESTART && plan_restarts_together(rec, rec->leader)) {
        plan_set_restart_reason(rec, ROLE_COUNT, xasprintf("restarting all replicas: %s", text), true);
        plan_count_restart(rec, rec->leader, 0, rec->slots[rec->leader][0].pod, true);
        rec->restart_all = true;
        plan_restart_all(rec);
    } else if (rec->spec->stall == STALL_RESTART) {
        bool alone = rec->leader == ROLE_WORKER;
        plan_set_restart_reason(rec, ROLE_COUNT,
                                xasprintf("restarting %s%sworkers: %s",
                                          alone ? "" : job_spec_role_name(rec->spec, rec->leader), alone ? "" : " and ",
                                          text),
                                true);
        restart_replicas(rec, rec->leader);
        if (rec->leader != ROLE_WORKER)
            restart_replicas(rec, ROLE_WORKER);
    }
}

static void report_stall(struct reconcile *rec)
{
    auto_free char *text = xasprintf("no step for %lld s; last step %lld", (long long)rec->spec->stall_s,
                                     (long long)rec->status->progress.step);
    plan_set_condition(rec, COND_STALLED, true, "NoProgress", text);
    plan_add_event(rec, true, plan_reason(rec, COND_STALLED), ROLE_COUNT, "%s", text);
    apply_stall_policy(rec, text);
}

/* The time is measured from the last new step, or from the last start of the job. */
static int64_t stall_at_ms(const struct reconcile *rec)
{
    const struct condition *running = job_status_find(rec->status, COND_RUNNING);
    return MAX(rec->status->progress.updated_ms, running->changed_ms) + rec->spec->stall_s * 1000;
}

void plan_detect_stall(struct reconcile *rec)
{
    const struct replica_slot *leader = reconcile_slot(rec, rec->leader, 0);

    if (job_status_is(rec->status, COND_STALLED) && rec->status->progress.updated_ms > rec->prev->progress.updated_ms)
        plan_set_condition(rec, COND_STALLED, false, "Progress", "the step advances again");
    if (rec->spec->stall == STALL_RESTART && job_status_is(rec->status, COND_STALLED) &&
        job_status_is(rec->status, COND_RESTARTING)) {
        restart_the_counted(rec, rec->leader);
        if (rec->leader != ROLE_WORKER)
            restart_the_counted(rec, ROLE_WORKER);
    }
    if (rec->spec->stall_s <= 0 || !rec->status->progress.present || leader == NULL || !pod_runs(leader->pod) ||
        rec->restart_reason != NULL)
        return;
    if (!job_status_is(rec->status, COND_RUNNING) || job_status_is(rec->status, COND_STALLED))
        return;
    if (rec->now >= stall_at_ms(rec))
        report_stall(rec);
    else
        plan_requeue_at(rec, stall_at_ms(rec));
}
