/* What is missing is made, what is too much is taken away. */
#include "plan/plan_internal.h"

enum { CLAIM_POLL_MS = 5000, GROUP_POLL_MS = 2000 };

static bool missing(const struct reconcile *l, enum role r, int i)
{
    return l->slots[r][i].pod == NULL && !reconcile_completed(l, r, i);
}

/* It works for another life of the job, or nobody knows for which: neither ours nor to be deleted. */
static void left_behind(struct reconcile *l, const struct pod_info *p)
{
    auto_free char *key = xasprintf("%s, which was made for another TrainJob of this name", p->name);
    auto_free char *more = xasprintf("kubectl delete pod %s -n %s removes it", p->name, l->v->ns);
    auto_free char *note =
        xasprintf("pod %s was made for another TrainJob of this name and is left alone: %s", p->name, more);
    plan_wait(l, "FailedCreatePod", p->role, key, more, note);
    plan_set(l, COND_REPLICA_FAILURE, true, plan_reason(l, COND_REPLICA_FAILURE), note);
}

static void in_the_way(struct reconcile *l, const struct pod_info *p)
{
    if (l->wait.reason != NULL)
        return;
    if (l->k->own_processes && p->owner_uid == NULL) {
        left_behind(l, p);
        return;
    }
    auto_free char *key = xasprintf("%s, which belongs to somebody else", p->name);
    auto_free char *note = xasprintf("pod %s exists and belongs to somebody else", p->name);
    plan_wait(l, "FailedCreatePod", p->role, key, NULL, note);
}

/* Is a pod to be made? Names somebody else has are told. */
static bool any_missing(struct reconcile *l)
{
    bool any = false;
    for (int r = 0; r < ROLE_COUNT; r++)
        for (int i = 0; i < reconcile_replicas(l, (enum role)r); i++) {
            const struct pod_info *foreign = l->slots[r][i].foreign;
            if (!missing(l, (enum role)r, i))
                continue;
            any |= foreign == NULL;
            if (foreign != NULL)
                in_the_way(l, foreign);
        }
    return any;
}

/* ---- claims ---- */

static bool claims_are_known(struct reconcile *l)
{
    if (l->v->nclaims == 0 || l->o->claims_known)
        return true;
    plan_add(l, ACT_GET_CLAIMS, ROLE_COUNT, -1);
    return false;
}

static void wait_for_claim(struct reconcile *l, const char *name, int refused)
{
    const char *reason = "PersistentVolumeClaimNotFound";
    auto_free char *key = NULL, *more = NULL, *note = NULL;
    if (refused == 0) {
        key = xasprintf("PersistentVolumeClaim %s", name);
        more = xstrdup("it is not there");
        note = xasprintf("PersistentVolumeClaim \"%s\" is not there", name);
    } else if (refused == 403) {
        reason = "PersistentVolumeClaimForbidden";
        key = xasprintf("PersistentVolumeClaim %s, which the operator may not read (403)", name);
        more = xasprintf(
            "give its service account the right to get persistentvolumeclaims in namespace %s, as deploy/rbac does",
            l->v->ns);
        note = xasprintf("the operator may not read PersistentVolumeClaim \"%s\" (403): %s", name, more);
    } else {
        reason = "PersistentVolumeClaimUnknown";
        key = xasprintf("PersistentVolumeClaim %s, of which the API server says nothing", name);
        more = refused > 0 ? xasprintf("status %d", refused) : xstrdup("no answer");
        note = xasprintf("the API server does not say whether PersistentVolumeClaim \"%s\" is there: %s", name, more);
    }
    plan_wait(l, reason, ROLE_COUNT, key, more, note);
    plan_at(l, l->now + CLAIM_POLL_MS);
}

static bool claims_are_there(struct reconcile *l)
{
    for (size_t i = 0; i < l->v->nclaims && l->o->claims != NULL; i++) {
        if (l->o->claims[i].found)
            continue;
        wait_for_claim(l, l->v->claims[i].name, l->o->claims[i].refused);
        return false;
    }
    return true;
}

/* ---- what pods need ---- */

/* The group has a member less for each. */
static bool more_completed(const struct reconcile *l)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        if (index_set_count(&l->st->roles[r].completed) != index_set_count(&l->was->roles[r].completed))
            return true;
    return false;
}

static void ensure_group(struct reconcile *l, bool pods)
{
    bool changed = l->was->observed_generation != l->v->generation;
    if (l->s->gang &&
        (l->o->group == GROUP_ABSENT || changed || (pods && l->o->group == GROUP_UNKNOWN) || more_completed(l)))
        plan_add(l, ACT_ENSURE_GROUP, ROLE_COUNT, -1);
}

static bool group_admits(struct reconcile *l)
{
    if (!l->s->gang || !l->s->gang_waits || l->o->group == GROUP_ADMITTED)
        return true;
    auto_free char *key = xasprintf("PodGroup %s", l->v->name);
    plan_wait(l, "PodGroupPending", ROLE_COUNT, key, "the gang scheduler has not admitted it yet", NULL);
    plan_at(l, l->now + GROUP_POLL_MS);
    return false;
}

static void foreign_service(struct reconcile *l, enum role r, const char *name)
{
    auto_free char *key = xasprintf("service %s, which belongs to somebody else", name);
    auto_free char *note = xasprintf("service %s exists and belongs to somebody else", name);
    plan_wait(l, "FailedCreateService", r, key, NULL, note);
}

