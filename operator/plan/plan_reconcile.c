/* The state of one call of plan_job(): which pods and services belong to which replica, and the plan being written. */
#include <stdarg.h>
#include <string.h>

#include "plan/plan_internal.h"

const enum role PLAN_ROLES[ROLE_COUNT] = { ROLE_PS, ROLE_CHIEF, ROLE_WORKER, ROLE_EVALUATOR };

/* ---- ownership ---- */

static bool has_right_name(const struct reconcile *rec, const char *name, enum role r, int index)
{
    char right[128];
    return str_eq(name, index < 0 ? rec->spec->name : job_spec_pod_name(rec->spec, r, index, right));
}

bool reconcile_ours(const struct reconcile *rec, const struct pod_info *p)
{
    if (p->creating)
        return true;
    if (p->owner_uid != NULL)
        return str_eq(p->owner_uid, rec->spec->uid);
    /* a pod of our processes belongs to one uid of the job, and has its model */
    return (!rec->kind->own_processes || str_eq(p->made_for, rec->spec->uid)) &&
           has_right_name(rec, p->name, p->role, p->index);
}

bool reconcile_our_service(const struct reconcile *rec, const struct service_info *s)
{
    if (s->creating)
        return true;
    return s->owner_uid != NULL ? str_eq(s->owner_uid, rec->spec->uid)
                                : s->labelled && has_right_name(rec, s->name, s->role, s->index);
}

int reconcile_replicas(const struct reconcile *rec, enum role r)
{
    return rec->spec->roles[r].present ? MAX(rec->spec->roles[r].replicas, 0) : 0;
}

struct replica_slot *reconcile_slot(const struct reconcile *rec, enum role r, int index)
{
    return index >= 0 && index < reconcile_replicas(rec, r) ? &rec->slots[r][index] : NULL;
}

