/* Replicas that failed, are being taken away, or are gone: made again, or the job fails.
 *
 * How often an index was made again is in the status; the pod carries the number it was made with. While the status
 * says more than the pod, the pod's going has been counted: so each is counted once, whoever looks how often.
 */
#include <string.h>

#include "plan/plan_internal.h"

enum {
    SETTLED_MS = 600000,
    SAY_AFTER_MS = 5000
}; /* who ran this long starts with a fresh back-off, as the kubelet has it */

/* training-operator's order of looks */
static const enum role ORDER[ROLE_COUNT] = { ROLE_CHIEF, ROLE_EVALUATOR, ROLE_PS, ROLE_WORKER };

bool plan_counted(const struct reconcile *l, const struct pod_info *p)
{
    return index_counts_get(&l->st->roles[p->role].again, p->index) > p->restarts;
}

bool plan_count_restart(struct reconcile *l, enum role r, int index, const struct pod_info *pod, bool counts)
{
    struct role_status *role = &l->st->roles[r];
    if (pod != NULL && plan_counted(l, pod))
        return false;
    int before = pod != NULL ? pod->restarts : index_counts_get(&role->again, index);
    index_counts_set(&role->again, index, before + 1);
    role->restarts++;
    role->counted += (counts ? 1 : 0) + (pod != NULL ? pod->container_restarts : 0);
    l->p->restarted++;
    return true;
}

void plan_because(struct reconcile *l, enum role r, char *text, bool news)
{
    if (news)
        plan_event(l, true, plan_reason(l, COND_RESTARTING), r, "%s", text);
    if (l->cause != NULL && (!news || l->cause_is_news)) {
        free(text);
        return;
    }
    free(l->cause);
    l->cause = text;
    l->cause_is_news = news;
}

/* Drained, evicted, preempted, its node lost: not the replica's fault. */
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
static char *words_of(const struct pod_info *p)
{
    const char *reason = p->reason != NULL ? p->reason : "", *words = p->message != NULL ? p->message : "";
    AUTO_FINI(buf) b = BUF_INIT;
    if (p->exit_code >= 0)
        buf_printf(&b, "exited with code %d", p->exit_code);
    else
        buf_str(&b, disrupted(p) ? "taken away" : "failed");
    if (reason[0] != '\0' && !str_eq(reason, "Error"))
        buf_printf(&b, " (%s)", reason);
    if (words[0] != '\0')
        buf_printf(&b, ": %s", words);
    return buf_detach(&b);
}

char *plan_restarting_text(const struct reconcile *l, enum role r, char *why)
{
    if (l->k->own_processes)
        return why;
    free(why);
    return xasprintf("job %s is restarting because %s replica(s) failed.", l->v->name, job_spec_role_key(l->v, r));
}

static void say_exit(struct reconcile *l, const struct pod_info *p)
{
    if (!l->k->own_processes && p->exit_code >= 0)
        plan_event(l, false, "ExitedWithCode", p->role, "Pod: %s.%s exited with code %d", l->v->ns, p->name,
                   p->exit_code);
}

static bool failed(const struct reconcile *l, const struct slot *s, int index)
{
    return s->pod != NULL && s->pod->phase == POD_FAILED && !pod_terminating(s->pod) &&
           !reconcile_completed(l, s->pod->role, index);
}

static bool retryable(const struct reconcile *l, const struct pod_info *p)
{
    enum restart_policy policy = l->v->roles[p->role].restart;
    if (policy != RESTART_EXIT_CODE) /* another container may be the one that failed */
        return policy != RESTART_NEVER;
    return disrupted(p) || p->exit_code < 0 || restart_wanted(policy, p->exit_code);
}

static bool ignored(const struct reconcile *l, const struct pod_info *p)
{
    return l->v->dynamic && p->role == ROLE_WORKER && l->v->roles[ROLE_WORKER].restart == RESTART_NEVER;
}

static bool counts(const struct reconcile *l, const struct pod_info *p)
{
    return l->k->disruptions_count || !disrupted(p);
}

/* ---- failures that end the job ---- */

static int failed_pods(const struct reconcile *l, enum role r)
{
    int n = 0;
    for (int i = 0; i < reconcile_replicas(l, r); i++)
        n += failed(l, &l->slots[r][i], i);
    return n;
}

