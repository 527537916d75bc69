/* job_spec - what the operator keeps of the spec of a TrainJob or TFJob, with defaults filled in.
 *
 * The whole spec (templates, model) is kept as deflated text (job_spec_json()). Once the replicas' job file exists, the
 * model is left out of it (job_spec_drop_model()).
 */
#ifndef TRAINYARD_API_JOB_SPEC_H
#define TRAINYARD_API_JOB_SPEC_H

#include "api/kind.h"

#define IDENTITY_ANNOTATION "trainyard.dev/identity"

struct role_spec {
    bool present; /* a TrainJob without replicaSpecs is one process: it has one worker */
    int replicas; /* 0 when not present */
    enum restart_policy restart;
    int port;        /* of the container port called tfjob-port; default 2222 */
    bool host_ports; /* our program, on its node's network: each replica has ports of its own (build/pod_ports.h) */
    int grace_s;     /* terminationGracePeriodSeconds of the template; -1: not given */
};

struct gang_spec {                /* runPolicy.schedulingPolicy */
    int min_available;            /* 0: all replicas */
    char *queue, *priority_class; /* owned, may be NULL */
    int timeout_s;                /* 0: none */
};

struct claim_spec { /* a PersistentVolumeClaim that replicas mount */
    char *name;
    bool chief, workers; /* which roles mount it (chief: also evaluator and TensorBoard; without a chief the workers
                            take its part) */
};
enum { CLAIMS_MAX = 8 };

struct job_spec {
    const struct job_kind *kind;
    char *ns, *name, *uid;
    int64_t generation, created_ms;
    bool deleting;   /* deletionTimestamp is set */
    bool has_model;  /* TrainJob with spec.model: our binaries train it */
    bool all_reduce; /* of it: strategy MultiWorkerMirrored, whose workers are servers, and come and go */
    int min_workers; /* of that: without so many training waits */
    bool identity;   /* its replicas get certificates: it has a model, or the annotation IDENTITY_ANNOTATION: "true" */
    struct role_spec roles[ROLE_COUNT];
    bool too_large;           /* the cluster spec cannot contain so many replicas */
    int accepted[ROLE_COUNT]; /* with too_large: replicas before that, -1: not known */
    bool master;              /* the chief is spelled Master */
    bool all_workers;         /* successPolicy AllWorkers */
    bool dynamic;             /* enableDynamicWorker */
    bool managed_elsewhere;   /* managedBy names another controller */
    bool suspend;
    enum clean_pod_policy clean;
    int64_t ttl_s, deadline_s, backoff_limit, stall_s; /* -1: none */
    enum stall_policy stall;
    enum restart_scope scope; /* SCOPE_JOB: of a TrainJob only */
    struct gang_spec gang;
    bool tensorboard;
    struct claim_spec *claims; /* at most CLAIMS_MAX; owned */
    size_t nclaims;
    char spec_hash[20]; /* of the canonical form of model, compile, data, fit, strategy, checkpoint, summaries
                           (job_canonical());
                           "" without model */
    char *invalid;      /* why this spec cannot be run, as a message for users; NULL: it can. Owned */
    void *deflated;     /* spec and those metadata that pods inherit, deflated; owned */
    uint32_t deflated_len, spec_len;
    bool whole; /* nothing was left out of deflated: job_spec_drop_model() was not called */
};

/* Reads an object of the API server. Never fails: an error in the spec is in `invalid` ("spec.compile.optimizer:
 * 'Adamm' is not known; did you mean 'Adam'?", the message of `trainyard validate`), and all other fields are filled in
 * as far as possible. If the status already has a result of the validation for this generation, it is reused. A job
 * that is being deleted or belongs to another controller is not validated. A kerasFile is not validated, because it is
 * on a volume that only the replicas mount. default_clean: the flag's value for TFJobs. Costs some 100 us for a model
 * of four layers; callers skip it while generation and deletionTimestamp are unchanged. */
void job_spec_parse(const struct job_kind *k, const json_t *object, enum clean_pod_policy default_clean,
                    struct job_spec *ret);
void job_spec_fini(struct job_spec *v);
DEFINE_AUTO_FINI(job_spec, job_spec_fini);
/* {"metadata": {name, namespace, uid, annotations, labels}, "spec": {...}}: a new reference, inflated at each call
 * (some 20 us a kB). Keys of roles are in CamelCase, as job_spec_role_key() gives them. kubectl's
 * last-applied-configuration annotation is left out. */
json_t *job_spec_json(const struct job_spec *v);
/* Packs the spec again without model, compile and data. Does nothing if the spec has no model or was shrunk before.
 */
void job_spec_drop_model(struct job_spec *v);

int job_spec_replicas(const struct job_spec *v); /* of all roles */
/* Chief, PS, Worker, Evaluator: the order of training-operator's PodGroups. */
extern const enum role JOB_SPEC_ORDER[ROLE_COUNT];
/* How many replicas of each role are among the first `members`, in that order. */
void job_spec_first_members(const struct job_spec *v, int members, int ret[ROLE_COUNT]);
/* How many replicas of each role the job cannot train without: the first minAvailable. Without that field all, but a
 * model with ps needs only one worker, with MultiWorkerMirrored strategy.minReplicas workers, and no evaluator. */
void job_spec_minimum(const struct job_spec *v, int ret[ROLE_COUNT]);
/* The role whose end decides the job's result: the chief if there is one, else the workers. */
enum role job_spec_leader(const struct job_spec *v);
/* "chief", or "master" when it is spelled so; TFJob spelling "Chief", "Master", "PS". */
const char *job_spec_role_name(const struct job_spec *v, enum role r);
const char *job_spec_role_key(const struct job_spec *v, enum role r);
/* "digits-worker-3": the pod's name, and the service's of a TFJob. */
const char *job_spec_pod_name(const struct job_spec *v, enum role r, int index, char out[128]);

#endif
