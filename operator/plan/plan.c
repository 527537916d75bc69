#include <string.h>

#include "plan/plan_internal.h"

enum { BACKOFF_MAX_S = 60 };

int64_t plan_backoff_ms(int64_t failures)
{
    if (failures <= 0)
        return 0;
    return failures > 6 ? BACKOFF_MAX_S * 1000 : MIN((int64_t)1 << (failures - 1), (int64_t)BACKOFF_MAX_S) * 1000;
}

void plan_fini(struct plan *p)
{
    for (size_t i = 0; i < p->nevents; i++)
        free(p->events[i].note);
    free(p->events);
    free(p->actions);
    job_status_fini(&p->status);
    *p = (struct plan){ 0 };
}

/* ---- the first looks ---- */

static void see(struct reconcile *l)
{
    l->st->observed_generation = l->v->generation;
    l->st->master = l->v->master;
    str_fmt(l->st->job, sizeof(l->st->job), "%s", l->v->name);
    if (job_status_find(l->st, COND_CREATED) != NULL)
        return;
    auto_free char *text = xasprintf("%s %s is created.", l->k->resource.kind, l->v->name);
    plan_set(l, COND_CREATED, true, plan_reason(l, COND_CREATED), text);
}

static void adopt(struct reconcile *l)
{
    for (size_t i = 0; i < l->o->npods; i++) {
        const struct pod_info *p = l->o->pods[i];
        if (p->owner_uid != NULL || p->creating || pod_terminating(p) || !reconcile_ours(l, p))
            continue;
        plan_adopt(l, p);
    }
    for (size_t i = 0; i < l->o->nservices; i++) {
        const struct service_info *s = l->o->services[i];
        if (s->owner_uid == NULL && !s->creating && !s->deleting && reconcile_our_service(l, s))
            plan_adopt_service(l, s);
    }
}

/* While its labels are others the watch does not tell of it, or tells it of another job. */
static void put_labels_back(struct reconcile *l)
{
    for (size_t i = 0; i < l->o->npods; i++) {
        const struct pod_info *p = l->o->pods[i];
        if (p->mislabelled && !p->deleting && str_eq(p->owner_uid, l->v->uid))
            plan_label(l, p);
    }
}

/* The suspension told it to go: this one, or the one before the job was resumed. */
static bool sent_away(const struct reconcile *l, const struct pod_info *p)
{
    const struct condition *suspended = job_status_find(l->st, COND_SUSPENDED);
    return pod_terminating(p) &&
           (l->v->suspend || (suspended != NULL && p->created_ms / 1000 < suspended->changed_ms / 1000));
}

/* A pod that succeeded has done its work for good. A TFJob's ps has no end of its own. One that we told to go may have
 * ended well because of that, unless it is our binary, which then exits with 143. */
static bool completes(const struct reconcile *l, const struct pod_info *p)
{
    if (p == NULL || p->phase != POD_SUCCEEDED || (p->role == ROLE_PS && !l->k->own_processes))
        return false;
    return l->own || !(sent_away(l, p) || plan_is_of_before(l, p));
}

static void record_completed(struct reconcile *l)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(l, (enum role)r); i++) {
            const struct pod_info *p = l->slots[r][i].pod;
            if (!completes(l, p) || !index_set_add(&l->st->roles[r].completed, i) || l->k->own_processes)
                continue;
            plan_event(l, false, "ExitedWithCode", p->role, "Pod: %s.%s exited with code %d", l->v->ns, p->name,
                       MAX(p->exit_code, 0));
        }
}

/* ---- specs that cannot be followed ---- */

static void refuse(struct reconcile *l, const char *reason, const char *message)
{
    bool before = job_status_is(l->st, COND_REFUSED);
    l->refused = true;
    if (job_status_set(l->st, COND_REFUSED, true, reason, message, l->v->generation, l->now) && !before)
        plan_event(l, true, "SpecChangeRefused", ROLE_COUNT, "%s", message);
}

/* A hash of an older release's form cannot be compared: the job continues with the spec that is there, unless that was
 * refused. */
static void renew_hash(struct reconcile *l)
{
    if (str_starts(l->v->spec_hash, "m:") && l->st->spec_hash[0] != '\0' && !str_starts(l->st->spec_hash, "m:") &&
        !job_status_is(l->st, COND_REFUSED) && l->v->invalid == NULL)
        str_fmt(l->st->spec_hash, sizeof(l->st->spec_hash), "%s", l->v->spec_hash);
}

static bool spec_differs(const struct reconcile *l)
{
    return l->st->spec_hash[0] != '\0' && l->v->spec_hash[0] != '\0' && !str_eq(l->st->spec_hash, l->v->spec_hash);
}

/* It never began, so a spec that was edited gets a judgement of its own. A CRD that does not keep the condition's
 * generation (Kubeflow's) leaves only the question whether the spec is right now. */
