/* apply_internal - inside of apply_plan(): the requests of one kind of object each in a file of its own. */
#ifndef TRAINYARD_CONTROL_APPLY_INTERNAL_H
#define TRAINYARD_CONTROL_APPLY_INTERNAL_H

#include "control/controller_internal.h"

struct context { /* of one call of apply_plan */
    struct controller *c;
    struct record *r;
    json_t *spec;   /* unpacked at its first use */
    bool hold_pods; /* what pods need before them is not there yet */
    size_t making;  /* creates of its pods on their way */
};

/* apply.c */
const json_t *apply_spec(struct context *x);
/* No creates, or no deletes, for a while: a quota, a webhook, an invalid template. Grows, and ends with the first that works. */
void apply_block(struct controller *c, struct record *r, enum action_kind k, int64_t at_least_ms);
/* An event and a line in the log, then apply_block(). verb: "deleting". */
void apply_failed(struct task *t, struct record *r, const char *reason, const char *verb, const struct kube_answer *a);
/* The event of what was done: apply_done(t, r, "SuccessfulDeletePod", "Deleted pod"). */
void apply_done(struct task *t, struct record *r, const char *reason, const char *what);
/* What the task was to make is there; its event, when that is told. */
void apply_made(struct task *t, struct record *r, bool tell);
/* It was refused: apply_failed(), and what the job itself says of it. */
void apply_not_made(struct task *t, struct record *r, const struct kube_answer *a);
/* It exists and is somebody else's: an event, and what the job itself says of it. */
void apply_foreign(struct task *t, struct record *r);
/* A request about an object of that name; made anew by KUBE_CREATE, whose answer is its metadata. */
void apply_send(struct context *x, const struct action *a, enum kube_verb verb, const struct kube_resource *what, const char *name,
                const json_t *body, void (*done)(struct task *t, struct record *r, const struct kube_answer *an));
/* After AlreadyExists: whose is it? */
void apply_look(struct task *t, struct record *r, const struct kube_resource *what, bool metadata_only,
                void (*done)(struct task *t, struct record *r, const struct kube_answer *an));
void apply_delete(struct context *x, const struct action *a, const struct kube_resource *what,
                  void (*done)(struct task *t, struct record *r, const struct kube_answer *an));

/* apply_pods.c */
void apply_create_pod(struct context *x, const struct action *a);
void apply_delete_pod(struct context *x, const struct action *a);
void apply_adopt_pod(struct context *x, const struct action *a);
/* apply_services.c */
void apply_create_service(struct context *x, const struct action *a);
void apply_delete_service(struct context *x, const struct action *a);
/* apply_extras.c: what a job has once */
void apply_claims(struct context *x, const struct action *a);
void apply_config(struct context *x, const struct action *a);
void apply_policy(struct context *x, const struct action *a);
void apply_group(struct context *x, const struct action *a);
void apply_delete_group(struct context *x, const struct action *a);
void apply_board(struct context *x, const struct action *a);
void apply_delete_board(struct context *x, const struct action *a);
void apply_delete_job(struct context *x, const struct action *a);
/* Asks for the phase of a gang that waits. */
void apply_look_at_group(struct context *x);

#endif
