/* Creates the services, pods and other objects that are missing, and deletes excess ones. Pods are created only when
 * the objects that they need (claims, ConfigMap, gang, certificates) exist. */
#include "plan/plan_internal.h"

enum { CLAIM_POLL_MS = 5000, GROUP_POLL_MS = 2000, LEFTOVERS_NAMED = 10 };

static bool is_missing(const struct reconcile *rec, enum role r, int i)
{
    return rec->slots[r][i].pod == NULL && !reconcile_completed(rec, r, i);
}

/* The pod belongs to another uid of the job, or to an unknown one: neither ours nor to be deleted. */
static bool is_leftover(const struct reconcile *rec, const struct pod_info *p)
{
    return rec->kind->own_processes && p != NULL && p->owner_uid == NULL;
}

/* All of them, so that one command removes them. */
static void report_leftovers(struct reconcile *rec, const struct pod_info *first)
{
    AUTO_FINI(buf) names = BUF_INIT, command = BUF_INIT;
    int n = 0;
    buf_str(&command, "kubectl delete pod");
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(rec, (enum role)r); i++) {
            const struct pod_info *p = rec->slots[r][i].foreign;
            if (!is_missing(rec, (enum role)r, i) || !is_leftover(rec, p) || n++ >= LEFTOVERS_NAMED)
                continue;
            buf_printf(&names, "%s%s", n > 1 ? ", " : "", p->name);
            buf_printf(&command, " %s", p->name);
        }
    if (n > LEFTOVERS_NAMED)
        buf_printf(&names, " and %d more", n - LEFTOVERS_NAMED);
    auto_free char *key =
        xasprintf("%s, which %s made for another TrainJob of this name", names.data, n > 1 ? "were" : "was");
    auto_free char *more = xasprintf("%s -n %s removes %s", command.data, rec->spec->ns,
                                     n > LEFTOVERS_NAMED ? "the first"
                                     : n > 1             ? "them"
                                                         : "it");
    auto_free char *note = xasprintf("pod%s %s %s made for another TrainJob of this name and %s not changed: %s",
                                     n > 1 ? "s" : "", names.data, n > 1 ? "were" : "was", n > 1 ? "are" : "is", more);
    plan_set_waiting(rec, "FailedCreatePod", first->role, key, more, note);
    plan_set_condition(rec, COND_REPLICA_FAILURE, true, plan_reason(rec, COND_REPLICA_FAILURE), note);
}

static void report_conflict(struct reconcile *rec, const struct pod_info *p)
{
    if (rec->waiting.reason != NULL)
        return;
    if (is_leftover(rec, p)) {
        report_leftovers(rec, p);
        return;
    }
    auto_free char *key = xasprintf("%s, which belongs to another owner", p->name);
    auto_free char *note = xasprintf("pod %s exists and belongs to another owner", p->name);
    plan_set_waiting(rec, "FailedCreatePod", p->role, key, NULL, note);
}

/* Must a pod be created? Conflicting names are reported. */
static bool any_missing(struct reconcile *rec)
{
    bool any = false;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(rec, (enum role)r); i++) {
            const struct pod_info *foreign = rec->slots[r][i].foreign;
            if (!is_missing(rec, (enum role)r, i))
                continue;
            any |= foreign == NULL;
            if (foreign != NULL)
                report_conflict(rec, foreign);
        }
    return any;
}

/* ---- claims ---- */

static bool claims_are_known(struct reconcile *rec)
{
    if (rec->spec->nclaims == 0 || rec->observed->claims_known)
        return true;
    plan_add_action(rec, ACT_GET_CLAIMS, ROLE_COUNT, -1);
    return false;
}

static void wait_for_claim(struct reconcile *rec, const char *name, int refused)
{
    const char *reason = "PersistentVolumeClaimNotFound";
    auto_free char *key = NULL, *more = NULL, *note = NULL;
    if (refused == 0) {
        key = xasprintf("PersistentVolumeClaim %s", name);
        more = xstrdup("it does not exist");
        note = xasprintf("PersistentVolumeClaim \"%s\" does not exist", name);
    } else if (refused == 403) {
        reason = "PersistentVolumeClaimForbidden";
        key = xasprintf("PersistentVolumeClaim %s, which the operator may not read (403)", name);
        more = xasprintf("grant its service account get on persistentvolumeclaims in namespace %s, as deploy/rbac does",
                         rec->spec->ns);
        note = xasprintf("the operator may not read PersistentVolumeClaim \"%s\" (403): %s", name, more);
    } else {
        reason = "PersistentVolumeClaimUnknown";
        key = xasprintf("PersistentVolumeClaim %s, which could not be read", name);
        more = refused > 0 ? xasprintf("status %d", refused) : xstrdup("no answer");
        note = xasprintf("cannot read PersistentVolumeClaim \"%s\": %s", name, more);
    }
    plan_set_waiting(rec, reason, ROLE_COUNT, key, more, note);
    plan_requeue_at(rec, rec->now + CLAIM_POLL_MS);
}

