/* Replicas that failed, terminate or were deleted: they are re-created, or the job fails.
 *
 * The status has the number of re-creations of an index; the pod carries the number with which it was created. While
 * the status has the larger number, the pod's end has been counted. So each end is counted once, however often it is
 * reconciled.
 */
#include <string.h>

#include "plan/plan_internal.h"

enum {
    SETTLED_MS = 600000, /* a pod that ran for so long starts with a fresh back-off, as in the kubelet */
    SAY_AFTER_MS = 5000,
    LEADER_MS = 5000, /* see restart_follows_leader() */
};

/* training-operator's order of checks */
static const enum role ORDER[ROLE_COUNT] = { ROLE_CHIEF, ROLE_EVALUATOR, ROLE_PS, ROLE_WORKER };

bool plan_is_counted(const struct reconcile *rec, const struct pod_info *p)
{
    return index_counts_get(&rec->status->roles[p->role].again, p->index) > p->restarts;
}

bool plan_count_restart(struct reconcile *rec, enum role r, int index, const struct pod_info *pod, bool counts)
{
    struct role_status *role = &rec->status->roles[r];
    if (pod != NULL && plan_is_counted(rec, pod))
        return false;
    int before = pod != NULL ? pod->restarts : index_counts_get(&role->again, index);
    index_counts_set(&role->again, index, before + 1);
    role->restarts++;
    role->counted += (counts ? 1 : 0) + (pod != NULL ? pod->container_restarts : 0);
    rec->plan->restarted++;
    return true;
}

void plan_set_restart_reason(struct reconcile *rec, enum role r, char *text, bool news)
{
    if (news)
        plan_add_event(rec, true, plan_reason(rec, COND_RESTARTING), r, "%s", text);
    if (rec->restart_reason != NULL && (!news || rec->restart_reason_is_new)) {
        free(text);
        return;
    }
    free(rec->restart_reason);
    rec->restart_reason = text;
    rec->restart_reason_is_new = news;
}

/* True if the pod was drained, evicted or preempted, or its node was lost: not the replica's failure. */
static bool disrupted(const struct pod_info *p)
{
    static const char *const REASONS[] = {
        "Evicted", "NodeLost", "NodeShutdown", "Shutdown", "Preempting", "Terminated"
    };
    for (size_t i = 0; i < COUNT_OF(REASONS); i++)
        if (str_eq(p->reason, REASONS[i]))
            return true;
    return p->disrupted;
}

/* ---- how a replica ended ---- */

/* "exited with code 2: <last words>" */
static char *exit_description(const struct pod_info *p)
{
    const char *reason = p->reason != NULL ? p->reason : "", *words = p->message != NULL ? p->message : "";
    AUTO_FINI(buf) b = BUF_INIT;
    if (p->exit_code >= 0)
        buf_printf(&b, "exited with code %d", p->exit_code);
    else
        buf_str(&b, disrupted(p) ? "disrupted" : "failed");
    if (reason[0] != '\0' && !str_eq(reason, "Error"))
        buf_printf(&b, " (%s)", reason);
    if (words[0] != '\0')
        buf_printf(&b, ": %s", words);
    return buf_detach(&b);
}

char *plan_restart_message(const struct reconcile *rec, enum role r, char *why)
{
    if (rec->kind->own_processes)
        return why;
    free(why);
    return xasprintf("job %s is restarting because %s replica(s) failed.", rec->spec->name,
                     job_spec_role_key(rec->spec, r));
}

static void add_exit_event(struct reconcile *rec, const struct pod_info *p)
{
    if (!rec->kind->own_processes && p->exit_code >= 0)
        plan_add_event(rec, false, "ExitedWithCode", p->role, "Pod: %s.%s exited with code %d", rec->spec->ns, p->name,
                       p->exit_code);
}

/* The leader of a job that ends, because training diverged for example, stops the others. Whichever pod ends first, the
 * leader's end has the reason: a pod that was stopped is not judged while the leader may be about to end. */
