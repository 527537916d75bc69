/* apply_internal - inside of apply_plan(): the requests of one kind of object each in a file of its own. */
#ifndef TRAINYARD_CONTROL_APPLY_INTERNAL_H
#define TRAINYARD_CONTROL_APPLY_INTERNAL_H

#include "control/apply.h"
#include "control/inflight.h"

struct apply_context { /* of one call of apply_plan */
    struct controller_env *env;
    struct cache_entry *entry;
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
const json_t *apply_spec(struct apply_context *ctx);
/* May a request of that kind go now? true: it counts as sent. Else the job gets another turn, or is woken when it may.
 */
bool apply_may_send(struct apply_context *ctx, enum action_kind k);
/* No creates of that kind, or no deletes, for a while. Grows, and ends with the first that works. */
void apply_delay(struct controller_env *env, struct cache_entry *entry, enum action_kind k, int64_t at_least_ms);
/* The API server's status does not say yet how often this index was made again: an operator that is killed now would
 * lose that. What goes on once it is written must follow from the plan. A status that cannot be written holds nobody up
 * for long. */
bool apply_waits_for_counts(struct cache_entry *entry, enum role role, int index);
/* An event and a line in the log, then apply_delay(). verb: "deleting". Only for what is not created. */
void apply_failed(struct inflight_request *req, struct cache_entry *entry, const char *reason, const char *verb,
                  const struct kube_answer *a);
/* The event of what was done: apply_record_event(req, entry, "SuccessfulDeletePod", "Deleted pod"). */
void apply_record_event(struct inflight_request *req, struct cache_entry *entry, const char *reason, const char *what);
/* What the inflight_request was to make is there, and more may be made; its event, when that is told. */
void apply_created(struct inflight_request *req, struct cache_entry *entry, bool tell);
/* It was refused: the first of its round gets an event and a line in the log, and the job itself says it. */
void apply_refused(struct inflight_request *req, struct cache_entry *entry, const struct kube_answer *a);
/* It exists and is somebody else's: an event, and what the job itself says of it. */
void apply_foreign(struct inflight_request *req, struct cache_entry *entry, const struct kube_resource *what);
/* A request about an object of that name; made anew by KUBE_CREATE, whose answer is its metadata. */
void apply_send(struct apply_context *ctx, const struct action *a, enum kube_verb verb,
                const struct kube_resource *what, const char *name, const json_t *body, inflight_done *done);
/* After AlreadyExists: whose is it? */
void apply_get(struct inflight_request *req, struct cache_entry *entry, const struct kube_resource *what,
               bool metadata_only, inflight_done *done);
/* Before an orphan is adopted the API server is asked for the job: what the watch told last may be older than the
 * deletion that made the orphan. done() asks apply_may_adopt(). */
void apply_get_job(struct controller_env *env, struct cache_entry *entry, const struct action *a, inflight_done *done);
bool apply_may_adopt(const struct cache_entry *entry, const struct kube_answer *a);
/* Only if it is still what the action says: by its uid and version. */
void apply_delete(struct apply_context *ctx, const struct action *a, const struct kube_resource *what,
                  inflight_done *done);

/* apply_dependent.c: objects of a fixed name. */
struct dependent {
    const struct kube_resource *resource; /* NULL: the gang scheduler's PodGroup */
    bool adopts;                          /* an orphan with our labels becomes ours */
    bool follows; /* one that is there is changed to what the job says now; else only an adopted one */
    struct merge_patch_rules rules;
    json_t *(*build)(struct apply_context *ctx, const struct action *a); /* NULL: it cannot be built now */
    /* The end of dependent_ensure(): the object, ours; its metadata alone when it was made. NULL: it is not there. */
    void (*over)(struct inflight_request *req, struct cache_entry *entry, const json_t *object);
    /* The end of dependent_delete(). deleted: by us; else there was nothing of ours, or a says why it is still there.
     */
    void (*gone)(struct inflight_request *req, struct cache_entry *entry, const struct kube_answer *a, bool deleted);
};
void dependent_ensure(struct apply_context *ctx, const struct action *a, const struct dependent *ch);
void dependent_delete(struct apply_context *ctx, const struct action *a, const char *name, const struct dependent *ch);
/* Goes on with one that the watch told of, which nobody controls: a is ACT_ADOPT_*, with its name. */
void dependent_adopt(struct apply_context *ctx, const struct action *a, const struct dependent *ch);

/* apply_pods.c */
void apply_create_pod(struct apply_context *ctx, const struct action *a);
void apply_delete_pod(struct apply_context *ctx, const struct action *a);
void apply_adopt_pod(struct apply_context *ctx, const struct action *a);
void apply_label_pod(struct apply_context *ctx, const struct action *a);
/* apply_services.c */
void apply_create_service(struct apply_context *ctx, const struct action *a);
void apply_delete_service(struct apply_context *ctx, const struct action *a);
void apply_adopt_service(struct apply_context *ctx, const struct action *a);
/* What a job has once: apply_claims.c, apply_config.c (also the policy), apply_gang.c, apply_tensorboard.c, apply_job.c
 */
void apply_claims(struct apply_context *ctx, const struct action *a);
void apply_config(struct apply_context *ctx, const struct action *a);
void apply_policy(struct apply_context *ctx, const struct action *a);
void apply_group(struct apply_context *ctx, const struct action *a);
void apply_delete_group(struct apply_context *ctx, const struct action *a);
void apply_tensorboard(struct apply_context *ctx, const struct action *a);
void apply_delete_tensorboard(struct apply_context *ctx, const struct action *a);
void apply_delete_job(struct apply_context *ctx, const struct action *a);
/* How many replicas are not run again. */
int apply_completed(const struct cache_entry *entry);
/* Asks for the phase of a gang that waits. */
void apply_poll_group(struct apply_context *ctx);

#endif