static void fail_because(struct reconcile *l, const struct pod_info *p)
{
    const char *kind = l->k->resource.kind, *role = job_spec_role_key(l->v, p->role);
    bool by_code = l->v->roles[p->role].restart == RESTART_EXIT_CODE;

    say_exit(l, p);
    if (l->k->own_processes) {
        const char *reason = p->exit_code == 2 ? "BadInput" : p->exit_code == 3 ? "TrainingDiverged" : "ReplicaFailed";
        auto_free char *words = words_of(p);
        plan_fail(l, reason, xasprintf("%s %s", p->name, words), FAIL_WARNING);
    } else if (by_code) {
        plan_fail(l, plan_reason(l, COND_FAILED),
                  xasprintf("job \"%s\" is failing because \"%s\" replica(s) failed.", l->v->name, role), FAIL_WARNING);
    } else {
        plan_fail(l, plan_reason(l, COND_FAILED),
                  xasprintf("%s %s/%s has failed because %d %s replica(s) failed.", kind, l->v->ns, l->v->name,
                            failed_pods(l, p->role), role),
                  FAIL_NORMAL);
    }
}

static bool fail_for_good(struct reconcile *l)
{
    for (int o = 0; o < ROLE_COUNT; o++)
        for (int i = 0; i < reconcile_replicas(l, ORDER[o]); i++) {
            struct slot *s = &l->slots[ORDER[o]][i];
            if (!failed(l, s, i) || retryable(l, s->pod) || ignored(l, s->pod) || plan_is_of_before(l, s->pod))
                continue;
            fail_because(l, s->pod);
            return true;
        }
    return false;
}

/* ---- backoffLimit ---- */

static int64_t restarts_of_role(const struct reconcile *l, enum role r)
{
    int64_t sum = l->st->roles[r].counted;
    for (int i = 0; i < reconcile_replicas(l, r); i++) {
        const struct pod_info *p = l->slots[r][i].pod;
        if (p != NULL && !plan_counted(l, p))
            sum += p->container_restarts;
    }
    return sum;
}

bool plan_over_limit(const struct reconcile *l, int64_t more)
{
    int64_t sum = more, limit = l->v->backoff_limit;
    for (int r = 0; r < ROLE_COUNT; r++)
        if (reconcile_replicas(l, (enum role)r) > 0 && l->v->roles[r].restart != RESTART_NEVER)
            sum += restarts_of_role(l, (enum role)r);
    if (limit < 0)
        return false;
    return limit == 0 || l->k->own_processes ? sum > limit : sum >= limit; /* TFJob's >= is training-operator's */
}

void plan_fail_by_limit(struct reconcile *l, const struct pod_info *last, const char *what)
{
    if (!l->k->own_processes) {
        plan_fail(l, plan_reason(l, COND_FAILED),
                  xasprintf("Job %s has failed because it has reached the specified backoff limit", l->v->name),
                  FAIL_NORMAL);
        return;
    }
    auto_free char *words = last != NULL ? words_of(last) : xstrdup(what);
    plan_fail(l, "BackoffLimitExceeded",
              xasprintf("more than %lld restart%s without progress (backoffLimit); the last: %s%s%s",
                        (long long)l->v->backoff_limit, l->v->backoff_limit == 1 ? "" : "s",
                        last != NULL ? last->name : "", last != NULL ? " " : "", words),
              FAIL_WARNING);
}

/* The pod that speaks for the restarts: one that failed now, else the one the kubelet restarted most. */
static const struct pod_info *last_restarted(const struct reconcile *l)
{
    const struct pod_info *most = NULL;
    for (int o = 0; o < ROLE_COUNT; o++)
        for (int i = 0; i < reconcile_replicas(l, ORDER[o]); i++) {
            const struct pod_info *p = l->slots[ORDER[o]][i].pod;
            if (failed(l, &l->slots[ORDER[o]][i], i) && !ignored(l, p))
                return p;
            if (p != NULL && p->container_restarts > (most != NULL ? most->container_restarts : 0))
                most = p;
        }
    return most;
}

/* Failures that are to be counted. All that are restarted together count as one. */
static int64_t pending_restarts(const struct reconcile *l)
{
    int64_t alone = 0, together = 0;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(l, (enum role)r); i++) {
            const struct slot *s = &l->slots[r][i];
            if (!failed(l, s, i) || ignored(l, s->pod) || !counts(l, s->pod) || plan_counted(l, s->pod))
                continue;
            if (plan_is_together(l, (enum role)r))
                together = 1;
            else
                alone++;
        }
    return alone + together;
}

