/* apply_internal - inside of apply_plan(): the requests of one kind of object each in a file of its own. */
#ifndef TRAINYARD_CONTROL_APPLY_INTERNAL_H
#define TRAINYARD_CONTROL_APPLY_INTERNAL_H

#include "control/controller_internal.h"

struct context { /* of one call of apply_plan */
    struct controller *c;
    struct record *r;
    json_t *spec;   /* unpacked at its first use */
    bool may_label; /* so that who changes labels again and again does not keep us busy */
    bool hold_pods; /* what pods need before them is not there yet */
    bool core_only; /* no pods but those of the job's core */
    bool makes_pods;
    bool granted; /* it is the job's turn */
    int sent;     /* in this turn */
    size_t bytes_then;
    bool more; /* some requests wait for the next turn */
};

/* apply.c */
const json_t *apply_spec(struct context *x);
/* May a request of that kind go now? true: it counts as sent. Else the job gets another turn, or is woken when it may.
 */
bool apply_may_send(struct context *x, enum action_kind k);
/* No creates of that kind, or no deletes, for a while. Grows, and ends with the first that works. */
void apply_block(struct controller *c, struct record *r, enum action_kind k, int64_t at_least_ms);
/* The API server's status does not say yet how often this index was made again: an operator that is killed now would
 * lose that. What goes on once it is written must follow from the plan. A status that cannot be written holds nobody up
 * for long. */
bool apply_waits_for_counts(struct record *r, enum role role, int index);
/* An event and a line in the log, then apply_block(). verb: "deleting". Only for what is not created. */
void apply_failed(struct task *t, struct record *r, const char *reason, const char *verb, const struct kube_answer *a);
/* The event of what was done: apply_done(t, r, "SuccessfulDeletePod", "Deleted pod"). */
void apply_done(struct task *t, struct record *r, const char *reason, const char *what);
/* What the task was to make is there, and more may be made; its event, when that is told. */
void apply_made(struct task *t, struct record *r, bool tell);
/* It was refused: the first of its round gets an event and a line in the log, and the job itself says it. */
void apply_not_made(struct task *t, struct record *r, const struct kube_answer *a);
/* It exists and is somebody else's: an event, and what the job itself says of it. */
void apply_foreign(struct task *t, struct record *r, const struct kube_resource *what);
/* A request about an object of that name; made anew by KUBE_CREATE, whose answer is its metadata. */
void apply_send(struct context *x, const struct action *a, enum kube_verb verb, const struct kube_resource *what,
                const char *name, const json_t *body,
                void (*done)(struct task *t, struct record *r, const struct kube_answer *an));
/* After AlreadyExists: whose is it? */
void apply_get(struct task *t, struct record *r, const struct kube_resource *what, bool metadata_only,
               void (*done)(struct task *t, struct record *r, const struct kube_answer *an));
/* Before an orphan is adopted the API server is asked for the job: what the watch told last may be older than the
 * deletion that made the orphan. done() asks apply_may_adopt(). */
void apply_ask_job(struct controller *c, struct record *r, const struct action *a,
                   void (*done)(struct task *t, struct record *r, const struct kube_answer *an));
bool apply_may_adopt(const struct record *r, const struct kube_answer *a);
/* Only if it is still what the action says: by its uid and version. */
void apply_delete(struct context *x, const struct action *a, const struct kube_resource *what,
                  void (*done)(struct task *t, struct record *r, const struct kube_answer *an));

/* apply_child.c: objects of a fixed name. */
struct child {
    const struct kube_resource *resource; /* NULL: the gang scheduler's PodGroup */
    bool adopts;                          /* an orphan with our labels becomes ours */
    bool follows; /* one that is there is changed to what the job says now; else only an adopted one */
    struct merge_patch_rules rules;
    json_t *(*build)(struct context *x, const struct action *a); /* NULL: it cannot be built now */
    /* The end of child_ensure(): the object, ours; its metadata alone when it was made. NULL: it is not there. */
    void (*over)(struct task *t, struct record *r, const json_t *object);
    /* The end of child_delete(). deleted: by us; else there was nothing of ours, or a says why it is still there. */
    void (*gone)(struct task *t, struct record *r, const struct kube_answer *a, bool deleted);
};
void child_ensure(struct context *x, const struct action *a, const struct child *ch);
void child_delete(struct context *x, const struct action *a, const char *name, const struct child *ch);
/* Goes on with one that the watch told of, which nobody controls: a is ACT_ADOPT_*, with its name. */
void child_adopt(struct context *x, const struct action *a, const struct child *ch);

/* apply_pods.c */
void apply_create_pod(struct context *x, const struct action *a);
void apply_delete_pod(struct context *x, const struct action *a);
void apply_adopt_pod(struct context *x, const struct action *a);
void apply_label_pod(struct context *x, const struct action *a);
/* The watch tells of its end, but perhaps only its labels were changed: the API server is asked. */
void apply_ask_pod(struct controller *c, struct record *r, struct pod_info *p);
/* apply_services.c */
void apply_create_service(struct context *x, const struct action *a);
void apply_delete_service(struct context *x, const struct action *a);
void apply_adopt_service(struct context *x, const struct action *a);
/* What a job has once: apply_claims.c, apply_config.c (also the policy), apply_gang.c, apply_tensorboard.c, apply_job.c
 */
void apply_claims(struct context *x, const struct action *a);
void apply_config(struct context *x, const struct action *a);
void apply_policy(struct context *x, const struct action *a);
void apply_group(struct context *x, const struct action *a);
void apply_delete_group(struct context *x, const struct action *a);
void apply_board(struct context *x, const struct action *a);
void apply_delete_board(struct context *x, const struct action *a);
void apply_delete_job(struct context *x, const struct action *a);
/* How many replicas are not run again. */
int apply_completed(const struct record *r);
/* Asks for the phase of a gang that waits. */
void apply_get_group(struct context *x);

#endif
