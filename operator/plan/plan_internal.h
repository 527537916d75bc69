/* plan_internal - what the files of the plan share: the state of one call of plan_job(). */
#ifndef TRAINYARD_OPERATOR_PLAN_PLAN_INTERNAL_H
#define TRAINYARD_OPERATOR_PLAN_PLAN_INTERNAL_H

#include "plan/plan.h"

/* An index of a role, and the objects that it has. */
struct replica_slot {
    const struct pod_info *pod;         /* ours, or NULL */
    const struct service_info *service; /* of a TFJob's replica */
    const struct pod_info *foreign;     /* another owner's pod of this name, or NULL */
    bool foreign_service;
    bool leaving; /* this plan deletes the pod */
};

/* The first cause of waiting, which is the one reported. */
struct waiting_reason {
    const char *reason; /* of the event; NULL: it waits for nothing */
    char *key;          /* "digits-worker-1: ImagePullBackOff": while it stays the same, the text stays */
    char *text;         /* key and details; both owned */
    char *note;         /* of the event; owned */
    char about[16];
};

struct reconcile {
    const struct job_spec *spec;
    const struct job_kind *kind;
    const struct observed *observed;
    const struct plan_settings *settings;
    const struct job_status *prev;
    int64_t now;
    struct job_plan *plan;
    struct job_status *status; /* plan->status */
    enum role leader;
    bool own_binaries;                      /* our binaries train */
    bool started;                           /* pods were created before this reconcile */
    bool spec_refused;                      /* the spec is not the one the job started with */
    bool restart_all;                       /* this reconcile restarts all replicas (plan_restart_all.c) */
    int prev_active[ROLE_COUNT];            /* pods that ran at the last reconcile */
    struct replica_slot *slots[ROLE_COUNT]; /* spec->roles[].replicas of each */
    const struct service_info *service;     /* the job's service */
    bool foreign_service;                   /* another owner's service has its name */
    struct waiting_reason waiting;
    int64_t decided_ms;         /* when the pod whose end decides the job's ended; 0: no pod decides it */
    char *restart_reason;       /* why it restarts; owned; NULL: it does not */
    bool restart_reason_is_new; /* counted in this reconcile; else in an earlier one */
};

enum { FAIL_NORMAL, FAIL_WARNING }; /* type of the event: training-operator records most failures as Normal */

/* plan_reconcile.c */
void reconcile_init(struct reconcile *rec);
void reconcile_fini(struct reconcile *rec);
DEFINE_AUTO_FINI(reconcile, reconcile_fini);
extern const enum role PLAN_ROLES[ROLE_COUNT]; /* in the order of checks and creates */
bool reconcile_ours(const struct reconcile *rec, const struct pod_info *p);
bool reconcile_our_service(const struct reconcile *rec, const struct service_info *s);
int reconcile_replicas(const struct reconcile *rec, enum role r);
struct replica_slot *reconcile_slot(const struct reconcile *rec, enum role r,
                                    int index); /* NULL: not one of the wanted */
bool reconcile_completed(const struct reconcile *rec, enum role r, int index);
bool pod_terminating(const struct pod_info *p); /* regardless of which client deleted it */
bool pod_runs(const struct pod_info *p);        /* Running and not terminating; false for NULL */
bool pod_ended(const struct pod_info *p);
struct action *plan_add_action(struct reconcile *rec, enum action_kind kind, enum role r, int index);
void plan_adopt_pod(struct reconcile *rec, const struct pod_info *p);
void plan_restore_labels(struct reconcile *rec, const struct pod_info *p);
void plan_adopt_service(struct reconcile *rec, const struct service_info *s);
/* An orphan is adopted first, and deleted by a later reconcile. */
void plan_delete_pod(struct reconcile *rec, const struct pod_info *p, int grace_s);
void plan_delete_service(struct reconcile *rec, const struct service_info *s);
/* Reconcile again at `at`, if that is in the future. */
void plan_requeue_at(struct reconcile *rec, int64_t at);
/* Adds one event for each reason and role; the first one is kept. r ROLE_COUNT: about the job. */
void plan_add_event(struct reconcile *rec, bool warning, const char *reason, enum role r, const char *fmt, ...)
    PRINTF_LIKE(5, 6);
