/* The status in words and numbers. */
#include <string.h>

#include "plan/plan_internal.h"

#define AFTER_SENTENCE " Waiting for "
#define AFTER_WORDS    "; waiting for "

static const enum condition_type TOLD_IN[] = { COND_CREATED, COND_RUNNING, COND_RESTARTING };

/* ---- what was said before ---- */

/* What is waited for, in a message; NULL: nothing. *ret_n: how long the message is without it. */
static const char *waited_for(const char *message, size_t *ret_n)
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

/* What the job waited for at the last look, in whichever condition it was told; NULL: nothing. */
static const char *told_before(const struct reconcile *l)
{
    for (size_t i = 0; i < COUNT_OF(TOLD_IN); i++) {
        const struct condition *c = job_status_find(l->was, TOLD_IN[i]);
        size_t n;
        const char *words = c != NULL ? waited_for(c->message, &n) : NULL;
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

/* Another pod that waits for the same is no news. */
static bool is_news(const struct reconcile *l)
{
    const char *before = told_before(l);
    if (before == NULL)
        return true;
    if (str_starts(before, l->wait.key))
        return false;
    const char *why = without_name(l->wait.text);
    return !str_starts(why, l->wait.reason) || !str_eq(why, without_name(before));
}

/* ---- pods that cannot go on ---- */

/* Reasons of pods that will not start by themselves; pairs between which the kubelet changes back and forth have one
 * name. */
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

/* A TFJob has training-operator's sentences. */
static char *stuck_note(const struct reconcile *l, const struct pod_info *p, const char *name)
{
    bool scheduling = str_eq(name, "Unschedulable") || str_eq(name, "SchedulingGated");
    const char *words = p->message != NULL ? p->message : p->reason;
    if (l->k->own_processes)
        return xasprintf("pod %s %s: %s", p->name, scheduling ? "is not scheduled" : "does not start", words);
    if (scheduling)
        return xasprintf("Error pod %s condition message: %s", p->name, words);
    return xasprintf("Error pod %s container %s waiting message: %s", p->name, l->k->container, words);
}

static void stuck(struct reconcile *l, const struct pod_info *p, const char *name)
{
    auto_free char *key = xasprintf("%s: %s", p->name, name);
    auto_free char *note = stuck_note(l, p, name);
    plan_wait(l, name, p->role, key, p->message, note);
}

static bool is_stuck(const struct pod_info *p)
{
    return p != NULL && !pod_terminating(p) && !pod_ended(p) && stuck_name(p) != NULL;
}

static bool told(const char *before, const struct pod_info *p)
{
    auto_free char *key = xasprintf("%s: %s", p->name, stuck_name(p));
    return before != NULL && str_starts(before, key);
}

/* The one that was spoken of, while that is so; else the first. */
void plan_detect_waiting(struct reconcile *l)
{
    const struct pod_info *one = NULL;
    const char *before = told_before(l);
    for (int o = 0; o < ROLE_COUNT; o++)
        for (int i = 0; i < reconcile_replicas(l, PLAN_ROLES[o]); i++) {
            const struct pod_info *p = l->slots[PLAN_ROLES[o]][i].pod;
            if (is_stuck(p) && (one == NULL || told(before, p)))
                one = p;
        }
    if (one != NULL)
        stuck(l, one, stuck_name(one));
}

/* ---- Running and Restarting ---- */

static bool leader_runs(const struct reconcile *l)
{
    for (int i = 0; i < reconcile_replicas(l, l->leader); i++)
        if (pod_runs(l->slots[l->leader][i].pod) && !l->slots[l->leader][i].leaving)
            return true;
    return false;
}

/* It runs, or has ended and is not made again. */
static bool stays(const struct reconcile *l, enum role r, const struct pod_info *p)
{
    if (p == NULL || pod_terminating(p))
        return false;
    return p->phase == POD_RUNNING || p->phase == POD_SUCCEEDED ||
           (p->phase == POD_FAILED && l->v->roles[r].restart == RESTART_NEVER);
}

/* Every replica that was made again runs or has done its work. */
static bool settled(const struct reconcile *l)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(l, (enum role)r); i++) {
            const struct slot *s = &l->slots[r][i];
            if (index_counts_get(&l->st->roles[r].again, i) == 0 || reconcile_completed(l, (enum role)r, i))
                continue;
            if (!stays(l, (enum role)r, s->pod))
                return false;
        }
    return true;
}

/* The first leader whose pod is gone; -1: none. */
static int leader_missing(const struct reconcile *l)
{
    for (int i = 0; i < reconcile_replicas(l, l->leader); i++)
        if (l->slots[l->leader][i].pod == NULL && !reconcile_completed(l, l->leader, i))
            return i;
    return -1;
}

static void set_restarting(struct reconcile *l, const char *text)
{
    plan_set(l, COND_RESTARTING, true, plan_reason(l, COND_RESTARTING), text);
}