bool reconcile_completed(const struct reconcile *rec, enum role r, int index)
{
    return index_set_has(&rec->status->roles[r].completed, index);
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

static void place_pod(struct reconcile *rec, const struct pod_info *p)
{
    struct replica_slot *slot = reconcile_slot(rec, p->role, p->index);
    if (slot == NULL)
        return;
    bool ours = reconcile_ours(rec, p); /* comparing names dominates the cost, so it is done last */
    if (!ours && has_right_name(rec, p->name, p->role, p->index))
        slot->foreign = p;
    else if (!ours)
        return;
    else if (slot->pod == NULL || has_right_name(rec, p->name, p->role, p->index))
        slot->pod = p;
}

static void place_service(struct reconcile *rec, const struct service_info *s)
{
    struct replica_slot *slot = reconcile_slot(rec, s->role, s->index);
    bool ours = reconcile_our_service(rec, s);
    if (s->index < 0 && ours)
        rec->service = s;
    rec->foreign_service |= s->index < 0 && !ours && has_right_name(rec, s->name, s->role, -1);
    if (s->index < 0 || slot == NULL)
        return;
    if (ours)
        slot->service = s;
    else if (has_right_name(rec, s->name, s->role, s->index))
        slot->foreign_service = true;
}

/* Once a replica has started, the spec with which it started counts. */
static bool begun(const struct reconcile *rec)
{
    if (rec->prev->spec_hash[0] != '\0' || job_status_find(rec->prev, COND_RUNNING) ||
        job_status_find(rec->prev, COND_RESTARTING))
        return true;
    for (int r = 0; r < ROLE_COUNT; r++)
        if (rec->prev->roles[r].completed.n > 0)
            return true;
    for (size_t i = 0; i < rec->observed->npods; i++)
        if (reconcile_ours(rec, rec->observed->pods[i]))
            return true;
    return false;
}

void reconcile_init(struct reconcile *rec)
{
    rec->kind = rec->spec->kind;
    rec->status = &rec->plan->status;
    rec->leader = job_spec_leader(rec->spec);
    rec->own_binaries = rec->kind->own_processes && rec->spec->has_model;
    for (int r = 0; r < ROLE_COUNT; r++) {
        rec->slots[r] = xcalloc((size_t)reconcile_replicas(rec, (enum role)r) + 1, sizeof(*rec->slots[r]));
        rec->prev_active[r] = rec->prev->roles[r].active;
    }
    for (size_t i = 0; i < rec->observed->npods; i++)
        place_pod(rec, rec->observed->pods[i]);
    for (size_t i = 0; i < rec->observed->nservices; i++)
        place_service(rec, rec->observed->services[i]);
    rec->started = begun(rec);
}

void reconcile_fini(struct reconcile *rec)
{
    for (int r = 0; r < ROLE_COUNT; r++)
        free(rec->slots[r]);
    free(rec->waiting.key);
    free(rec->waiting.text);
    free(rec->waiting.note);
    free(rec->restart_reason);
}

/* ---- writing the plan ---- */

struct action *plan_add_action(struct reconcile *rec, enum action_kind kind, enum role r, int index)
{
    struct job_plan *p = rec->plan;
    if ((p->nactions & (p->nactions - 1)) == 0) /* grows at powers of two */
        p->actions = xrealloc(p->actions, MAX(2 * p->nactions, (size_t)1) * sizeof(*p->actions));
    p->actions[p->nactions] = (struct action){ .kind = kind, .role = r, .index = index, .grace_s = -1 };
    return &p->actions[p->nactions++];
}

static bool adopts_already(const struct reconcile *rec, enum action_kind kind, const char *uid)
{
    for (size_t i = 0; i < rec->plan->nactions; i++)
        if (rec->plan->actions[i].kind == kind && str_eq(rec->plan->actions[i].uid, uid))
            return true;
    return false;
}

/* Adds an action on an existing object, with its uid and version as preconditions. */
static struct action *plan_about(struct reconcile *rec, enum action_kind kind, enum role r, int index, const char *name,
                                 const char *uid, int64_t version)
{
    struct action *a = plan_add_action(rec, kind, r, index);
    a->name = name;
    a->uid = uid;
    a->version = version;
    return a;
}

void plan_adopt_pod(struct reconcile *rec, const struct pod_info *p)
{
    if (!p->patching && !adopts_already(rec, ACT_ADOPT_POD, p->uid))
        plan_about(rec, ACT_ADOPT_POD, p->role, p->index, p->name, p->uid, p->version);
}

void plan_restore_labels(struct reconcile *rec, const struct pod_info *p)
{
    if (!p->patching)
        plan_about(rec, ACT_LABEL_POD, p->role, p->index, p->name, p->uid, p->version);
}

void plan_adopt_service(struct reconcile *rec, const struct service_info *s)
{
    if (!s->patching && !adopts_already(rec, ACT_ADOPT_SERVICE, s->uid))
        plan_about(rec, ACT_ADOPT_SERVICE, s->role, s->index, s->name, s->uid, s->version);
}

void plan_delete_pod(struct reconcile *rec, const struct pod_info *p, int grace_s)
{
    struct replica_slot *slot = reconcile_slot(rec, p->role, p->index);
    if (p->owner_uid == NULL) {
        plan_adopt_pod(rec, p);
        return;
    }
    plan_about(rec, ACT_DELETE_POD, p->role, p->index, p->name, p->uid, p->version)->grace_s = grace_s;
    if (slot != NULL && slot->pod == p)
        slot->leaving = true;
}

void plan_delete_service(struct reconcile *rec, const struct service_info *s)
{
    if (s->owner_uid == NULL)
        plan_adopt_service(rec, s);
    else
        plan_about(rec, ACT_DELETE_SERVICE, s->role, s->index, s->name, s->uid, s->version);
}

void plan_requeue_at(struct reconcile *rec, int64_t at)
{
    if (at > rec->now && (rec->plan->next_ms == 0 || at < rec->plan->next_ms))
        rec->plan->next_ms = at;
}

static void add_event(struct job_plan *p, bool warning, const char *reason, const char *about, const char *note)
{
    for (size_t i = 0; i < p->nevents; i++)
        if (str_eq(p->events[i].reason, reason) && str_eq(p->events[i].about, about))
            return;
    p->events = xrealloc(p->events, (p->nevents + 1) * sizeof(*p->events));
    struct plan_event *e = &p->events[p->nevents++];
    *e = (struct plan_event){ .warning = warning, .reason = reason, .note = xstrdup(note) };
    str_fmt(e->about, sizeof(e->about), "%s", about);
}

void plan_add_event(struct reconcile *rec, bool warning, const char *reason, enum role r, const char *fmt, ...)
{
    AUTO_FINI(buf) note = BUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    buf_vprintf(&note, fmt, ap);
    va_end(ap);
    add_event(rec->plan, warning, reason, r < ROLE_COUNT ? job_spec_role_key(rec->spec, r) : "", note.data);
}

void plan_add_warning(struct reconcile *rec, const char *reason, const char *about, const char *note)
{
    add_event(rec->plan, true, reason, about, note);
}

/* ---- texts ---- */

#define WITH_KIND(word)                                                                                                \
    {                                                                                                                  \
        "TrainJob" word, "TFJob" word                                                                                  \
    }

static const char *by_kind(const struct reconcile *rec, const char *const words[2])
{
    return words[rec->kind == &KIND_TFJOB ? 1 : 0];
}

const char *plan_reason(const struct reconcile *rec, enum condition_type t)
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
        [COND_INSECURE] = { "NoCertificates", "NoCertificates" },
    };
    return by_kind(rec, WORDS[t]);
}

const char *plan_reason_resumed(const struct reconcile *rec)
{
    static const char *const WORDS[2] = WITH_KIND("Resumed");
    return by_kind(rec, WORDS);
}

void plan_set_condition(struct reconcile *rec, enum condition_type t, bool is_true, const char *reason,
                        const char *message)
{
    job_status_set(rec->status, t, is_true, reason, message, rec->spec->generation, rec->now);
}

void plan_set_waiting(struct reconcile *rec, const char *reason, enum role r, const char *key, const char *more,
                      const char *note)
{
    struct waiting_reason *w = &rec->waiting;
    if (w->reason != NULL)
        return;
    w->reason = reason;
    w->key = xstrdup(key);
    w->text = more == NULL ? xstrdup(key) : xasprintf("%s: %s", key, more);
    w->note = note != NULL ? xstrdup(note) : NULL;
    str_fmt(w->about, sizeof(w->about), "%s", r < ROLE_COUNT ? job_spec_role_key(rec->spec, r) : "");
}
