/* Conditions, the causes of waiting, and counts. A message does not change while the job waits for the same cause. */
#include <string.h>

#include "plan/plan_internal.h"

#define AFTER_SENTENCE " Waiting for "
#define AFTER_WORDS    "; waiting for "

static const enum condition_type REPORTED_IN[] = { COND_CREATED, COND_RUNNING, COND_RESTARTING };

/* ---- what was reported before ---- */

/* The cause of waiting in a message; NULL: none. *ret_n: length of the message without it. */
static const char *split_waiting(const char *message, size_t *ret_n)
{
    static const char *const SEPARATORS[] = { AFTER_SENTENCE, AFTER_WORDS };
    for (size_t i = 0; i < COUNT_OF(SEPARATORS); i++) {
        const char *at = strstr(message, SEPARATORS[i]);
        if (at == NULL)
            continue;
        *ret_n = (size_t)(at - message);
        return at + strlen(SEPARATORS[i]);
    }
    *ret_n = strlen(message);
    return NULL;
}

/* The cause of waiting at the last reconcile, from the condition that reported it; NULL: none. */
static const char *previous_waiting(const struct reconcile *rec)
{
    for (size_t i = 0; i < COUNT_OF(REPORTED_IN); i++) {
        const struct condition *c = job_status_find(rec->prev, REPORTED_IN[i]);
        size_t n;
        const char *words = c != NULL ? split_waiting(c->message, &n) : NULL;
        if (words != NULL)
            return words;
    }
    return NULL;
}

/* "Unschedulable: no nodes" of "tf-ps-0: Unschedulable: no nodes" */
static const char *without_name(const char *words)
{
    const char *at = strstr(words, ": ");
    return at != NULL ? at + 2 : words;
}

/* A second pod that waits for the same cause is not reported. */
static bool is_new_reason(const struct reconcile *rec)
{
    const char *before = previous_waiting(rec);
    if (before == NULL)
        return true;
    if (str_starts(before, rec->waiting.key))
        return false;
    const char *why = without_name(rec->waiting.text);
    return !str_starts(why, rec->waiting.reason) || !str_eq(why, without_name(before));
}

/* ---- pods that cannot start ---- */

/* Reasons of pods that will not start by themselves. Two reasons between which the kubelet alternates have one name. */
static const struct {
    const char *reason, *name;
} STUCK[] = {
    { "ErrImagePull", "ImagePullBackOff" },
    { "ImagePullBackOff", "ImagePullBackOff" },
    { "InvalidImageName", "InvalidImageName" },
    { "ErrImageNeverPull", "ErrImageNeverPull" },
    { "ErrImagePullBackOff", "ImagePullBackOff" },
    { "RegistryUnavailable", "RegistryUnavailable" },
    { "CreateContainerConfigError", "CreateContainerConfigError" },
    { "CreateContainerError", "CreateContainerError" },
    { "RunContainerError", "RunContainerError" },
    { "CrashLoopBackOff", "CrashLoopBackOff" },
    { "Unschedulable", "Unschedulable" },
    { "SchedulingGated", "SchedulingGated" },
};

static const char *stuck_name(const struct pod_info *p)
{
    for (size_t i = 0; p->reason != NULL && i < COUNT_OF(STUCK); i++)
        if (str_eq(p->reason, STUCK[i].reason))
            return STUCK[i].name;
    return NULL;
}

/* A TFJob has training-operator's messages. */
static char *stuck_note(const struct reconcile *rec, const struct pod_info *p, const char *name)
{
    bool scheduling = str_eq(name, "Unschedulable") || str_eq(name, "SchedulingGated");
    const char *words = p->message != NULL ? p->message : p->reason;
    if (rec->kind->own_processes)
        return xasprintf("pod %s %s: %s", p->name, scheduling ? "is not scheduled" : "does not start", words);
    if (scheduling)
        return xasprintf("Error pod %s condition message: %s", p->name, words);
    return xasprintf("Error pod %s container %s waiting message: %s", p->name, rec->kind->container, words);
}

static void report_stuck(struct reconcile *rec, const struct pod_info *p, const char *name)
{
    auto_free char *key = xasprintf("%s: %s", p->name, name);
    auto_free char *note = stuck_note(rec, p, name);
    plan_set_waiting(rec, name, p->role, key, p->message, note);
}

static bool is_stuck(const struct pod_info *p)
{
    return p != NULL && !pod_terminating(p) && !pod_ended(p) && stuck_name(p) != NULL;
}

