/* apply_internal - shared by the files of apply, one for each kind of object. */
#ifndef TRAINYARD_CONTROL_APPLY_INTERNAL_H
#define TRAINYARD_CONTROL_APPLY_INTERNAL_H

#include "control/apply.h"
#include "control/in_flight.h"

struct apply_context { /* of one call of apply_plan */
    struct controller_env *env;
    struct cache_entry *entry;
    json_t *spec;   /* unpacked at its first use */
    bool may_label; /* at most one label patch per second and job */
    bool hold_pods; /* objects that pods need do not exist yet */
    bool core_only; /* no pods but those of the job's core */
    bool makes_pods;
    bool granted; /* it is the job's turn */
    int sent;     /* in this turn */
    size_t bytes_then;
    bool more; /* some requests wait for the next turn */
};

/* apply.c */
const json_t *apply_spec(struct apply_context *ctx);
/* May a request of that kind be sent now? true: it counts as sent. Otherwise the job waits for another turn, or is
 * requeued for the time when it may. */
bool apply_may_send(struct apply_context *ctx, enum action_kind k);
/* Delays creates of that kind, or deletes. The delay grows with each failure and ends with the first success. */
void apply_delay(struct controller_env *env, struct cache_entry *entry, enum action_kind k, int64_t at_least_ms);
/* The status on the server does not have the restart count of this index yet, and an operator that is killed now would
 * lose it. The action that continues after the write must follow from the plan. A status that cannot be written does
 * not block the job for long. */
bool apply_waits_for_counts(struct cache_entry *entry, enum role role, int index);
/* Records an event and a log line, then apply_delay(). verb: "deleting". Not for creates. */
void apply_failed(struct in_flight_request *req, struct cache_entry *entry, const char *reason, const char *verb,
                  const struct kube_answer *a);
/* Records the event of a success: apply_record_event(req, entry, "SuccessfulDeletePod", "Deleted pod"). */
void apply_record_event(struct in_flight_request *req, struct cache_entry *entry, const char *reason, const char *what);
/* The object of a create exists, and more may be created. tell: records an event. */
void apply_created(struct in_flight_request *req, struct cache_entry *entry, bool tell);
/* A create was refused. The first refusal of a round is recorded as an event and a log line and named in a condition.
 */
void apply_refused(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a);
/* The object exists and belongs to another owner: records an event and sets a condition of the job. */
void apply_foreign(struct in_flight_request *req, struct cache_entry *entry, const struct kube_resource *what);
/* A request about an object of that name. The answer to KUBE_CREATE is its metadata. */
void apply_send(struct apply_context *ctx, const struct action *a, enum kube_verb verb,
                const struct kube_resource *what, const char *name, const json_t *body, in_flight_done *done);
/* After AlreadyExists: checks which owner the object has. */
void apply_get(struct in_flight_request *req, struct cache_entry *entry, const struct kube_resource *what,
               bool metadata_only, in_flight_done *done);
/* Before an orphan is adopted, the job is read from the API server, because the cache may be older than the deletion
 * that orphaned it. done() calls apply_may_adopt(). */
void apply_get_job(struct controller_env *env, struct cache_entry *entry, const struct action *a, in_flight_done *done);
bool apply_may_adopt(const struct cache_entry *entry, const struct kube_answer *a);
/* Uses uid and resourceVersion of the action as preconditions. */
void apply_delete(struct apply_context *ctx, const struct action *a, const struct kube_resource *what,
                  in_flight_done *done);

/* apply_dependent.c: objects of a fixed name. */
struct dependent {
    const struct kube_resource *resource; /* NULL: the gang scheduler's PodGroup */
    bool adopts;                          /* an orphan with our labels becomes ours */
    bool follows;                         /* an existing object is updated to the spec; else only an adopted one */
    struct merge_patch_rules rules;
    json_t *(*build)(struct apply_context *ctx, const struct action *a); /* NULL: it cannot be built now */
    /* End of dependent_ensure(): our object, or only its metadata when it was created. NULL: it does not exist. */
    void (*over)(struct in_flight_request *req, struct cache_entry *entry, const json_t *object);
    /* End of dependent_delete(). deleted: this request deleted it; else it did not exist or was not ours, or `a` has
     * the reason why it still exists. */
    void (*gone)(struct in_flight_request *req, struct cache_entry *entry, const struct kube_answer *a, bool deleted);
};
void dependent_ensure(struct apply_context *ctx, const struct action *a, const struct dependent *ch);
void dependent_delete(struct apply_context *ctx, const struct action *a, const char *name, const struct dependent *ch);
/* Adopts an orphan that the watch reported: `a` is ACT_ADOPT_* with its name. */
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
/* Objects of which a job has one: apply_claims.c, apply_config.c (also the policy), apply_gang.c, apply_tensorboard.c,
 * apply_identity.c, apply_job.c */
void apply_claims(struct apply_context *ctx, const struct action *a);
void apply_identity(struct apply_context *ctx, const struct action *a);
void apply_config(struct apply_context *ctx, const struct action *a);
void apply_policy(struct apply_context *ctx, const struct action *a);
void apply_group(struct apply_context *ctx, const struct action *a);
void apply_delete_group(struct apply_context *ctx, const struct action *a);
void apply_tensorboard(struct apply_context *ctx, const struct action *a);
void apply_delete_tensorboard(struct apply_context *ctx, const struct action *a);
void apply_delete_job(struct apply_context *ctx, const struct action *a);
/* Number of completed replicas. */
int apply_completed(const struct cache_entry *entry);
/* Reads the phase of the PodGroup of a gang that waits. */
void apply_poll_group(struct apply_context *ctx);
/* Reads the Deployment from time to time, until it has a pod: its pods can be refused, too. */
void apply_poll_tensorboard(struct apply_context *ctx);

#endif