static bool restart_follows_leader(const struct reconcile *rec, const struct pod_info *p)
{
    const struct replica_slot *leader = reconcile_slot(rec, rec->leader, 0);
    return rec->kind->own_processes && p->phase == POD_FAILED && p->exit_code == EXIT_STOPPED && leader != NULL &&
           leader->pod != NULL && leader->pod != p && leader->pod->phase == POD_RUNNING &&
           !pod_terminating(leader->pod) && p->ended_ms <= rec->now && rec->now < p->ended_ms + LEADER_MS;
}

static bool has_failed(const struct reconcile *rec, const struct replica_slot *s, int index)
{
    return s->pod != NULL && s->pod->phase == POD_FAILED && !pod_terminating(s->pod) &&
           !reconcile_completed(rec, s->pod->role, index) && !restart_follows_leader(rec, s->pod);
}

static void restart_wait_for_leader(struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(rec, (enum role)r); i++) {
            const struct pod_info *p = rec->slots[r][i].pod;
            if (p != NULL && restart_follows_leader(rec, p))
                plan_requeue_at(rec, p->ended_ms + LEADER_MS);
        }
}

static bool retryable(const struct reconcile *rec, const struct pod_info *p)
{
    enum restart_policy policy = rec->spec->roles[p->role].restart;
    if (policy != RESTART_EXIT_CODE) /* another container may be the one that failed */
        return policy != RESTART_NEVER;
    return disrupted(p) || p->exit_code < 0 || restart_wanted(policy, p->exit_code);
}

static bool ignored(const struct reconcile *rec, const struct pod_info *p)
{
    return rec->spec->dynamic && p->role == ROLE_WORKER && rec->spec->roles[ROLE_WORKER].restart == RESTART_NEVER;
}

/* ---- failures that end the job ---- */

static int failed_pods(const struct reconcile *rec, enum role r)
{
    int n = 0;
    for (int i = 0; i < reconcile_replicas(rec, r); i++)
        n += has_failed(rec, &rec->slots[r][i], i);
    return n;
}

static void fail_job(struct reconcile *rec, const struct pod_info *p)
{
    const char *kind = rec->kind->resource.kind, *role = job_spec_role_key(rec->spec, p->role);
    bool by_code = rec->spec->roles[p->role].restart == RESTART_EXIT_CODE;

    add_exit_event(rec, p);
    rec->decided_ms = p->ended_ms;
    if (rec->kind->own_processes) {
        const char *reason = p->exit_code == EXIT_INPUT      ? "BadInput"
                             : p->exit_code == EXIT_DIVERGED ? "TrainingDiverged"
                                                             : "ReplicaFailed";
        auto_free char *words = exit_description(p);
        plan_fail(rec, reason, xasprintf("%s %s", p->name, words), FAIL_WARNING);
    } else if (by_code) {
        plan_fail(rec, plan_reason(rec, COND_FAILED),
                  xasprintf("job \"%s\" is failing because \"%s\" replica(s) failed.", rec->spec->name, role),
                  FAIL_WARNING);
    } else {
        plan_fail(rec, plan_reason(rec, COND_FAILED),
                  xasprintf("%s %s/%s has failed because %d %s replica(s) failed.", kind, rec->spec->ns,
                            rec->spec->name, failed_pods(rec, p->role), role),
                  FAIL_NORMAL);
    }
}

static bool fail_permanently(struct reconcile *rec)
{
    for (int o = 0; o < ROLE_COUNT; o++)
        for (int i = 0; i < reconcile_replicas(rec, ORDER[o]); i++) {
            struct replica_slot *s = &rec->slots[ORDER[o]][i];
            if (!has_failed(rec, s, i) || retryable(rec, s->pod) || ignored(rec, s->pod) ||
                plan_is_superseded(rec, s->pod))
                continue;
            fail_job(rec, s->pod);
            return true;
        }
    return false;
}

/* ---- backoffLimit ---- */

static int64_t restarts_of_role(const struct reconcile *rec, enum role r)
{
    int64_t sum = rec->status->roles[r].counted;
    for (int i = 0; i < reconcile_replicas(rec, r); i++) {
        const struct pod_info *p = rec->slots[r][i].pod;
        if (p != NULL && !plan_is_counted(rec, p))
            sum += p->container_restarts;
    }
    return sum;
}