static bool was_reported(const char *before, const struct pod_info *p)
{
    auto_free char *key = xasprintf("%s: %s", p->name, stuck_name(p));
    return before != NULL && str_starts(before, key);
}

/* What the chief says, when no pod is the cause. It has one event, because the text can change while training waits. */
static void report_training_wait(struct reconcile *rec)
{
    const struct replica_slot *leader = reconcile_slot(rec, rec->leader, 0);
    const char *text = rec->observed->progress.waiting;
    if (text[0] == '\0' || leader == NULL || !pod_runs(leader->pod))
        return;
    auto_free char *note = xasprintf("training waits for %s", text);
    plan_set_waiting(rec, "TrainingWaits", ROLE_COUNT, text, NULL, previous_waiting(rec) == NULL ? note : NULL);
}

/* The pod that was reported before, while it still waits; else the first. */
void plan_detect_waiting(struct reconcile *rec)
{
    const struct pod_info *one = NULL;
    const char *before = previous_waiting(rec);
    for (int o = 0; o < ROLE_COUNT; o++)
        for (int i = 0; i < reconcile_replicas(rec, PLAN_ROLES[o]); i++) {
            const struct pod_info *p = rec->slots[PLAN_ROLES[o]][i].pod;
            if (is_stuck(p) && (one == NULL || was_reported(before, p)))
                one = p;
        }
    if (one != NULL)
        report_stuck(rec, one, stuck_name(one));
    report_training_wait(rec);
}

/* ---- Running and Restarting ---- */

static bool leader_runs(const struct reconcile *rec)
{
    for (int i = 0; i < reconcile_replicas(rec, rec->leader); i++)
        if (pod_runs(rec->slots[rec->leader][i].pod) && !rec->slots[rec->leader][i].leaving)
            return true;
    return false;
}

/* True if it runs, or has ended and is not re-created. */
static bool stays(const struct reconcile *rec, enum role r, const struct pod_info *p)
{
    if (p == NULL || pod_terminating(p))
        return false;
    return p->phase == POD_RUNNING || p->phase == POD_SUCCEEDED ||
           (p->phase == POD_FAILED && rec->spec->roles[r].restart == RESTART_NEVER);
}

/* True if every re-created replica runs or has completed. */
static bool settled(const struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(rec, (enum role)r); i++) {
            const struct replica_slot *s = &rec->slots[r][i];
            if (index_counts_get(&rec->status->roles[r].again, i) == 0 || reconcile_completed(rec, (enum role)r, i))
                continue;
            if (!stays(rec, (enum role)r, s->pod))
                return false;
        }
    return true;
}

/* The first leader whose pod is missing; -1: none. */
static int leader_missing(const struct reconcile *rec)
{
    for (int i = 0; i < reconcile_replicas(rec, rec->leader); i++)
        if (rec->slots[rec->leader][i].pod == NULL && !reconcile_completed(rec, rec->leader, i))
            return i;
    return -1;
}

static void set_restarting(struct reconcile *rec, const char *text)
{
    plan_set_condition(rec, COND_RESTARTING, true, plan_reason(rec, COND_RESTARTING), text);
}

static void set_running(struct reconcile *rec)
{
    bool before = job_status_is(rec->status, COND_RUNNING), again = job_status_is(rec->status, COND_RESTARTING);
    auto_free char *text = xasprintf("%s %s/%s is running.", rec->kind->resource.kind, rec->spec->ns, rec->spec->name);

    if (before)
        return;
    plan_set_condition(rec, COND_RUNNING, true, plan_reason(rec, COND_RUNNING), text);
    if (rec->kind->own_processes)
        plan_add_event(rec, false, plan_reason(rec, COND_RUNNING), ROLE_COUNT, "%s", text);
    if (again && job_status_is(rec->status, COND_STALLED))
        plan_set_condition(rec, COND_STALLED, false, "Restarted", "the replicas were restarted");
}

static void run_or_restart(struct reconcile *rec)
{
    bool runs = leader_runs(rec);
    int missing = leader_missing(rec);
    if (rec->restart_reason != NULL) {
        if (rec->restart_reason_is_new || !job_status_is(rec->status, COND_RESTARTING))
            set_restarting(rec, rec->restart_reason);
    } else if (job_status_is(rec->status, COND_RUNNING) && !runs &&
               missing >= 0) { /* not counted: it did not run at the last reconcile */
        char name[128];
        char *why =
            xasprintf("restarting %s: its pod is gone", job_spec_pod_name(rec->spec, rec->leader, missing, name));
        auto_free char *text = plan_restart_message(rec, rec->leader, why);
        set_restarting(rec, text);
    } else if (runs && (!job_status_is(rec->status, COND_RESTARTING) || settled(rec))) {
        set_running(rec);
    }
}

