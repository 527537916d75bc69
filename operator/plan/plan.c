/* The order of checks of plan_job(): each function decides one thing and writes it into the plan. Deadlines and times
 * depend only on the status and `now`. */
#include <string.h>

#include "plan/plan_internal.h"

enum { BACKOFF_MAX_S = 60 };

int64_t plan_backoff_ms(int64_t failures)
{
    if (failures <= 0)
        return 0;
    return failures > 6 ? BACKOFF_MAX_S * 1000 : MIN((int64_t)1 << (failures - 1), (int64_t)BACKOFF_MAX_S) * 1000;
}

void job_plan_fini(struct job_plan *p)
{
    for (size_t i = 0; i < p->nevents; i++)
        free(p->events[i].note);
    free(p->events);
    free(p->actions);
    job_status_fini(&p->status);
    *p = (struct job_plan){ 0 };
}

/* ---- first checks ---- */

static void init_status(struct reconcile *rec)
{
    rec->status->observed_generation = rec->spec->generation;
    rec->status->master = rec->spec->master;
    str_fmt(rec->status->job, sizeof(rec->status->job), "%s", rec->spec->name);
    if (job_status_find(rec->status, COND_CREATED) != NULL)
        return;
    auto_free char *text = xasprintf("%s %s is created.", rec->kind->resource.kind, rec->spec->name);
    plan_set_condition(rec, COND_CREATED, true, plan_reason(rec, COND_CREATED), text);
}

static void adopt_orphans(struct reconcile *rec)
{
    for (size_t i = 0; i < rec->observed->npods; i++) {
        const struct pod_info *p = rec->observed->pods[i];
        if (p->owner_uid != NULL || p->creating || pod_terminating(p) || !reconcile_ours(rec, p))
            continue;
        plan_adopt_pod(rec, p);
    }
    for (size_t i = 0; i < rec->observed->nservices; i++) {
        const struct service_info *s = rec->observed->services[i];
        if (s->owner_uid == NULL && !s->creating && !s->deleting && reconcile_our_service(rec, s))
            plan_adopt_service(rec, s);
    }
}

/* While its labels are wrong, the watch does not report the pod, or reports it for another job. */
static void restore_labels(struct reconcile *rec)
{
    for (size_t i = 0; i < rec->observed->npods; i++) {
        const struct pod_info *p = rec->observed->pods[i];
        if (p->mislabelled && !p->deleting && str_eq(p->owner_uid, rec->spec->uid))
            plan_restore_labels(rec, p);
    }
}

/* True if a suspension deleted the pod: the current one, or the last one before the job was resumed. Or it was given
 * back. */
static bool deleted_by_suspension(const struct reconcile *rec, const struct pod_info *p)
{
    const struct condition *suspended = job_status_find(rec->status, COND_SUSPENDED);
    return pod_terminating(p) && (rec->spec->suspend || plan_gave_back(rec->status) ||
                                  (suspended != NULL && p->created_ms / 1000 < suspended->changed_ms / 1000));
}

/* A pod that succeeded has completed its index. A TFJob's ps does not complete. A pod that we deleted may have ended
 * with 0 because of that, unless it is our binary, which then exits with 143. */
static bool completes(const struct reconcile *rec, const struct pod_info *p)
{
    if (p == NULL || p->phase != POD_SUCCEEDED || (p->role == ROLE_PS && !rec->kind->own_processes))
        return false;
    return rec->own_binaries || !(deleted_by_suspension(rec, p) || plan_is_superseded(rec, p));
}

static void record_completed(struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(rec, (enum role)r); i++) {
            const struct pod_info *p = rec->slots[r][i].pod;
            if (!completes(rec, p) || !index_set_add(&rec->status->roles[r].completed, i) || rec->kind->own_processes)
                continue;
            plan_add_event(rec, false, "ExitedWithCode", p->role, "Pod: %s.%s exited with code %d", rec->spec->ns,
                           p->name, MAX(p->exit_code, 0));
        }
}

/* ---- specs that cannot be applied ---- */

static void refuse_spec_change(struct reconcile *rec, const char *reason, const char *message)
{
    bool before = job_status_is(rec->status, COND_REFUSED);
    rec->spec_refused = true;
    if (job_status_set(rec->status, COND_REFUSED, true, reason, message, rec->spec->generation, rec->now) && !before)
        plan_add_event(rec, true, "SpecChangeRefused", ROLE_COUNT, "%s", message);
}

/* A hash in the form of an older release cannot be compared: the job continues with the current spec, unless that was
 * refused. */
static void migrate_hash(struct reconcile *rec)
{
    if (str_starts(rec->spec->spec_hash, "m:") && rec->status->spec_hash[0] != '\0' &&
        !str_starts(rec->status->spec_hash, "m:") && !job_status_is(rec->status, COND_REFUSED) &&
        rec->spec->invalid == NULL)
        str_fmt(rec->status->spec_hash, sizeof(rec->status->spec_hash), "%s", rec->spec->spec_hash);
}

static bool spec_differs(const struct reconcile *rec)
{
    return rec->status->spec_hash[0] != '\0' && rec->spec->spec_hash[0] != '\0' &&
           !str_eq(rec->status->spec_hash, rec->spec->spec_hash);
}

/* The job never started, so an edited spec is validated again. A CRD that drops the condition's generation (Kubeflow's)
 * allows only a check whether the spec is valid now. */