bool plan_exceeds_backoff_limit(const struct reconcile *rec, int64_t more)
{
    int64_t sum = more, limit = rec->spec->backoff_limit;
    for (int r = 0; r < ROLE_COUNT; r++)
        if (reconcile_replicas(rec, (enum role)r) > 0 && rec->spec->roles[r].restart != RESTART_NEVER)
            sum += restarts_of_role(rec, (enum role)r);
    if (limit < 0)
        return false;
    return limit == 0 || rec->kind->own_processes ? sum > limit : sum >= limit; /* TFJob's >= is training-operator's */
}

void plan_fail_backoff_limit(struct reconcile *rec, const struct pod_info *last, const char *what)
{
    if (!rec->kind->own_processes) {
        plan_fail(rec, plan_reason(rec, COND_FAILED),
                  xasprintf("Job %s has failed because it has reached the specified backoff limit", rec->spec->name),
                  FAIL_NORMAL);
        return;
    }
    auto_free char *words = last != NULL ? exit_description(last) : xstrdup(what);
    plan_fail(rec, "BackoffLimitExceeded",
              xasprintf("more than %lld restart%s without progress (backoffLimit); the last: %s%s%s",
                        (long long)rec->spec->backoff_limit, rec->spec->backoff_limit == 1 ? "" : "s",
                        last != NULL ? last->name : "", last != NULL ? " " : "", words),
              FAIL_WARNING);
}

/* The pod that is reported as the cause: one that failed now, else the one that the kubelet restarted most often. */
static const struct pod_info *last_restarted(const struct reconcile *rec)
{
    const struct pod_info *most = NULL;
    for (int o = 0; o < ROLE_COUNT; o++)
        for (int i = 0; i < reconcile_replicas(rec, ORDER[o]); i++) {
            const struct pod_info *p = rec->slots[ORDER[o]][i].pod;
            if (has_failed(rec, &rec->slots[ORDER[o]][i], i) && !ignored(rec, p))
                return p;
            if (p != NULL && p->container_restarts > (most != NULL ? most->container_restarts : 0))
                most = p;
        }
    return most;
}

/* The number of failures to count. Failures that are restarted together count as one. */
static int64_t pending_restarts(const struct reconcile *rec)
{
    int64_t alone = 0, together = 0;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(rec, (enum role)r); i++) {
            const struct replica_slot *s = &rec->slots[r][i];
            if (!has_failed(rec, s, i) || ignored(rec, s->pod) || disrupted(s->pod) || plan_is_counted(rec, s->pod))
                continue;
            if (plan_restarts_together(rec, (enum role)r))
                together = 1;
            else
                alone++;
        }
    return alone + together;
}

static bool fail_by_limit(struct reconcile *rec)
{
    if (!plan_exceeds_backoff_limit(rec, pending_restarts(rec)))
        return false;
    const struct pod_info *last = last_restarted(rec);
    if (last != NULL && last->phase == POD_FAILED)
        add_exit_event(rec, last);
    plan_fail_backoff_limit(rec, last, "a replica went away");
    return true;
}

/* ---- pods that terminate or were deleted ---- */

/* The number of pods that ran at the last reconcile and were deleted without having been seen terminating. */
static int count_of_vanished(const struct reconcile *rec, enum role r)
{
    int seen = 0;
    for (int i = 0; i < reconcile_replicas(rec, r); i++) {
        const struct pod_info *p = rec->slots[r][i].pod;
        if (p != NULL && !p->creating && p->phase != POD_PENDING && !plan_is_counted(rec, p))
            seen++;
    }
    return rec->prev_active[r] - seen;
}

static void report_pod_gone(struct reconcile *rec, enum role r, const char *name, const char *how)
{
    if (!plan_restarts_together(rec, r))
        plan_set_restart_reason(rec, r, plan_restart_message(rec, r, xasprintf("restarting %s: its pod %s", name, how)),
                                true);
    else if (!rec->restart_all)
        plan_set_restart_reason(rec, r, xasprintf("restarting all replicas: the pod of %s %s", name, how), true);
    rec->restart_all |= plan_restarts_together(rec, r);
}