static bool claims_are_there(struct reconcile *rec)
{
    for (size_t i = 0; i < rec->spec->nclaims && rec->observed->claims != NULL; i++) {
        if (rec->observed->claims[i].found)
            continue;
        wait_for_claim(rec, rec->spec->claims[i].name, rec->observed->claims[i].refused);
        return false;
    }
    return true;
}

/* ---- objects that pods need ---- */

/* Each of them reduces the group by one member. */
static bool completed_grew(const struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        if (index_set_count(&rec->status->roles[r].completed) != index_set_count(&rec->prev->roles[r].completed))
            return true;
    return false;
}

static void ensure_group(struct reconcile *rec, bool pods)
{
    bool changed = rec->prev->observed_generation != rec->spec->generation;
    if (rec->settings->gang && (rec->observed->group == GROUP_ABSENT || changed ||
                                (pods && rec->observed->group == GROUP_UNKNOWN) || completed_grew(rec)))
        plan_add_action(rec, ACT_ENSURE_GROUP, ROLE_COUNT, -1);
}

static bool group_admits(struct reconcile *rec)
{
    if (!rec->settings->gang || !rec->settings->gang_waits || rec->observed->group == GROUP_ADMITTED)
        return true;
    auto_free char *key = xasprintf("PodGroup %s", rec->spec->name);
    plan_set_waiting(rec, "PodGroupPending", ROLE_COUNT, key, "the gang scheduler has not admitted it yet", NULL);
    plan_requeue_at(rec, rec->now + GROUP_POLL_MS);
    return false;
}

static void foreign_service(struct reconcile *rec, enum role r, const char *name)
{
    auto_free char *key = xasprintf("service %s, which belongs to another owner", name);
    auto_free char *note = xasprintf("service %s exists and belongs to another owner", name);
    plan_set_waiting(rec, "FailedCreateService", r, key, NULL, note);
}

static void create_service(struct reconcile *rec, enum role r, int i)
{
    const struct replica_slot *s = &rec->slots[r][i];
    char name[128];
    if (s->service != NULL || reconcile_completed(rec, r, i))
        return;
    if (s->foreign_service)
        foreign_service(rec, r, job_spec_pod_name(rec->spec, r, i, name));
    else
        plan_add_action(rec, ACT_CREATE_SERVICE, r, i);
}

static void create_services(struct reconcile *rec)
{
    if (!rec->kind->service_per_replica) {
        if (rec->service == NULL && rec->foreign_service)
            foreign_service(rec, ROLE_COUNT, rec->spec->name);
        else if (rec->service == NULL)
            plan_add_action(rec, ACT_CREATE_SERVICE, ROLE_COUNT, -1);
        return;
    }
    for (int o = 0; o < ROLE_COUNT; o++)
        for (int i = 0; i < reconcile_replicas(rec, PLAN_ROLES[o]); i++)
            create_service(rec, PLAN_ROLES[o], i);
}

static void create_pods(struct reconcile *rec)
{
    bool wait = plan_restart_all_pending(rec);
    if (wait)
        plan_set_waiting(rec, "ReplicasLeave", ROLE_COUNT, "the old pods to terminate", NULL, NULL);
    for (int o = 0; o < ROLE_COUNT; o++) {
        enum role r = PLAN_ROLES[o];
        if (wait && plan_restarts_together(rec, r))
            continue;
        for (int i = 0; i < reconcile_replicas(rec, r); i++)
            if (is_missing(rec, r, i) && !rec->slots[r][i].foreign && plan_identity_admits(rec, r, i))
                plan_add_action(rec, ACT_CREATE_POD, r, i)->restarts =
                    index_counts_get(&rec->status->roles[r].again, i);
    }
    if (rec->status->spec_hash[0] == '\0')
        str_fmt(rec->status->spec_hash, sizeof(rec->status->spec_hash), "%s", rec->spec->spec_hash);
}