static bool fail_by_limit(struct reconcile *l)
{
    if (!plan_over_limit(l, pending_restarts(l)))
        return false;
    const struct pod_info *last = last_restarted(l);
    if (last != NULL && last->phase == POD_FAILED)
        say_exit(l, last);
    plan_fail_by_limit(l, last, "a replica went away");
    return true;
}

/* ---- pods that go or have gone ---- */

/* How many of the pods that ran at the last look are not there any more and nobody saw them go. */
static int vanished(const struct reconcile *l, enum role r)
{
    int seen = 0;
    for (int i = 0; i < reconcile_replicas(l, r); i++) {
        const struct pod_info *p = l->slots[r][i].pod;
        if (p != NULL && !p->creating && p->phase != POD_PENDING && !plan_counted(l, p))
            seen++;
    }
    return l->was_active[r] - seen;
}

static void pod_goes(struct reconcile *l, enum role r, const char *name, const char *how)
{
    if (!plan_is_together(l, r))
        plan_because(l, r, plan_restarting_text(l, r, xasprintf("restarting %s: its pod %s", name, how)), true);
    else if (!l->round)
        plan_because(l, r, xasprintf("restarting all replicas: the pod of %s %s", name, how), true);
    l->round |= plan_is_together(l, r);
}

static void count_vanished(struct reconcile *l, enum role r)
{
    int n = vanished(l, r);
    for (int i = 0; i < reconcile_replicas(l, r) && n > 0; i++) {
        char name[128];
        struct slot *s = &l->slots[r][i];
        if (s->pod != NULL || s->foreign || reconcile_completed(l, r, i))
            continue;
        n--;
        plan_count_restart(l, r, i, NULL, l->k->disruptions_count);
        pod_goes(l, r, job_spec_pod_name(l->v, r, i, name), "is gone");
    }
}

/* Resumed: who is still leaving was sent away by the suspension. That is no restart. */
static void let_go(struct reconcile *l)
{
    for (int r = 0; r < ROLE_COUNT; r++) {
        l->was_active[r] = 0;
        for (int i = 0; i < reconcile_replicas(l, (enum role)r); i++) {
            const struct pod_info *p = l->slots[r][i].pod;
            if (p != NULL && pod_terminating(p) && !plan_counted(l, p))
                index_counts_set(&l->st->roles[r].again, i, p->restarts + 1);
        }
    }
}

static char *how_it_goes(const struct pod_info *p)
{
    return disrupted(p) && p->reason != NULL ? xasprintf("is taken away (%s)", p->reason) : xstrdup("is being deleted");
}

static void count_going(struct reconcile *l, enum role r)
{
    for (int i = 0; i < reconcile_replicas(l, r); i++) {
        const struct pod_info *p = l->slots[r][i].pod;
        if (p == NULL || !pod_terminating(p) || p->phase == POD_PENDING || p->phase == POD_SUCCEEDED ||
            reconcile_completed(l, r, i))
            continue;
        auto_free char *how = how_it_goes(p);
        if (plan_count_restart(l, r, i, p, l->k->disruptions_count))
            pod_goes(l, r, p->name, how);
    }
}

/* ---- replicas that failed and are made again ---- */

static int64_t due_ms(const struct reconcile *l, const struct pod_info *p)
{
    bool settled = p->started_ms > 0 && p->ended_ms - p->started_ms >= SETTLED_MS;
    int64_t ended = p->ended_ms > 0 ? p->ended_ms : p->created_ms; /* one that a node refused never began */
    return ended == 0 ? l->now : ended + plan_backoff_ms(settled ? 0 : p->restarts);
}

static void retry(struct reconcile *l, const struct pod_info *p)
{
    auto_free char *words = words_of(p);
    bool now = due_ms(l, p) <= l->now, news = now && plan_count_restart(l, p->role, p->index, p, counts(l, p));

    plan_because(l, p->role, plan_restarting_text(l, p->role, xasprintf("restarting %s: %s", p->name, words)), news);
    if (news)
        say_exit(l, p);
    if (now)
        plan_delete(l, p, -1);
    else
        plan_at(l, due_ms(l, p)); /* until then its log can be read */
}

/* Of two that failed: one that counts, then the one that ended first, for the other may have ended because of it. */
static bool speaks_before(const struct reconcile *l, const struct pod_info *a, const struct pod_info *b)
{
    if (b == NULL || counts(l, a) != counts(l, b))
        return b == NULL || counts(l, a);
    return a->ended_ms < b->ended_ms;
}

