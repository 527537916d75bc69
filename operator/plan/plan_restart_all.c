/* runPolicy.restartScope Job: one failure restarts all replicas that train together.
 *
 * The plan that starts such a restart counts each replica in the status, in one write, before any pod is deleted; for
 * backoffLimit it counts as one. From then on, pods with smaller numbers than the status are from before the restart:
 * they are deleted, their ends are ignored, and no replacement is created before all of them are deleted. So any
 * operator, after any crash, completes the restart and counts nothing twice.
 */
#include "plan/plan_internal.h"

bool plan_restarts_together(const struct reconcile *rec, enum role r)
{
    return rec->spec->scope == SCOPE_JOB && r != ROLE_EVALUATOR;
}

bool plan_is_superseded(const struct reconcile *rec, const struct pod_info *p)
{
    return plan_restarts_together(rec, p->role) && plan_is_counted(rec, p);
}

/* Our worker exits with 0 only when the whole job has finished, so it is not restarted. Another program has completed
 * its part of a run that now starts again. */
static bool is_done(const struct reconcile *rec, enum role r, int i)
{
    return rec->own_binaries && reconcile_completed(rec, r, i);
}

static void count_replica(struct reconcile *rec, enum role r, int i)
{
    const struct pod_info *p = rec->slots[r][i].pod;
    bool completed = index_set_remove(&rec->status->roles[r].completed, i);

    if (completed || (p != NULL && !pod_terminating(p)))
        plan_count_restart(rec, r, i, p, false);
}

static void count_role(struct reconcile *rec, enum role r)
{
    for (int i = 0; i < reconcile_replicas(rec, r); i++)
        if (!is_done(rec, r, i))
            count_replica(rec, r, i);
}

static void delete_superseded(struct reconcile *rec, enum role r)
{
    for (int i = 0; i < reconcile_replicas(rec, r); i++) {
        struct replica_slot *s = &rec->slots[r][i];
        if (s->pod == NULL || s->pod->creating || s->leaving || pod_terminating(s->pod) ||
            !plan_is_superseded(rec, s->pod) || is_done(rec, r, i))
            continue;
        plan_delete_pod(rec, s->pod, -1);
        s->leaving = true; /* also an orphan, which is adopted first */
    }
}

void plan_restart_all(struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        if (!plan_restarts_together(rec, (enum role)r))
            continue;
        if (rec->restart_all)
            count_role(rec, (enum role)r);
        delete_superseded(rec, (enum role)r);
    }
}

bool plan_restart_all_pending(const struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(rec, (enum role)r); i++) {
            const struct pod_info *p = rec->slots[r][i].pod;
            if (p != NULL && plan_is_superseded(rec, p) && !is_done(rec, (enum role)r, i))
                return true;
        }
    return false;
}
