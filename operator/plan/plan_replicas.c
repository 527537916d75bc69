/* The number of replicas of a running job whose spec now requests more than the cluster spec can contain. */
#include "plan/plan_internal.h"

/* A terminating pod may be an excess one; one whose end is counted is re-created. */
static bool is_staying(const struct job_status *st, const struct pod_info *p)
{
    return !pod_terminating(p) || index_counts_get(&st->roles[p->role].again, p->index) > p->restarts;
}

/* The number of existing replicas: up to the last pod, or service of a replica. */
static void observed_replicas(const struct job_spec *v, const struct job_status *st, const struct observed *o,
                              int ret[ROLE_COUNT])
{
    for (size_t i = 0; i < o->npods; i++) {
        const struct pod_info *p = o->pods[i];
        if (str_eq(p->owner_uid, v->uid) && is_staying(st, p))
            ret[p->role] = MAX(ret[p->role], p->index + 1);
    }
    for (size_t i = 0; i < o->nservices; i++) {
        const struct service_info *s = o->services[i];
        if (str_eq(s->owner_uid, v->uid) && s->index >= 0 && !s->deleting)
            ret[s->role] = MAX(ret[s->role], s->index + 1);
    }
}

void plan_keep_replicas(struct job_spec *v, const struct job_status *st, const struct observed *o)
{
    int seen[ROLE_COUNT] = { 0 }, any = 0;

    if (!v->too_large)
        return;
    observed_replicas(v, st, o, seen);
    for (int r = 0; r < ROLE_COUNT; r++)
        any += seen[r] + MAX(v->accepted[r], 0);
    for (int r = 0; r < ROLE_COUNT && any > 0; r++) {
        if (v->accepted[r] < 0)
            v->accepted[r] = seen[r];
        if (v->roles[r].present)
            v->roles[r].replicas = v->accepted[r];
    }
}
