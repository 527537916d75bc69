/* Creates that the API server refuses: by a quota, Pod Security, a webhook, for want of a ServiceAccount. They are
 * tried again and again, with pauses; meanwhile the job itself says why it has no pods. */
#include "plan/plan_internal.h"

void refusal_fini(struct refusal *f)
{
    free(f->name);
    free(f->what);
    free(f->words);
    *f = (struct refusal){ .name = NULL };
}

static bool pod_made(const struct reconcile *l, enum role r, int i)
{
    const struct pod_info *p = l->slots[r][i].pod;
    return reconcile_completed(l, r, i) || (p != NULL && !p->creating);
}

static bool pods_made(const struct reconcile *l)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(l, (enum role)r); i++)
            if (!pod_made(l, (enum role)r, i))
                return false;
    return true;
}

/* What pods need besides, as far as this plan asks for it. */
static bool makes_others(const struct reconcile *l)
{
    static const bool NEEDED[] = {
        [ACT_ENSURE_POLICY] = true, [ACT_ENSURE_GROUP] = true, [ACT_CREATE_SERVICE] = true, [ACT_DELETE_JOB] = false
    };
    for (size_t i = 0; i < l->p->nactions; i++)
        if (NEEDED[l->p->actions[i].kind])
            return true;
    return false;
}

/* A pod may be there by now, or not be wanted any more. */
static bool still_refused(const struct reconcile *l, const struct refusal *f)
{
    if (f == NULL || (f->index >= 0 && reconcile_slot(l, f->role, f->index) == NULL))
        return false;
    return f->kind != ACT_CREATE_POD || !pod_made(l, f->role, f->index);
}

/* Last refused create; at start-up, the one recorded in the status. */
static char *text_of(const struct reconcile *l)
{
    const struct refusal *f = l->o->refused;
    const struct condition *told = job_status_find(l->st, COND_REPLICA_FAILURE);
    if (still_refused(l, f))
        return xasprintf("%s: %s", f->what, f->words);
    return told != NULL ? xstrdup(told->message) : NULL;
}

static bool all_made(const struct reconcile *l)
{
    return pods_made(l) && !makes_others(l);
}

void plan_detect_refusal(struct reconcile *l)
{
    const char *reason = plan_reason(l, COND_REPLICA_FAILURE);
    auto_free char *text = all_made(l) ? NULL : text_of(l);
    if (text == NULL)
        return;
    plan_wait(l, reason, ROLE_COUNT, text, NULL, NULL); /* its event was said when it was refused */
    if (l->k->own_processes)
        plan_set(l, COND_REPLICA_FAILURE, true, reason, text);
}

void plan_forget_refusal(struct reconcile *l)
{
    if (job_status_finished(l->st) || l->v->suspend || all_made(l))
        job_status_drop(l->st, COND_REPLICA_FAILURE);
}