static void make_service(struct reconcile *l, enum role r, int i)
{
    const struct slot *s = &l->slots[r][i];
    char name[128];
    if (s->service != NULL || reconcile_completed(l, r, i))
        return;
    if (s->foreign_service)
        foreign_service(l, r, job_spec_pod_name(l->v, r, i, name));
    else
        plan_add(l, ACT_CREATE_SERVICE, r, i);
}

static void make_services(struct reconcile *l)
{
    if (!l->k->service_per_replica) {
        if (l->service == NULL && l->foreign_service)
            foreign_service(l, ROLE_COUNT, l->v->name);
        else if (l->service == NULL)
            plan_add(l, ACT_CREATE_SERVICE, ROLE_COUNT, -1);
        return;
    }
    for (int o = 0; o < ROLE_COUNT; o++)
        for (int i = 0; i < reconcile_replicas(l, PLAN_ROLES[o]); i++)
            make_service(l, PLAN_ROLES[o], i);
}

static void make_pods(struct reconcile *l)
{
    bool wait = plan_round_lasts(l);
    if (wait)
        plan_wait(l, "ReplicasLeave", ROLE_COUNT, "the old pods to leave", NULL, NULL);
    for (int o = 0; o < ROLE_COUNT; o++) {
        enum role r = PLAN_ROLES[o];
        if (wait && plan_is_together(l, r))
            continue;
        for (int i = 0; i < reconcile_replicas(l, r); i++)
            if (missing(l, r, i) && !l->slots[r][i].foreign)
                plan_add(l, ACT_CREATE_POD, r, i)->restarts = index_counts_get(&l->st->roles[r].again, i);
    }
    if (l->st->spec_hash[0] == '\0')
        str_fmt(l->st->spec_hash, sizeof(l->st->spec_hash), "%s", l->v->spec_hash);
}

bool plan_is_core(const struct job_spec *v, enum role r, int index)
{
    bool any = v->roles[ROLE_PS].replicas > 0 || v->roles[ROLE_CHIEF].replicas > 0;
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

static void make(struct reconcile *l)
{
    bool pods = any_missing(l);
    if (pods && !claims_are_known(l))
        return;
    bool config = l->k->own_processes && (l->v->has_model || job_spec_replicas(l->v) > 1);
    if (config && !l->o->config_ensured && !l->refused)
        plan_add(l, ACT_ENSURE_CONFIG, ROLE_COUNT, -1);
    if (l->s->network_policy && l->k->own_processes && !l->o->policy_ensured)
        plan_add(l, ACT_ENSURE_POLICY, ROLE_COUNT, -1);
    ensure_group(l, pods);
    make_services(l);
    if (pods && claims_are_there(l) && group_admits(l))
        make_pods(l);
}

/* ---- too much ---- */

static bool too_much(const struct reconcile *l, enum role r, int index)
{
    return index >= reconcile_replicas(l, r);
}

static void scale_down(struct reconcile *l)
{
    for (size_t i = 0; i < l->o->npods; i++) {
        const struct pod_info *p = l->o->pods[i];
        if (too_much(l, p->role, p->index) && reconcile_ours(l, p) && !p->creating && !pod_terminating(p))
            plan_delete(l, p, -1);
    }
    for (size_t i = 0; i < l->o->nservices; i++) {
        const struct service_info *s = l->o->services[i];
        if (s->index >= 0 && too_much(l, s->role, s->index) && reconcile_our_service(l, s) && !s->creating &&
            !s->deleting)
            plan_delete_service(l, s);
    }
}

/* ---- TensorBoard ---- */

/* The job runs without it, so this is no ReplicaFailure. */
static void tell_of_board(struct reconcile *l)
{
    const struct refusal *f = l->o->tensorboard_refused;
    if (!l->v->tensorboard || l->o->tensorboard_ensured) {
        job_status_drop(l->st, COND_TENSORBOARD_FAILURE);
    } else if (f != NULL) {
        auto_free char *text = xasprintf("%s: %s", f->what, f->words);
        plan_set(l, COND_TENSORBOARD_FAILURE, true, plan_reason(l, COND_TENSORBOARD_FAILURE), text);
    }
}

void plan_tensorboard(struct reconcile *l)
{
    tell_of_board(l);
    if (!l->v->tensorboard) {
        if (l->v->invalid == NULL &&
            (l->o->tensorboard_ensured || l->o->tensorboard_found)) /* else the spec says nothing about it */
            plan_add(l, ACT_DELETE_TENSORBOARD, ROLE_COUNT, -1);
        return;
    }
    if (l->v->invalid != NULL || l->o->claims_fault != NULL || l->o->tensorboard_ensured || !claims_are_known(l))
        return;
    plan_add(l, ACT_ENSURE_TENSORBOARD, ROLE_COUNT, -1);
}

static bool asks_for_claims(const struct reconcile *l)
{
    for (size_t i = 0; i < l->p->nactions; i++)
        if (l->p->actions[i].kind == ACT_GET_CLAIMS)
            return true;
    return false;
}

void plan_fill(struct reconcile *l)
{
    make(l);
    if (l->v->invalid == NULL) /* a spec that cannot be read says nothing about how many there should be */
        scale_down(l);
    if (!asks_for_claims(l))
        plan_tensorboard(l);
}