static void judge_again(struct reconcile *l)
{
    const struct condition *c = job_status_find(l->st, COND_FAILED);
    if (c == NULL || !c->is_true || !str_eq(c->reason, "InvalidSpec") || c->generation == l->v->generation)
        return;
    if (c->generation == 0 && l->v->invalid != NULL)
        return;
    job_status_drop(l->st, COND_FAILED);
    l->st->completion_ms = 0;
}

/* True: the job has failed. */
static bool judge_spec(struct reconcile *l)
{
    renew_hash(l);
    const char *bad = l->v->invalid != NULL ? l->v->invalid : l->o->claims_fault;
    if (bad != NULL && !l->begun) {
        plan_fail(l, "InvalidSpec", xstrdup(bad), FAIL_WARNING);
        return true;
    }
    if (bad != NULL) {
        auto_free char *text =
            xasprintf("the changed spec cannot be followed; the job continues with what it started with: %s", bad);
        refuse(l, "InvalidSpec", text);
    } else if (spec_differs(l)) {
        refuse(l, "SpecChanged",
               "spec.model, compile, data or fit was changed after the start; the job continues with what it started "
               "with; "
               "create a new job for the new one");
    } else if (job_status_is(l->st, COND_REFUSED)) {
        plan_set(l, COND_REFUSED, false, "SpecRestored", "the spec is again what the job began with");
    }
    return false;
}

/* ---- success ---- */

static bool all_completed(const struct reconcile *l, enum role r)
{
    int n = reconcile_replicas(l, r);
    for (int i = 0; i < n; i++)
        if (!reconcile_completed(l, r, i))
            return false;
    return n > 0;
}

static bool succeeded(const struct reconcile *l)
{
    if (all_completed(l, l->leader))
        return true;
    return l->leader == ROLE_WORKER && !l->v->all_workers && reconcile_replicas(l, ROLE_WORKER) > 0 &&
           reconcile_completed(l, ROLE_WORKER, 0);
}

/* ---- time ---- */

static void start_or_resume(struct reconcile *l)
{
    if (job_status_is(l->st, COND_SUSPENDED)) {
        auto_free char *text = xasprintf("%s %s is resumed.", l->k->resource.kind, l->v->name);
        plan_set(l, COND_SUSPENDED, false, plan_reason_resumed(l), text);
        plan_event(l, false, plan_reason_resumed(l), ROLE_COUNT, "%s", text);
        l->st->start_ms = 0;
    }
    if (l->st->start_ms == 0)
        l->st->start_ms = l->now;
}

static bool past_deadline(struct reconcile *l)
{
    if (l->v->deadline_s < 0)
        return false;
    int64_t due = l->st->start_ms + l->v->deadline_s * 1000;
    if (l->now < due) {
        plan_at(l, due);
        return false;
    }
    if (l->k->own_processes)
        plan_fail(l, "DeadlineExceeded",
                  xasprintf("%s was active longer than %lld s (activeDeadlineSeconds)", l->v->name,
                            (long long)l->v->deadline_s),
                  FAIL_WARNING);
    else
        plan_fail(l, plan_reason(l, COND_FAILED),
                  xasprintf("Job %s has failed because it was active longer than specified deadline", l->v->name),
                  FAIL_NORMAL);
    return true;
}

static void poll_leader(struct reconcile *l)
{
    const struct slot *slot = reconcile_slot(l, l->leader, 0);
    l->p->poll = l->own && slot != NULL && pod_runs(slot->pod) && !slot->leaving && slot->pod->ip != NULL;
}

/* ---- the order of looks ---- */

static void go_on(struct reconcile *l)
{
    start_or_resume(l);
    if (past_deadline(l) || plan_restarts(l))
        return;
    plan_force(l);
    plan_stall(l);
    if (job_status_finished(l->st))
        return;
    plan_fill(l);
    plan_detect_refusal(l);
    plan_detect_waiting(l);
    plan_tell(l);
    poll_leader(l);
}

static void decide(struct reconcile *l)
{
    adopt(l);
    plan_merge_progress(l);
    record_completed(l);
    if (judge_spec(l))
        return;
    if (succeeded(l))
        plan_succeed(l);
    else if (l->v->suspend)
        plan_suspend(l);
    else
        go_on(l);
}

void plan_job(const struct job_spec *v, const struct job_status *status, const struct observed *o,
              const struct plan_settings *s, int64_t now_ms, struct plan *ret)
{
    AUTO_FINI(reconcile) l = { .v = v, .o = o, .s = s, .was = status, .now = now_ms, .p = ret, .service = NULL };

    *ret = (struct plan){ 0 };
    job_status_copy(status, &ret->status);
    if (v->managed_elsewhere || v->deleting)
        return;
    reconcile_init(&l);
    see(&l);
    judge_again(&l);
    put_labels_back(&l);
    if (!job_status_finished(l.st)) {
        decide(&l);
        if (!job_status_finished(l.st))
            plan_count_pods(&l);
    }
    if (job_status_finished(l.st))
        plan_clean_up(&l);
    plan_forget_refusal(&l);
    plan_sum_up(&l);
}
