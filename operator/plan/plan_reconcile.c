/* One look at a job: which pods and services are ours, and the plan being written. */
#include <stdarg.h>
#include <string.h>

#include "plan/plan_internal.h"

const enum role PLAN_ROLES[ROLE_COUNT] = { ROLE_PS, ROLE_CHIEF, ROLE_WORKER, ROLE_EVALUATOR };

/* ---- whose ---- */

static bool has_right_name(const struct reconcile *l, const char *name, enum role r, int index)
{
    char right[128];
    return str_eq(name, index < 0 ? l->v->name : job_spec_pod_name(l->v, r, index, right));
}

bool reconcile_ours(const struct reconcile *l, const struct pod_info *p)
{
    if (p->creating)
        return true;
    if (p->owner_uid != NULL)
        return str_eq(p->owner_uid, l->v->uid);
    /* a pod of our processes works for one life of the job: it has that one's uid, and its model */
    return (!l->k->own_processes || str_eq(p->made_for, l->v->uid)) && has_right_name(l, p->name, p->role, p->index);
}

bool reconcile_our_service(const struct reconcile *l, const struct service_info *s)
{
    if (s->creating)
        return true;
    return s->owner_uid != NULL ? str_eq(s->owner_uid, l->v->uid)
                                : s->labelled && has_right_name(l, s->name, s->role, s->index);
}

int reconcile_replicas(const struct reconcile *l, enum role r)
{
    return l->v->roles[r].present ? MAX(l->v->roles[r].replicas, 0) : 0;
}

struct slot *reconcile_slot(const struct reconcile *l, enum role r, int index)
{
    return index >= 0 && index < reconcile_replicas(l, r) ? &l->slots[r][index] : NULL;
}

bool reconcile_completed(const struct reconcile *l, enum role r, int index)
{
    return index_set_has(&l->st->roles[r].completed, index);
}

bool pod_terminating(const struct pod_info *p)
{
    return p->deleting || p->gone_by_ms > 0;
}

bool pod_ended(const struct pod_info *p)
{
    return p->phase == POD_SUCCEEDED || p->phase == POD_FAILED;
}

bool pod_runs(const struct pod_info *p)
{
    return p != NULL && p->phase == POD_RUNNING && !pod_terminating(p);
}

static void place_pod(struct reconcile *l, const struct pod_info *p)
{
    struct slot *slot = reconcile_slot(l, p->role, p->index);
    if (slot == NULL)
        return;
    bool ours = reconcile_ours(l, p); /* names are compared only where it matters: it is what a look costs */
    if (!ours && has_right_name(l, p->name, p->role, p->index))
        slot->foreign = p;
    else if (!ours)
        return;
    else if (slot->pod == NULL || has_right_name(l, p->name, p->role, p->index))
        slot->pod = p;
}

static void place_service(struct reconcile *l, const struct service_info *s)
{
    struct slot *slot = reconcile_slot(l, s->role, s->index);
    bool ours = reconcile_our_service(l, s);
    if (s->index < 0 && ours)
        l->service = s;
    l->foreign_service |= s->index < 0 && !ours && has_right_name(l, s->name, s->role, -1);
    if (s->index < 0 || slot == NULL)
        return;
    if (ours)
        slot->service = s;
    else if (has_right_name(l, s->name, s->role, s->index))
        slot->foreign_service = true;
}

/* Did a replica ever start? Then the spec it started with is the one that counts. */
static bool begun(const struct reconcile *l)
{
    if (l->was->spec_hash[0] != '\0' || job_status_find(l->was, COND_RUNNING) ||
        job_status_find(l->was, COND_RESTARTING))
        return true;
    for (int r = 0; r < ROLE_COUNT; r++)
        if (l->was->roles[r].completed.n > 0)
            return true;
    for (size_t i = 0; i < l->o->npods; i++)
        if (reconcile_ours(l, l->o->pods[i]))
            return true;
    return false;
}

void reconcile_init(struct reconcile *l)
{
    l->k = l->v->kind;
    l->st = &l->p->status;
    l->leader = job_spec_leader(l->v);
    l->own = l->k->own_processes && l->v->has_model;
    for (int r = 0; r < ROLE_COUNT; r++) {
        l->slots[r] = xcalloc((size_t)reconcile_replicas(l, (enum role)r) + 1, sizeof(*l->slots[r]));
        l->was_active[r] = l->was->roles[r].active;
    }
    for (size_t i = 0; i < l->o->npods; i++)
        place_pod(l, l->o->pods[i]);
    for (size_t i = 0; i < l->o->nservices; i++)
        place_service(l, l->o->services[i]);
    l->begun = begun(l);
}

void reconcile_fini(struct reconcile *l)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        free(l->slots[r]);
    free(l->wait.key);
    free(l->wait.text);
    free(l->wait.note);
    free(l->cause);
}

/* ---- writing the plan ---- */

struct action *plan_add(struct reconcile *l, enum action_kind kind, enum role r, int index)
{
    struct plan *p = l->p;
    if ((p->nactions & (p->nactions - 1)) == 0) /* grows at powers of two */
        p->actions = xrealloc(p->actions, MAX(2 * p->nactions, (size_t)1) * sizeof(*p->actions));
    p->actions[p->nactions] = (struct action){ .kind = kind, .role = r, .index = index, .grace_s = -1 };
    return &p->actions[p->nactions++];
}

