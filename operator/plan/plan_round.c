/* runPolicy.restartScope Job: one failure restarts all replicas that train together.
 *
 * The plan that begins such a round counts each of them in the status, in one write, before any pod is deleted; for
 * backoffLimit it counts one. From then on the pods that bear smaller numbers than the status are those of before: they
 * are deleted, their ends mean nothing, and none is made before all of them have gone. So any operator, after any
 * crash, finishes the round and counts nothing twice.
 */
#include "plan/plan_internal.h"

bool plan_is_together(const struct reconcile *l, enum role r)
{
    return l->v->scope == SCOPE_JOB && r != ROLE_EVALUATOR;
}

bool plan_is_of_before(const struct reconcile *l, const struct pod_info *p)
{
    return plan_is_together(l, p->role) && plan_counted(l, p);
}

/* Our worker exits with 0 when the whole job has finished, so it has nothing to do again. Another program has done its
 * part in a world that now begins anew. */
static bool done_for_good(const struct reconcile *l, enum role r, int i)
{
    return l->own && reconcile_completed(l, r, i);
}

static void count_one(struct reconcile *l, enum role r, int i)
{
    const struct pod_info *p = l->slots[r][i].pod;
    bool completed = index_set_remove(&l->st->roles[r].completed, i);

    if (completed || (p != NULL && !pod_terminating(p)))
        plan_count_restart(l, r, i, p, false);
}

static void count_all(struct reconcile *l, enum role r)
{
    for (int i = 0; i < reconcile_replicas(l, r); i++)
        if (!done_for_good(l, r, i))
            count_one(l, r, i);
}

static void send_away(struct reconcile *l, enum role r)
{
    for (int i = 0; i < reconcile_replicas(l, r); i++) {
        struct slot *s = &l->slots[r][i];
        if (s->pod == NULL || s->pod->creating || s->leaving || pod_terminating(s->pod) ||
            !plan_is_of_before(l, s->pod) || done_for_good(l, r, i))
            continue;
        plan_delete(l, s->pod, -1);
        s->leaving = true; /* also an orphan, which is adopted first */
    }
}

void plan_round(struct reconcile *l)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        if (!plan_is_together(l, (enum role)r))
            continue;
        if (l->round)
            count_all(l, (enum role)r);
        send_away(l, (enum role)r);
    }
}

bool plan_round_lasts(const struct reconcile *l)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(l, (enum role)r); i++) {
            const struct pod_info *p = l->slots[r][i].pod;
            if (p != NULL && plan_is_of_before(l, p) && !done_for_good(l, (enum role)r, i))
                return true;
        }
    return false;
}
