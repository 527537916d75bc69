/* What the chief says of itself, and what is done when it says nothing new for too long. */
#include <string.h>

#include "plan/plan_internal.h"

/* backoffLimit counts restarts without progress: what was counted is forgotten when a step is reached that never was.
 * Restarts by the kubelet of pods that are still there would be summed up again, so they are taken off. */
static void forget_restarts(struct reconcile *l)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        int64_t present = 0;
        for (int i = 0; i < reconcile_replicas(l, (enum role)r); i++) {
            const struct pod_info *p = l->slots[r][i].pod;
            if (p != NULL && index_counts_get(&l->st->roles[r].again, i) <= p->restarts)
                present += p->container_restarts;
        }
        l->st->roles[r].counted = -present;
    }
}

void plan_merge_progress(struct reconcile *l)
{
    const struct training_progress *is = &l->o->progress;
    struct training_progress *st = &l->st->progress;
    int64_t updated_ms = st->updated_ms, highest = st->present ? st->highest_step : is->step;

    if (!is->present)
        return;
    if (!st->present || is->step != st->step)
        updated_ms = l->now;
    if (is->step > highest && !l->k->disruptions_count)
        forget_restarts(l);
    free(st->metrics);
    *st = *is;
    st->metrics = is->metrics != NULL ? xstrdup(is->metrics) : NULL;
    st->updated_ms = updated_ms;
    st->highest_step = MAX(highest, is->step);
}

/* ---- stalls ---- */

static void restart_replicas(struct reconcile *l, enum role r)
{
    for (int i = 0; i < reconcile_replicas(l, r); i++) {
        struct slot *s = &l->slots[r][i];
        if (s->pod == NULL || s->pod->creating || s->leaving || pod_terminating(s->pod) || pod_ended(s->pod))
            continue;
        plan_count_restart(l, r, i, s->pod, r == l->leader && i == 0);
        plan_delete(l, s->pod, -1);
    }
}

/* Who was counted goes when the count is written, which a later look finds. */
static void restart_the_counted(struct reconcile *l, enum role r)
{
    for (int i = 0; i < reconcile_replicas(l, r); i++) {
        const struct slot *s = &l->slots[r][i];
        if (s->pod != NULL && !s->pod->creating && !s->leaving && !pod_terminating(s->pod) && !pod_ended(s->pod) &&
            index_counts_get(&l->st->roles[r].again, i) > s->pod->restarts)
            plan_delete(l, s->pod, -1);
    }
}

static void act_on_stall(struct reconcile *l, const char *text)
{
    if (l->v->stall == STALL_FAIL) {
        plan_fail(l, "Stalled", xstrdup(text), FAIL_WARNING);
    } else if (l->v->stall == STALL_RESTART && plan_over_limit(l, 1)) {
        plan_fail_by_limit(l, NULL, text);
    } else if (l->v->stall == STALL_RESTART && plan_is_together(l, l->leader)) {
        plan_because(l, ROLE_COUNT, xasprintf("restarting all replicas: %s", text), true);
        plan_count_restart(l, l->leader, 0, l->slots[l->leader][0].pod, true);
        l->round = true;
        plan_round(l);
    } else if (l->v->stall == STALL_RESTART) {
        bool alone = l->leader == ROLE_WORKER;
        plan_because(l, ROLE_COUNT,
                     xasprintf("restarting %s%sworkers: %s", alone ? "" : job_spec_role_name(l->v, l->leader),
                               alone ? "" : " and ", text),
                     true);
        restart_replicas(l, l->leader);
        if (l->leader != ROLE_WORKER)
            restart_replicas(l, ROLE_WORKER);
    }
}

static void stalled(struct reconcile *l)
{
    auto_free char *text =
        xasprintf("no step for %lld s; last step %lld", (long long)l->v->stall_s, (long long)l->st->progress.step);
    plan_set(l, COND_STALLED, true, "NoProgress", text);
    plan_event(l, true, plan_reason(l, COND_STALLED), ROLE_COUNT, "%s", text);
    act_on_stall(l, text);
}

/* The clock runs from the last new step, or from when the job began to run (again). */
static int64_t stall_ms(const struct reconcile *l)
{
    const struct condition *running = job_status_find(l->st, COND_RUNNING);
    return MAX(l->st->progress.updated_ms, running->changed_ms) + l->v->stall_s * 1000;
}

void plan_stall(struct reconcile *l)
{
    const struct slot *leader = reconcile_slot(l, l->leader, 0);

    if (job_status_is(l->st, COND_STALLED) && l->st->progress.updated_ms > l->was->progress.updated_ms)
        plan_set(l, COND_STALLED, false, "Progress", "the step advances again");
    if (l->v->stall == STALL_RESTART && job_status_is(l->st, COND_STALLED) && job_status_is(l->st, COND_RESTARTING)) {
        restart_the_counted(l, l->leader);
        if (l->leader != ROLE_WORKER)
            restart_the_counted(l, ROLE_WORKER);
    }
    if (l->v->stall_s <= 0 || !l->st->progress.present || leader == NULL || !pod_runs(leader->pod) || l->cause != NULL)
        return;
    if (!job_status_is(l->st, COND_RUNNING) || job_status_is(l->st, COND_STALLED))
        return;
    if (l->now >= stall_ms(l))
        stalled(l);
    else
        plan_at(l, stall_ms(l));
}