static bool adopts_already(const struct reconcile *l, enum action_kind kind, const char *uid)
{
    for (size_t i = 0; i < l->p->nactions; i++)
        if (l->p->actions[i].kind == kind && str_eq(l->p->actions[i].uid, uid))
            return true;
    return false;
}

/* An orphan of ours is adopted first: only what bears our ownerRef is deleted. */
static struct action *plan_about(struct reconcile *l, enum action_kind kind, enum role r, int index, const char *name,
                                 const char *uid, int64_t version)
{
    struct action *a = plan_add(l, kind, r, index);
    a->name = name;
    a->uid = uid;
    a->version = version;
    return a;
}

void plan_adopt(struct reconcile *l, const struct pod_info *p)
{
    if (!p->patching && !adopts_already(l, ACT_ADOPT_POD, p->uid))
        plan_about(l, ACT_ADOPT_POD, p->role, p->index, p->name, p->uid, p->version);
}

void plan_label(struct reconcile *l, const struct pod_info *p)
{
    if (!p->patching)
        plan_about(l, ACT_LABEL_POD, p->role, p->index, p->name, p->uid, p->version);
}

void plan_adopt_service(struct reconcile *l, const struct service_info *s)
{
    if (!s->patching && !adopts_already(l, ACT_ADOPT_SERVICE, s->uid))
        plan_about(l, ACT_ADOPT_SERVICE, s->role, s->index, s->name, s->uid, s->version);
}

void plan_delete(struct reconcile *l, const struct pod_info *p, int grace_s)
{
    struct slot *slot = reconcile_slot(l, p->role, p->index);
    if (p->owner_uid == NULL) {
        plan_adopt(l, p);
        return;
    }
    plan_about(l, ACT_DELETE_POD, p->role, p->index, p->name, p->uid, p->version)->grace_s = grace_s;
    if (slot != NULL && slot->pod == p)
        slot->leaving = true;
}

void plan_delete_service(struct reconcile *l, const struct service_info *s)
{
    if (s->owner_uid == NULL)
        plan_adopt_service(l, s);
    else
        plan_about(l, ACT_DELETE_SERVICE, s->role, s->index, s->name, s->uid, s->version);
}

void plan_at(struct reconcile *l, int64_t at)
{
    if (at > l->now && (l->p->next_ms == 0 || at < l->p->next_ms))
        l->p->next_ms = at;
}

static void add_event(struct plan *p, bool warning, const char *reason, const char *about, const char *note)
{
    for (size_t i = 0; i < p->nevents; i++)
        if (str_eq(p->events[i].reason, reason) && str_eq(p->events[i].about, about))
            return;
    p->events = xrealloc(p->events, (p->nevents + 1) * sizeof(*p->events));
    struct plan_event *e = &p->events[p->nevents++];
    *e = (struct plan_event){ .warning = warning, .reason = reason, .note = xstrdup(note) };
    str_fmt(e->about, sizeof(e->about), "%s", about);
}

void plan_event(struct reconcile *l, bool warning, const char *reason, enum role r, const char *fmt, ...)
{
    AUTO_FINI(buf) note = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&note, fmt, ap);
    va_end(ap);
    add_event(l->p, warning, reason, r < ROLE_COUNT ? job_spec_role_key(l->v, r) : "", note.data);
}

void plan_event_about(struct reconcile *l, const char *reason, const char *about, const char *note)
{
    add_event(l->p, true, reason, about, note);
}

/* ---- words ---- */

#define WITH_KIND(word)                                                                                                \
    {                                                                                                                  \
        "TrainJob" word, "TFJob" word                                                                                  \
    }

static const char *by_kind(const struct reconcile *l, const char *const words[2])
{
    return words[l->k == &KIND_TFJOB ? 1 : 0];
}

const char *plan_reason(const struct reconcile *l, enum condition_type t)
{
    static const char *const WORDS[COND_COUNT][2] = {
        [COND_CREATED] = WITH_KIND("Created"),
        [COND_RUNNING] = WITH_KIND("Running"),
        [COND_RESTARTING] = WITH_KIND("Restarting"),
        [COND_SUCCEEDED] = WITH_KIND("Succeeded"),
        [COND_FAILED] = WITH_KIND("Failed"),
        [COND_SUSPENDED] = WITH_KIND("Suspended"),
        [COND_STALLED] = WITH_KIND("Stalled"),
        [COND_REFUSED] = { "SpecChangeRefused", "SpecChangeRefused" },
        [COND_REPLICA_FAILURE] = { "FailedCreate", "FailedCreate" },
        [COND_TENSORBOARD_FAILURE] = { "FailedCreate", "FailedCreate" },
    };
    return by_kind(l, WORDS[t]);
}

const char *plan_reason_resumed(const struct reconcile *l)
{
    static const char *const WORDS[2] = WITH_KIND("Resumed");
    return by_kind(l, WORDS);
}

void plan_set(struct reconcile *l, enum condition_type t, bool is_true, const char *reason, const char *message)
{
    job_status_set(l->st, t, is_true, reason, message, l->v->generation, l->now);
}

void plan_wait(struct reconcile *l, const char *reason, enum role r, const char *key, const char *more,
               const char *note)
{
    struct wait *w = &l->wait;
    if (w->reason != NULL)
        return;
    w->reason = reason;
    w->key = xstrdup(key);
    w->text = more == NULL ? xstrdup(key) : xasprintf("%s: %s", key, more);
    w->note = note != NULL ? xstrdup(note) : NULL;
    str_fmt(w->about, sizeof(w->about), "%s", r < ROLE_COUNT ? job_spec_role_key(l->v, r) : "");
}