/* The same with a complete text, as a warning. */
void plan_add_warning(struct reconcile *rec, const char *reason, const char *about, const char *note);
/* Reasons with the kind in them: "Failed" -> "TFJobFailed"; constant text. */
const char *plan_reason(const struct reconcile *rec, enum condition_type t);
const char *plan_reason_resumed(const struct reconcile *rec);
void plan_set_waiting(struct reconcile *rec, const char *reason, enum role r, const char *key, const char *more,
                      const char *note);
void plan_set_condition(struct reconcile *rec, enum condition_type t, bool is_true, const char *reason,
                        const char *message);

/* plan_end.c */
void plan_succeed(struct reconcile *rec);
/* Takes ownership of the message. */
void plan_fail(struct reconcile *rec, const char *reason, char *message, bool warning);
void plan_clean_up(struct reconcile *rec); /* a finished job: pods, services, its time to live */
/* plan_restart.c */
bool plan_restart_replicas(struct reconcile *rec); /* true: the job has failed */
/* Counts a re-creation of the index, once for each pod. pod NULL: it was deleted. counts: backoffLimit counts it, too.
 */
bool plan_count_restart(struct reconcile *rec, enum role r, int index, const struct pod_info *pod, bool counts);
bool plan_is_counted(const struct reconcile *rec, const struct pod_info *p); /* its end has been counted */
/* Sets the reason why the job restarts. The first new reason of a reconcile goes into the condition. Takes ownership of
 * the text. news: records an event. */
void plan_set_restart_reason(struct reconcile *rec, enum role r, char *text, bool news);
/* The message of a Restarting condition: `why` for our processes, else training-operator's sentence. Takes ownership of
 * `why`. */
char *plan_restart_message(const struct reconcile *rec, enum role r, char *why);
bool plan_exceeds_backoff_limit(const struct reconcile *rec, int64_t more);
void plan_fail_backoff_limit(struct reconcile *rec, const struct pod_info *last, const char *what);
void plan_force_delete(struct reconcile *rec); /* pods whose node does not answer */
/* plan_restart_all.c */
bool plan_restarts_together(const struct reconcile *rec,
                            enum role r); /* a failure of one replica of these roles restarts all */
/* True if the pod was created before the last restart of all replicas: it is deleted, or will be. */
bool plan_is_superseded(const struct reconcile *rec, const struct pod_info *p);
void plan_restart_all(struct reconcile *rec); /* starts one if rec->restart_all, and completes one that has started */
bool plan_restart_all_pending(const struct reconcile *rec);
/* plan_identity.c */
void plan_identity(struct reconcile *rec);                                /* certificates, or that there are none */
bool plan_identity_admits(struct reconcile *rec, enum role r, int index); /* its pod may be created; else it waits */
/* plan_progress.c */
void plan_merge_progress(struct reconcile *rec);
void plan_detect_stall(struct reconcile *rec);
/* plan_suspend.c */
void plan_suspend(struct reconcile *rec);
/* Deletes the job's pods in the order of a shutdown. The pod it waits for; NULL: all have stopped. */
const struct pod_info *plan_stop_pods(struct reconcile *rec);
int plan_shutdown_step(const struct reconcile *rec,
                       const struct pod_info *p); /* the step of a shutdown in which it is deleted: 0, 1, 2 */
/* plan_start.c */
void plan_scale(struct reconcile *rec); /* creates what is missing, deletes excess */
void plan_tensorboard(struct reconcile *rec);
/* plan_quota.c */
bool plan_gives_back(struct reconcile *rec); /* its pods: they are deleted, or not created yet */
void plan_give_back(struct reconcile *rec);
/* plan_refusal.c */
bool plan_pod_made(const struct reconcile *rec, enum role r, int i); /* it exists, or is not needed any more */
bool plan_still_refused(const struct reconcile *rec, const struct refusal *f); /* f may be NULL */
void plan_detect_refusal(struct reconcile *rec);
void plan_clear_refusal(struct reconcile *rec); /* when all objects exist, or none has to be created */
/* plan_status.c */
void plan_detect_waiting(struct reconcile *rec);
void plan_set_conditions(struct reconcile *rec); /* Running, Restarting, and what it waits for */
void plan_clear_waiting(
    struct reconcile *rec); /* for a job that no longer waits; a failed job keeps the text of what it waited for */
void plan_count_pods(struct reconcile *rec);
void plan_summarize(struct reconcile *rec); /* ready and state */

#endif