static void count_vanished(struct reconcile *rec, enum role r)
{
    int n = count_of_vanished(rec, r);
    for (int i = 0; i < reconcile_replicas(rec, r) && n > 0; i++) {
        char name[128];
        struct replica_slot *s = &rec->slots[r][i];
        if (s->pod != NULL || s->foreign || reconcile_completed(rec, r, i))
            continue;
        n--;
        plan_count_restart(rec, r, i, NULL, false);
        report_pod_gone(rec, r, job_spec_pod_name(rec->spec, r, i, name), "is gone");
    }
}

/* The job was resumed: pods that still terminate were deleted by the suspension, which is not a restart. */
static void excuse_suspended(struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        rec->prev_active[r] = 0;
        for (int i = 0; i < reconcile_replicas(rec, (enum role)r); i++) {
            const struct pod_info *p = rec->slots[r][i].pod;
            if (p != NULL && pod_terminating(p) && !plan_is_counted(rec, p))
                index_counts_set(&rec->status->roles[r].again, i, p->restarts + 1);
        }
    }
}

static char *deletion_description(const struct pod_info *p)
{
    return disrupted(p) && p->reason != NULL ? xasprintf("is disrupted (%s)", p->reason) : xstrdup("is being deleted");
}

static void count_deleted(struct reconcile *rec, enum role r)
{
    for (int i = 0; i < reconcile_replicas(rec, r); i++) {
        const struct pod_info *p = rec->slots[r][i].pod;
        if (p == NULL || !pod_terminating(p) || p->phase == POD_PENDING || p->phase == POD_SUCCEEDED ||
            reconcile_completed(rec, r, i))
            continue;
        auto_free char *how = deletion_description(p);
        if (plan_count_restart(rec, r, i, p, false))
            report_pod_gone(rec, r, p->name, how);
    }
}

/* ---- replicas that failed and are re-created ---- */

static int64_t retry_at_ms(const struct reconcile *rec, const struct pod_info *p)
{
    bool settled = p->started_ms > 0 && p->ended_ms - p->started_ms >= SETTLED_MS;
    int64_t ended = p->ended_ms > 0 ? p->ended_ms : p->created_ms; /* a pod that a node refused never started */
    return ended == 0 ? rec->now : ended + plan_backoff_ms(settled ? 0 : p->restarts);
}

static void retry_pod(struct reconcile *rec, const struct pod_info *p)
{
    auto_free char *words = exit_description(p);
    bool now = retry_at_ms(rec, p) <= rec->now,
         news = now && plan_count_restart(rec, p->role, p->index, p, !disrupted(p));

    plan_set_restart_reason(rec, p->role,
                            plan_restart_message(rec, p->role, xasprintf("restarting %s: %s", p->name, words)), news);
    if (news)
        add_exit_event(rec, p);
    if (now)
        plan_delete_pod(rec, p, -1);
    else
        plan_requeue_at(rec, retry_at_ms(rec, p)); /* until then its log can be read */
}

/* Prefers a failure that counts, then the one that ended first, because it may have caused the other. */
static bool reported_before(const struct pod_info *a, const struct pod_info *b)
{
    if (b == NULL || disrupted(a) != disrupted(b))
        return b == NULL || !disrupted(a);
    return a->ended_ms < b->ended_ms;
}

static const struct pod_info *first_that_failed(const struct reconcile *rec)
{
    const struct pod_info *first = NULL;
    for (int o = 0; o < ROLE_COUNT; o++)
        for (int i = 0; plan_restarts_together(rec, ORDER[o]) && i < reconcile_replicas(rec, ORDER[o]); i++) {
            const struct replica_slot *s = &rec->slots[ORDER[o]][i];
            if (has_failed(rec, s, i) && !plan_is_counted(rec, s->pod) && reported_before(s->pod, first))
                first = s->pod;
        }
    return first;
}