static void retry_validation(struct reconcile *rec)
{
    const struct condition *c = job_status_find(rec->status, COND_FAILED);
    if (c == NULL || !c->is_true || !str_eq(c->reason, "InvalidSpec") || c->generation == rec->spec->generation)
        return;
    if (c->generation == 0 && rec->spec->invalid != NULL)
        return;
    job_status_drop(rec->status, COND_FAILED);
    rec->status->completion_ms = 0;
}

/* true: the job has failed. */
static bool check_spec(struct reconcile *rec)
{
    migrate_hash(rec);
    const char *bad = rec->spec->invalid != NULL ? rec->spec->invalid : rec->observed->claims_fault;
    if (bad != NULL && !rec->started) {
        plan_fail(rec, "InvalidSpec", xstrdup(bad), FAIL_WARNING);
        return true;
    }
    if (bad != NULL) {
        auto_free char *text =
            xasprintf("the changed spec cannot be followed; the job continues with what it started with: %s", bad);
        refuse_spec_change(rec, "InvalidSpec", text);
    } else if (spec_differs(rec)) {
        refuse_spec_change(
            rec, "SpecChanged",
            "spec.model, compile, data or fit was changed after the start; the job continues with what it started "
            "with; "
            "create a new job for the new one");
    } else if (job_status_is(rec->status, COND_REFUSED)) {
        plan_set_condition(rec, COND_REFUSED, false, "SpecRestored", "the spec is again the one the job started with");
    }
    return false;
}

/* ---- success ---- */

static bool all_completed(const struct reconcile *rec, enum role r)
{
    int n = reconcile_replicas(rec, r);
    for (int i = 0; i < n; i++)
        if (!reconcile_completed(rec, r, i))
            return false;
    return n > 0;
}

static bool succeeded(const struct reconcile *rec)
{
    if (all_completed(rec, rec->leader))
        return true;
    return rec->leader == ROLE_WORKER && !rec->spec->all_workers && reconcile_replicas(rec, ROLE_WORKER) > 0 &&
           reconcile_completed(rec, ROLE_WORKER, 0);
}

/* ---- time ---- */

static void start_or_resume(struct reconcile *rec)
{
    if (job_status_is(rec->status, COND_SUSPENDED)) {
        auto_free char *text = xasprintf("%s %s is resumed.", rec->kind->resource.kind, rec->spec->name);
        plan_set_condition(rec, COND_SUSPENDED, false, plan_reason_resumed(rec), text);
        plan_add_event(rec, false, plan_reason_resumed(rec), ROLE_COUNT, "%s", text);
        rec->status->start_ms = 0;
    }
    if (rec->status->start_ms == 0)
        rec->status->start_ms = rec->now;
}

static bool past_deadline(struct reconcile *rec)
{
    if (rec->spec->deadline_s < 0)
        return false;
    int64_t due = rec->status->start_ms + rec->spec->deadline_s * 1000;
    if (rec->now < due) {
        plan_requeue_at(rec, due);
        return false;
    }
    if (rec->kind->own_processes)
        plan_fail(rec, "DeadlineExceeded",
                  xasprintf("%s was active longer than %lld s (activeDeadlineSeconds)", rec->spec->name,
                            (long long)rec->spec->deadline_s),
                  FAIL_WARNING);
    else
        plan_fail(rec, plan_reason(rec, COND_FAILED),
                  xasprintf("Job %s has failed because it was active longer than specified deadline", rec->spec->name),
                  FAIL_NORMAL);
    return true;
}

static void poll_leader(struct reconcile *rec)
{
    const struct replica_slot *slot = reconcile_slot(rec, rec->leader, 0);
    rec->plan->poll =
        rec->own_binaries && slot != NULL && pod_runs(slot->pod) && !slot->leaving && slot->pod->ip != NULL;
}

/* ---- the order of checks ---- */

static void run_job(struct reconcile *rec)
{
    start_or_resume(rec);
    if (past_deadline(rec))
        return;
    if (plan_gives_back(rec)) {
        plan_give_back(rec);
        return;
    }
    if (plan_restart_replicas(rec))
        return;
    plan_force_delete(rec);
    plan_detect_stall(rec);
    if (job_status_finished(rec->status))
        return;
    plan_scale(rec);
    plan_detect_refusal(rec);
    plan_detect_waiting(rec);
    plan_set_conditions(rec);
    poll_leader(rec);
}

static void decide(struct reconcile *rec)
{
    adopt_orphans(rec);
    plan_merge_progress(rec);
    record_completed(rec);
    if (check_spec(rec))
        return;
    if (succeeded(rec))
        plan_succeed(rec);
    else if (rec->spec->suspend)
        plan_suspend(rec);
    else
        run_job(rec);
}

void plan_job(const struct job_spec *v, const struct job_status *status, const struct observed *o,
              const struct plan_settings *s, int64_t now_ms, struct job_plan *ret)
{
    AUTO_FINI(reconcile) rec = {
        .spec = v, .observed = o, .settings = s, .prev = status, .now = now_ms, .plan = ret, .service = NULL
    };

    *ret = (struct job_plan){ 0 };
    job_status_copy(status, &ret->status);
    if (v->managed_elsewhere || v->deleting)
        return;
    reconcile_init(&rec);
    init_status(&rec);
    retry_validation(&rec);
    restore_labels(&rec);
    if (!job_status_finished(rec.status)) {
        decide(&rec);
        if (!job_status_finished(rec.status))
            plan_count_pods(&rec);
    }
    if (job_status_finished(rec.status))
        plan_clean_up(&rec);
    plan_clear_refusal(&rec);
    plan_summarize(&rec);
}