bool plan_is_core(const struct job_spec *v, enum role r, int index)
{
    bool any = v->roles[ROLE_PS].replicas > 0 || v->roles[ROLE_CHIEF].replicas > 0 || v->all_reduce;
    return r == ROLE_PS || (any && r == job_spec_leader(v) && index == 0);
}

bool plan_core_comes_first(const struct job_spec *v, const struct pod_info *const *pods, size_t npods,
                           const struct action *actions, size_t nactions)
{
    for (size_t i = 0; i < nactions; i++)
        if (actions[i].kind == ACT_CREATE_POD && plan_is_core(v, actions[i].role, actions[i].index))
            return true;
    for (size_t i = 0; i < npods; i++)
        if (pods[i]->creating && plan_is_core(v, pods[i]->role, pods[i]->index))
            return true;
    return false;
}

static void create_missing(struct reconcile *rec)
{
    bool pods = any_missing(rec);
    if (pods && !claims_are_known(rec))
        return;
    bool config = rec->kind->own_processes && (rec->spec->has_model || job_spec_replicas(rec->spec) > 1);
    if (config && !rec->observed->config_ensured && !rec->spec_refused)
        plan_add_action(rec, ACT_ENSURE_CONFIG, ROLE_COUNT, -1);
    if (rec->settings->network_policy && rec->kind->own_processes && !rec->observed->policy_ensured)
        plan_add_action(rec, ACT_ENSURE_POLICY, ROLE_COUNT, -1);
    ensure_group(rec, pods);
    create_services(rec);
    if (pods && claims_are_there(rec) && group_admits(rec))
        create_pods(rec);
}

/* ---- excess ---- */

static bool is_excess(const struct reconcile *rec, enum role r, int index)
{
    return index >= reconcile_replicas(rec, r);
}

static void scale_down(struct reconcile *rec)
{
    for (size_t i = 0; i < rec->observed->npods; i++) {
        const struct pod_info *p = rec->observed->pods[i];
        if (is_excess(rec, p->role, p->index) && reconcile_ours(rec, p) && !p->creating && !pod_terminating(p))
            plan_delete_pod(rec, p, -1);
    }
    for (size_t i = 0; i < rec->observed->nservices; i++) {
        const struct service_info *s = rec->observed->services[i];
        if (s->index >= 0 && is_excess(rec, s->role, s->index) && reconcile_our_service(rec, s) && !s->creating &&
            !s->deleting)
            plan_delete_service(rec, s);
    }
}

/* ---- TensorBoard ---- */

/* The job runs without it, so this is not a ReplicaFailure. */
static void set_tensorboard_condition(struct reconcile *rec)
{
    const struct refusal *f = rec->observed->tensorboard_refused;
    const char *trouble = rec->observed->tensorboard_trouble, *reason = plan_reason(rec, COND_TENSORBOARD_FAILURE);
    bool ensured = rec->observed->tensorboard_ensured;
    if (!rec->spec->tensorboard || (ensured && trouble == NULL)) {
        job_status_drop(rec->status, COND_TENSORBOARD_FAILURE);
    } else if (ensured) {
        plan_set_condition(rec, COND_TENSORBOARD_FAILURE, true, reason, trouble);
    } else if (f != NULL) {
        auto_free char *text = xasprintf("%s: %s", f->what, f->words);
        plan_set_condition(rec, COND_TENSORBOARD_FAILURE, true, reason, text);
    }
}

void plan_tensorboard(struct reconcile *rec)
{
    set_tensorboard_condition(rec);
    if (!rec->spec->tensorboard) {
        if (rec->spec->invalid == NULL && (rec->observed->tensorboard_ensured ||
                                           rec->observed->tensorboard_found)) /* else the spec does not determine it */
            plan_add_action(rec, ACT_DELETE_TENSORBOARD, ROLE_COUNT, -1);
        return;
    }
    if (rec->spec->invalid != NULL || rec->observed->claims_fault != NULL || rec->observed->tensorboard_ensured ||
        !claims_are_known(rec))
        return;
    plan_add_action(rec, ACT_ENSURE_TENSORBOARD, ROLE_COUNT, -1);
}

static bool asks_for_claims(const struct reconcile *rec)
{
    for (size_t i = 0; i < rec->plan->nactions; i++)
        if (rec->plan->actions[i].kind == ACT_GET_CLAIMS)
            return true;
    return false;
}

void plan_scale(struct reconcile *rec)
{
    plan_identity(rec);
    create_missing(rec);
    if (rec->spec->invalid == NULL) /* an invalid spec does not determine the number of replicas */
        scale_down(rec);
    if (!asks_for_claims(rec))
        plan_tensorboard(rec);
}