static void retry_all(struct reconcile *rec)
{
    const struct pod_info *p = first_that_failed(rec);
    if (p == NULL)
        return;
    auto_free char *words = exit_description(p);
    bool now = rec->restart_all || retry_at_ms(rec, p) <= rec->now;
    if (now)
        plan_count_restart(rec, p->role, p->index, p, !disrupted(p));
    else
        plan_requeue_at(rec, retry_at_ms(rec, p)); /* until then its log can be read */
    plan_set_restart_reason(rec, p->role, xasprintf("restarting all replicas: %s %s", p->name, words), now);
    rec->restart_all |= now;
}

static void retry_role(struct reconcile *rec, enum role r)
{
    if (plan_restarts_together(rec, r))
        return;
    for (int i = 0; i < reconcile_replicas(rec, r); i++)
        if (has_failed(rec, &rec->slots[r][i], i) && !ignored(rec, rec->slots[r][i].pod))
            retry_pod(rec, rec->slots[r][i].pod);
}

bool plan_restart_replicas(struct reconcile *rec)
{
    if (fail_permanently(rec))
        return true;
    restart_wait_for_leader(rec);
    if (job_status_is(rec->prev, COND_SUSPENDED))
        excuse_suspended(rec);
    for (int o = 0; o < ROLE_COUNT; o++) {
        count_vanished(rec, ORDER[o]);
        count_deleted(rec, ORDER[o]);
    }
    if (fail_by_limit(rec))
        return true;
    for (int o = 0; o < ROLE_COUNT; o++)
        retry_role(rec, ORDER[o]);
    retry_all(rec);
    plan_restart_all(rec);
    return false;
}

/* ---- nodes that do not answer ---- */

static void wait_for_node(struct reconcile *rec, const struct pod_info *p)
{
    const char *node = p->node != NULL ? p->node : "unknown";
    auto_free char *key = xasprintf("%s: its node %s does not answer", p->name, node);
    auto_free char *more = rec->settings->force_delete_ms > 0
                               ? xasprintf("its pod is deleted by force %lld s after its grace",
                                           (long long)(rec->settings->force_delete_ms / 1000))
                               : NULL;
    auto_free char *note =
        xasprintf("pod %s is still terminating beyond its grace: node %s does not answer", p->name, node);
    plan_set_waiting(rec, "NodeNotResponding", p->role, key, more, note);
}

/* A forced deletion would have no effect, because the owner of the finalizer has to remove it. */
static void wait_for_finalizer(struct reconcile *rec, const struct pod_info *p)
{
    auto_free char *key = xasprintf("%s: the finalizer %s keeps its pod, which has ended", p->name, p->held_by);
    auto_free char *note = xasprintf("pod %s has ended, but the finalizer %s keeps it", p->name, p->held_by);
    plan_set_waiting(rec, "PodKeptByFinalizer", p->role, key, NULL, note);
}

static void force_delete_pod(struct reconcile *rec, const struct pod_info *p)
{
    if (p->held_by != NULL) {
        plan_requeue_at(rec, p->gone_by_ms + SAY_AFTER_MS);
        if (rec->now >= p->gone_by_ms + SAY_AFTER_MS)
            wait_for_finalizer(rec, p);
        return;
    }
    int64_t due = p->gone_by_ms + rec->settings->force_delete_ms;
    if (rec->settings->force_delete_ms > 0 && rec->now >= due) {
        plan_delete_pod(rec, p, 0);
        plan_add_event(
            rec, true, "NodeLost", p->role,
            "pod %s has been terminating for %lld s beyond its grace: node %s does not answer; deleted by force",
            p->name, (long long)((rec->now - p->gone_by_ms) / 1000), p->node != NULL ? p->node : "unknown");
        return;
    }
    if (rec->settings->force_delete_ms > 0)
        plan_requeue_at(rec, due);
    plan_requeue_at(rec, p->gone_by_ms + SAY_AFTER_MS);
    if (rec->now >= p->gone_by_ms + SAY_AFTER_MS)
        wait_for_node(rec, p);
}

void plan_force_delete(struct reconcile *rec)
{
    for (size_t i = 0; i < rec->observed->npods; i++) {
        const struct pod_info *p = rec->observed->pods[i];
        if (p->gone_by_ms > 0 && !p->deleting && reconcile_ours(rec, p))
            force_delete_pod(rec, p);
    }
}
