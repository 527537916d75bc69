/* plan_internal - what the files of the plan share: one look at one job. */
#ifndef TRAINYARD_CONTROL_PLAN_INTERNAL_H
#define TRAINYARD_CONTROL_PLAN_INTERNAL_H

#include "control/plan.h"

/* An index of a role, and what stands there. */
struct slot {
    const struct pod_facts *pod;         /* ours, or NULL */
    const struct service_facts *service; /* of a TFJob's replica */
    bool foreign, foreign_service;       /* somebody else's has the name */
    bool leaving;                        /* this plan deletes the pod */
};

/* The first thing the job waits for that people should know. */
struct wait {
    const char *reason;                  /* of the event; NULL: it waits for nothing */
    char *key;                           /* "digits-worker-1: ImagePullBackOff": while it stays the same, the text stays */
    char *text;                          /* key and more; owned, both */
    char *note;                          /* of the event; owned */
    char about[16];
};

struct look {
    const struct job_view *v;
    const struct job_kind *k;
    const struct observed *o;
    const struct plan_settings *s;
    const struct job_status *was;
    int64_t now;
    struct plan *p;
    struct job_status *st;               /* p->status */
    enum role leader;
    bool own;                            /* our binaries train */
    bool begun;                          /* pods were made before this look */
    bool refused;                        /* the spec is not the one the job began with */
    int was_active[ROLE_COUNT];          /* pods that ran at the last look */
    struct slot *slots[ROLE_COUNT];      /* v->roles[].replicas of each */
    const struct service_facts *service; /* the job's one */
    struct wait wait;
    char *cause;                         /* why it restarts; owned; NULL: it does not */
    bool cause_is_news;                  /* counted in this look; else it waits since an earlier one */
};

enum { FAIL_NORMAL, FAIL_WARNING };                     /* type of the event: training-operator says most failures as Normal */

/* plan_look.c */
void look_init(struct look *l);
void look_fini(struct look *l);
DEFINE_AUTO_FINI(look, look_fini)
extern const enum role PLAN_ROLES[ROLE_COUNT];         /* in the order they are looked at and made */
bool look_ours(const struct look *l, const struct pod_facts *p);
bool look_our_service(const struct look *l, const struct service_facts *s);
int look_replicas(const struct look *l, enum role r);
struct slot *look_slot(const struct look *l, enum role r, int index); /* NULL: not one of the wanted */
bool look_completed(const struct look *l, enum role r, int index);
bool pod_terminating(const struct pod_facts *p);        /* on its way out, whoever sends it */
bool pod_runs(const struct pod_facts *p);               /* Running and not terminating; NULL does not */
bool pod_ended(const struct pod_facts *p);
struct action *plan_add(struct look *l, enum action_kind kind, enum role r, int index);
void plan_delete(struct look *l, const struct pod_facts *p, int grace_s);
void plan_delete_service(struct look *l, const struct service_facts *s);
/* Look again at `at`, if that is ahead. */
void plan_at(struct look *l, int64_t at);
/* One event of a reason and a role in a plan; the first one says it. r ROLE_COUNT: about the job. */
void plan_event(struct look *l, bool warning, const char *reason, enum role r, const char *fmt, ...) PRINTF_LIKE(5, 6);
/* The same with words that are ready; a warning. */
void plan_event_about(struct look *l, const char *reason, const char *about, const char *note);
/* Reasons with the kind in them: "Failed" -> "TFJobFailed"; constant text. */
const char *plan_reason(const struct look *l, enum condition_type t);
const char *plan_reason_resumed(const struct look *l);
void plan_wait(struct look *l, const char *reason, enum role r, const char *key, const char *more, const char *note);
void plan_set(struct look *l, enum condition_type t, bool is_true, const char *reason, const char *message);

/* plan_end.c */
void plan_succeed(struct look *l);
/* Takes the message. */
void plan_fail(struct look *l, const char *reason, char *message, bool warning);
void plan_clean_up(struct look *l);                     /* a finished job: pods, services, its time to live */
/* plan_restart.c */
bool plan_restarts(struct look *l);                     /* true: the job has failed */
/* Counts that the index is made again, once for each pod. pod NULL: it is gone. counts: for backoffLimit too. */
bool plan_count_restart(struct look *l, enum role r, int index, const struct pod_facts *pod, bool counts);
/* The job restarts because of that (the first news of a look stands in the condition). Takes the text; news: an event. */
void plan_because(struct look *l, enum role r, char *text, bool news);
/* What a Restarting condition says: `why` of our processes, else training-operator's sentence. Takes it. */
char *plan_restarting_text(const struct look *l, enum role r, char *why);
bool plan_over_limit(const struct look *l, int64_t more);
void plan_fail_by_limit(struct look *l, const struct pod_facts *last, const char *what);
void plan_force(struct look *l);                        /* pods whose node does not answer */
/* plan_progress.c */
void plan_merge_progress(struct look *l);
void plan_stall(struct look *l);
/* plan_suspend.c */
void plan_suspend(struct look *l);
int plan_step(const struct look *l, const struct pod_facts *p); /* in which step a replica leaves: 0, 1, 2 */
/* plan_start.c */
void plan_fill(struct look *l);                         /* what is missing, what is too much */
void plan_look_after_board(struct look *l);
/* plan_refusal.c */
void plan_look_for_refusal(struct look *l);
void plan_forget_refusal(struct look *l);               /* when all is made, or nothing is to be made */
/* plan_status.c */
void plan_look_for_stuck(struct look *l);
void plan_tell(struct look *l);                         /* Running, Restarting, and what it waits for */
void plan_forget_waiting(struct look *l);               /* it waits for nothing any more; a failed job keeps what it waited for */
void plan_count_pods(struct look *l);
void plan_sum_up(struct look *l);                       /* ready and state */

#endif
