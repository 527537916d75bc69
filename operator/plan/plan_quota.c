/* TrainJobs of one namespace that wait for a quota: each may hold pods that the other one needs, and both would wait
 * for ever. A job that cannot train with the pods it has gives them back, when an older job waits, too, or when the
 * quota can never admit it and any other job waits. It creates them again when no such job waits. Nothing is
 * counted. The condition ReplicaFailure has the state. */
#include "plan/plan_internal.h"

enum { HOLD_MS = 30000, AGAIN_MS = 5000 };
static const char GAVE_BACK[] = "WaitingForQuota";

bool plan_gave_back(const struct job_status *st)
{
    const struct condition *c = job_status_find(st, COND_REPLICA_FAILURE);
    return c != NULL && c->is_true && str_eq(c->reason, GAVE_BACK);
}

/* `requested`: a pod whose creation was not answered yet counts, too. */
static bool quota_holds_pods(const struct reconcile *rec, bool requested)
{
    for (size_t i = 0; i < rec->observed->npods; i++) {
        const struct pod_info *p = rec->observed->pods[i];
        if (reconcile_ours(rec, p) && p->held_by == NULL && (requested || !p->creating))
            return true;
    }
    return false;
}

static bool quota_has_minimum(const struct reconcile *rec)
{
    int least[ROLE_COUNT];
    job_spec_minimum(rec->spec, least);
    for (int r = 0; r < ROLE_COUNT; r++) {
        int made = 0;
        for (int i = 0; i < reconcile_replicas(rec, (enum role)r); i++)
            made += plan_pod_made(rec, (enum role)r, i);
        if (made < least[r])
            return false;
    }
    return true;
}

static bool quota_is_rivals_turn(const struct reconcile *rec)
{
    const struct refusal *f = rec->observed->refused;
    return rec->observed->quota_rival != NULL && (rec->observed->rival_is_older || (f != NULL && f->never_fits));
}

/* Since when it waits for a quota; 0: it does not. */
static int64_t quota_waits_since(const struct reconcile *rec)
{
    const struct refusal *f = rec->observed->refused;
    const struct condition *c = job_status_find(rec->status, COND_REPLICA_FAILURE);
    return plan_still_refused(rec, f) && f->over_quota && c != NULL && c->is_true ? c->changed_ms : 0;
}

bool plan_gives_back(struct reconcile *rec)
{
    if (!rec->kind->own_processes)
        return false;
    if (plan_gave_back(rec->status)) {
        if (quota_holds_pods(rec, true) || quota_is_rivals_turn(rec))
            return true;
        job_status_drop(rec->status, COND_REPLICA_FAILURE);
        return false;
    }
    int64_t since = quota_waits_since(rec);
    if (since == 0 || !quota_is_rivals_turn(rec) || !quota_holds_pods(rec, false) || quota_has_minimum(rec))
        return false;
    plan_requeue_at(rec, since + HOLD_MS);
    return rec->now >= since + HOLD_MS;
}

/* The text stays the same while it waits. */
static char *quota_message(const struct reconcile *rec)
{
    const struct condition *c = job_status_find(rec->status, COND_REPLICA_FAILURE);
    const struct refusal *f = rec->observed->refused;
    if (plan_gave_back(rec->status))
        return xstrdup(c->message);
    const char *rival = rec->observed->quota_rival, *kind = rec->kind->resource.kind;
    if (!rec->observed->rival_is_older)
        return xasprintf("the pods were given back to %s %s, because the quota can never admit this job: %s", kind,
                         rival, f->words);
    return xasprintf("the pods were given back, because the older %s %s waits for a quota of the namespace, too", kind,
                     rival);
}

void plan_give_back(struct reconcile *rec)
{
    bool before = plan_gave_back(rec->status);
    auto_free char *text = quota_message(rec), *waiting = xasprintf("quota: %s", text);
    plan_stop_pods(rec);
    plan_force_delete(rec);
    plan_set_waiting(rec, GAVE_BACK, ROLE_COUNT, waiting, NULL, NULL);
    if (job_status_is(rec->status, COND_RUNNING) || job_status_is(rec->status, COND_RESTARTING))
        plan_set_condition(rec, COND_RUNNING, false, GAVE_BACK, text);
    plan_set_conditions(rec);
    plan_set_condition(rec, COND_REPLICA_FAILURE, true, GAVE_BACK, text);
    if (!before)
        plan_add_event(rec, true, GAVE_BACK, ROLE_COUNT, "%s", text);
    plan_requeue_at(rec, rec->now + AGAIN_MS);
}
