/* Creates that the API server refuses because of a quota, Pod Security, a webhook or a missing ServiceAccount. They are
 * retried with back-off; meanwhile the status has the reason why pods are missing. */
#include "plan/plan_internal.h"

void refusal_fini(struct refusal *f)
{
    free(f->name);
    free(f->what);
    free(f->words);
    *f = (struct refusal){ .name = NULL };
}

bool plan_pod_made(const struct reconcile *rec, enum role r, int i)
{
    const struct pod_info *p = rec->slots[r][i].pod;
    return reconcile_completed(rec, r, i) || (p != NULL && !p->creating);
}

static bool pods_made(const struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(rec, (enum role)r); i++)
            if (!plan_pod_made(rec, (enum role)r, i))
                return false;
    return true;
}

/* Objects that pods need, if this plan creates them. */
static bool makes_others(const struct reconcile *rec)
{
    static const bool NEEDED[] = { [ACT_IDENTITY] = true,
                                   [ACT_ENSURE_POLICY] = true,
                                   [ACT_ENSURE_GROUP] = true,
                                   [ACT_CREATE_SERVICE] = true,
                                   [ACT_DELETE_JOB] = false };
    for (size_t i = 0; i < rec->plan->nactions; i++)
        if (NEEDED[rec->plan->actions[i].kind])
            return true;
    return false;
}

/* The pod may exist by now, or the spec may no longer have the index. */
bool plan_still_refused(const struct reconcile *rec, const struct refusal *f)
{
    if (f == NULL || (f->index >= 0 && reconcile_slot(rec, f->role, f->index) == NULL))
        return false;
    return f->kind != ACT_CREATE_POD || !plan_pod_made(rec, f->role, f->index);
}

/* training-operator's TFJobs keep their pods. */
static char *rival_words(const struct reconcile *rec)
{
    const struct refusal *f = rec->observed->refused;
    if (rec->kind->own_processes || f == NULL || !f->over_quota || rec->observed->quota_rival == NULL)
        return xstrdup("");
    return xasprintf("; %s %s waits for a quota, too. If neither can start, suspend one of them "
                     "(spec.runPolicy.suspend), or let a gang scheduler start all pods of a job at once",
                     rec->kind->resource.kind, rec->observed->quota_rival);
}

/* Last refused create; at start-up, the one recorded in the status. */
static char *refusal_message(const struct reconcile *rec)
{
    const struct refusal *f = rec->observed->refused;
    const struct condition *told = job_status_find(rec->status, COND_REPLICA_FAILURE);
    auto_free char *rival = rival_words(rec);
    if (plan_still_refused(rec, f))
        return xasprintf("%s: %s%s", f->what, f->words, rival);
    return told != NULL ? xstrdup(told->message) : NULL;
}

static bool all_made(const struct reconcile *rec)
{
    return pods_made(rec) && !makes_others(rec);
}

void plan_detect_refusal(struct reconcile *rec)
{
    const char *reason = plan_reason(rec, COND_REPLICA_FAILURE);
    auto_free char *text = all_made(rec) ? NULL : refusal_message(rec);
    if (text == NULL)
        return;
    plan_set_waiting(rec, reason, ROLE_COUNT, text, NULL, NULL); /* its event was recorded when it was refused */
    if (rec->kind->own_processes)
        plan_set_condition(rec, COND_REPLICA_FAILURE, true, reason, text);
}

void plan_clear_refusal(struct reconcile *rec)
{
    bool given_back = plan_gave_back(rec->status); /* its pods may all be there, and terminate */
    if (job_status_finished(rec->status) || rec->spec->suspend || (all_made(rec) && !given_back))
        job_status_drop(rec->status, COND_REPLICA_FAILURE);
}