/* ---- causes of waiting ---- */

static enum condition_type latest_condition(const struct reconcile *rec)
{
    if (job_status_is(rec->status, COND_RESTARTING))
        return COND_RESTARTING;
    return job_status_is(rec->status, COND_RUNNING) ? COND_RUNNING : COND_CREATED;
}

static char *with_waiting(const struct reconcile *rec, const char *message, size_t n)
{
    bool sentence = n > 0 && message[n - 1] == '.';
    return xasprintf("%.*s%s%s", (int)n, message, sentence ? AFTER_SENTENCE : AFTER_WORDS, rec->waiting.text);
}

/* Sets the message to its text without waiting, and the cause of waiting. Keeps the message while the cause is the
 * same.
 */
static void set_waiting_text(struct reconcile *rec, enum condition_type t, bool waits)
{
    const struct condition *c = job_status_find(rec->status, t);
    if (c == NULL)
        return;
    size_t n;
    const char *before = split_waiting(c->message, &n);
    if (waits && before != NULL && str_starts(before, rec->waiting.key))
        return;
    auto_free char *reason = xstrdup(c->reason);
    auto_free char *text = waits ? with_waiting(rec, c->message, n) : xstrndup(c->message, n);
    plan_set_condition(rec, t, c->is_true, reason, text);
    if (waits && rec->waiting.note != NULL && is_new_reason(rec))
        plan_add_warning(rec, rec->waiting.reason, rec->waiting.about, rec->waiting.note);
}

void plan_set_conditions(struct reconcile *rec)
{
    run_or_restart(rec);
    for (size_t i = 0; i < COUNT_OF(REPORTED_IN); i++)
        set_waiting_text(rec, REPORTED_IN[i], REPORTED_IN[i] == latest_condition(rec) && rec->waiting.reason != NULL);
}

void plan_clear_waiting(struct reconcile *rec)
{
    for (size_t i = 0; i < COUNT_OF(REPORTED_IN); i++)
        set_waiting_text(rec, REPORTED_IN[i], false);
}

/* ---- numbers ---- */

static void count_role(const struct reconcile *rec, enum role r, struct role_status *ret)
{
    bool suspended = rec->spec->suspend && !rec->own_binaries;
    ret->active = ret->succeeded = ret->failed = 0;
    for (int i = 0; i < reconcile_replicas(rec, r); i++) {
        const struct replica_slot *s = &rec->slots[r][i];
        if (reconcile_completed(rec, r, i) || (s->pod != NULL && s->pod->phase == POD_SUCCEEDED))
            ret->succeeded++;
        else if (s->pod != NULL && s->pod->phase == POD_FAILED)
            ret->failed++;
        else if (pod_runs(s->pod) && !s->leaving && !suspended)
            ret->active++;
    }
}

void plan_count_pods(struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        count_role(rec, (enum role)r, &rec->status->roles[r]);
}

/* Counts the replicas that are ready or have completed, of all; in a job that succeeded, those that count as succeeded.
 */
static int ready_of(const struct reconcile *rec, enum role r)
{
    int n = 0;
    if (job_status_is(rec->status, COND_SUCCEEDED))
        return MIN(rec->status->roles[r].succeeded, reconcile_replicas(rec, r));
    for (int i = 0; i < reconcile_replicas(rec, r); i++) {
        const struct replica_slot *s = &rec->slots[r][i];
        n += reconcile_completed(rec, r, i) || (pod_runs(s->pod) && s->pod->ready && !s->leaving);
    }
    return n;
}

static const char *state_of(const struct reconcile *rec)
{
    for (size_t i = rec->status->nconds; i-- > 0;)
        if (rec->status->conds[i].is_true && !condition_is_auxiliary(rec->status->conds[i].type))
            return condition_name(rec->status->conds[i].type);
    return condition_name(COND_CREATED);
}

void plan_summarize(struct reconcile *rec)
{
    int ready = 0;
    for (int r = 0; r < ROLE_COUNT; r++)
        ready += ready_of(rec, (enum role)r);
    str_fmt(rec->status->ready, sizeof(rec->status->ready), "%d/%d", ready, job_spec_replicas(rec->spec));
    str_fmt(rec->status->state, sizeof(rec->status->state), "%s", state_of(rec));
}