static const struct pod_info *first_that_failed(const struct reconcile *l)
{
    const struct pod_info *first = NULL;
    for (int o = 0; o < ROLE_COUNT; o++)
        for (int i = 0; plan_is_together(l, ORDER[o]) && i < reconcile_replicas(l, ORDER[o]); i++) {
            const struct slot *s = &l->slots[ORDER[o]][i];
            if (failed(l, s, i) && !plan_counted(l, s->pod) && speaks_before(l, s->pod, first))
                first = s->pod;
        }
    return first;
}

static void retry_all(struct reconcile *l)
{
    const struct pod_info *p = first_that_failed(l);
    if (p == NULL)
        return;
    auto_free char *words = words_of(p);
    bool now = l->round || due_ms(l, p) <= l->now;
    if (now)
        plan_count_restart(l, p->role, p->index, p, counts(l, p));
    else
        plan_at(l, due_ms(l, p)); /* until then its log can be read */
    plan_because(l, p->role, xasprintf("restarting all replicas: %s %s", p->name, words), now);
    l->round |= now;
}

static void retry_role(struct reconcile *l, enum role r)
{
    if (plan_is_together(l, r))
        return;
    for (int i = 0; i < reconcile_replicas(l, r); i++)
        if (failed(l, &l->slots[r][i], i) && !ignored(l, l->slots[r][i].pod))
            retry(l, l->slots[r][i].pod);
}

bool plan_restarts(struct reconcile *l)
{
    if (fail_for_good(l))
        return true;
    if (job_status_is(l->was, COND_SUSPENDED))
        let_go(l);
    for (int o = 0; o < ROLE_COUNT; o++) {
        count_vanished(l, ORDER[o]);
        count_going(l, ORDER[o]);
    }
    if (fail_by_limit(l))
        return true;
    for (int o = 0; o < ROLE_COUNT; o++)
        retry_role(l, ORDER[o]);
    retry_all(l);
    plan_round(l);
    return false;
}

/* ---- nodes that do not answer ---- */

static void wait_for_node(struct reconcile *l, const struct pod_info *p)
{
    const char *node = p->node != NULL ? p->node : "unknown";
    auto_free char *key = xasprintf("%s: its node %s does not answer", p->name, node);
    auto_free char *more = l->s->force_delete_ms > 0 ? xasprintf("its pod is deleted by force %lld s after its grace",
                                                                 (long long)(l->s->force_delete_ms / 1000))
                                                     : NULL;
    auto_free char *note =
        xasprintf("pod %s is still terminating beyond its grace: node %s does not answer", p->name, node);
    plan_wait(l, "NodeNotResponding", p->role, key, more, note);
}

/* Its node has nothing to do with it, and force would change nothing. Whoever put the finalizer there takes it away. */
static void wait_for_finalizer(struct reconcile *l, const struct pod_info *p)
{
    auto_free char *key = xasprintf("%s: the finalizer %s keeps its pod, which has ended", p->name, p->held_by);
    auto_free char *note = xasprintf("pod %s has ended, but the finalizer %s keeps it", p->name, p->held_by);
    plan_wait(l, "PodKeptByFinalizer", p->role, key, NULL, note);
}

static void force(struct reconcile *l, const struct pod_info *p)
{
    if (p->held_by != NULL) {
        plan_at(l, p->gone_by_ms + SAY_AFTER_MS);
        if (l->now >= p->gone_by_ms + SAY_AFTER_MS)
            wait_for_finalizer(l, p);
        return;
    }
    int64_t due = p->gone_by_ms + l->s->force_delete_ms;
    if (l->s->force_delete_ms > 0 && l->now >= due) {
        plan_delete(l, p, 0);
        plan_event(l, true, "NodeLost", p->role,
                   "pod %s has been terminating for %lld s beyond its grace: node %s does not answer; deleted by force",
                   p->name, (long long)((l->now - p->gone_by_ms) / 1000), p->node != NULL ? p->node : "unknown");
        return;
    }
    if (l->s->force_delete_ms > 0)
        plan_at(l, due);
    plan_at(l, p->gone_by_ms + SAY_AFTER_MS);
    if (l->now >= p->gone_by_ms + SAY_AFTER_MS)
        wait_for_node(l, p);
}

void plan_force(struct reconcile *l)
{
    for (size_t i = 0; i < l->o->npods; i++) {
        const struct pod_info *p = l->o->pods[i];
        if (p->gone_by_ms > 0 && !p->deleting && reconcile_ours(l, p))
            force(l, p);
    }
}