static void set_running(struct reconcile *l)
{
    bool before = job_status_is(l->st, COND_RUNNING), again = job_status_is(l->st, COND_RESTARTING);
    auto_free char *text = xasprintf("%s %s/%s is running.", l->k->resource.kind, l->v->ns, l->v->name);

    if (before)
        return;
    plan_set(l, COND_RUNNING, true, plan_reason(l, COND_RUNNING), text);
    if (l->k->own_processes)
        plan_event(l, false, plan_reason(l, COND_RUNNING), ROLE_COUNT, "%s", text);
    if (again && job_status_is(l->st, COND_STALLED))
        plan_set(l, COND_STALLED, false, "Restarted", "the replicas were restarted");
}

static void run_or_restart(struct reconcile *l)
{
    bool runs = leader_runs(l);
    int missing = leader_missing(l);
    if (l->cause != NULL) {
        if (l->cause_is_news || !job_status_is(l->st, COND_RESTARTING))
            set_restarting(l, l->cause);
    } else if (job_status_is(l->st, COND_RUNNING) && !runs &&
               missing >= 0) { /* not counted: it did not run at the last look */
        char name[128];
        char *why = xasprintf("restarting %s: its pod is gone", job_spec_pod_name(l->v, l->leader, missing, name));
        auto_free char *text = plan_restarting_text(l, l->leader, why);
        set_restarting(l, text);
    } else if (runs && (!job_status_is(l->st, COND_RESTARTING) || settled(l))) {
        set_running(l);
    }
}

/* ---- what it waits for ---- */

static enum condition_type latest(const struct reconcile *l)
{
    if (job_status_is(l->st, COND_RESTARTING))
        return COND_RESTARTING;
    return job_status_is(l->st, COND_RUNNING) ? COND_RUNNING : COND_CREATED;
}

static char *with_waiting(const struct reconcile *l, const char *message, size_t n)
{
    bool sentence = n > 0 && message[n - 1] == '.';
    return xasprintf("%.*s%s%s", (int)n, message, sentence ? AFTER_SENTENCE : AFTER_WORDS, l->wait.text);
}

/* Sets the message to what it says without waiting, and what is waited for. While that is the same, it stays as it is.
 */
static void say(struct reconcile *l, enum condition_type t, bool waits)
{
    const struct condition *c = job_status_find(l->st, t);
    if (c == NULL)
        return;
    size_t n;
    const char *before = waited_for(c->message, &n);
    if (waits && before != NULL && str_starts(before, l->wait.key))
        return;
    auto_free char *reason = xstrdup(c->reason);
    auto_free char *text = waits ? with_waiting(l, c->message, n) : xstrndup(c->message, n);
    plan_set(l, t, c->is_true, reason, text);
    if (waits && l->wait.note != NULL && is_news(l))
        plan_event_about(l, l->wait.reason, l->wait.about, l->wait.note);
}

void plan_tell(struct reconcile *l)
{
    run_or_restart(l);
    for (size_t i = 0; i < COUNT_OF(TOLD_IN); i++)
        say(l, TOLD_IN[i], TOLD_IN[i] == latest(l) && l->wait.reason != NULL);
}

void plan_forget_waiting(struct reconcile *l)
{
    for (size_t i = 0; i < COUNT_OF(TOLD_IN); i++)
        say(l, TOLD_IN[i], false);
}

/* ---- numbers ---- */

static void count_role(const struct reconcile *l, enum role r, struct role_status *ret)
{
    bool suspended = l->v->suspend && !l->own;
    ret->active = ret->succeeded = ret->failed = 0;
    for (int i = 0; i < reconcile_replicas(l, r); i++) {
        const struct slot *s = &l->slots[r][i];
        if (reconcile_completed(l, r, i) || (s->pod != NULL && s->pod->phase == POD_SUCCEEDED))
            ret->succeeded++;
        else if (s->pod != NULL && s->pod->phase == POD_FAILED)
            ret->failed++;
        else if (pod_runs(s->pod) && !s->leaving && !suspended)
            ret->active++;
    }
}

void plan_count_pods(struct reconcile *l)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        count_role(l, (enum role)r, &l->st->roles[r]);
}

/* Replicas that are ready or have done their work, of all; of a job that succeeded, those that count as succeeded. */
static int ready_of(const struct reconcile *l, enum role r)
{
    int n = 0;
    if (job_status_is(l->st, COND_SUCCEEDED))
        return MIN(l->st->roles[r].succeeded, reconcile_replicas(l, r));
    for (int i = 0; i < reconcile_replicas(l, r); i++) {
        const struct slot *s = &l->slots[r][i];
        n += reconcile_completed(l, r, i) || (pod_runs(s->pod) && s->pod->ready && !s->leaving);
    }
    return n;
}

static const char *state_of(const struct reconcile *l)
{
    for (size_t i = l->st->nconds; i-- > 0;)
        if (l->st->conds[i].is_true && !condition_is_auxiliary(l->st->conds[i].type))
            return condition_name(l->st->conds[i].type);
    return condition_name(COND_CREATED);
}

void plan_sum_up(struct reconcile *l)
{
    int ready = 0;
    for (int r = 0; r < ROLE_COUNT; r++)
        ready += ready_of(l, (enum role)r);
    str_fmt(l->st->ready, sizeof(l->st->ready), "%d/%d", ready, job_spec_replicas(l->v));
    str_fmt(l->st->state, sizeof(l->st->state), "%s", state_of(l));
}
