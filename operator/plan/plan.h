/* plan - decides what a job needs, without side effects: (job, existing objects, now) -> actions, status, time of the
 * next reconcile.
 *
 * Pure and level-based: it examines everything each time and keeps no state, so it may be called at any moment, after
 * any crash, any number of times. Requests in flight count as done (`creating`, `deleting`), so a second call repeats
 * nothing. Its test cases are the folders of test/data/plan.
 *
 * Order of checks: deletion, end (clean up, TTL), completed replicas, invalid spec, success, suspension, deadline,
 * failure, restarts and back-off limit, stall, then missing and excess objects. So a job that has succeeded never
 * exceeds its deadline and is never suspended, however late the reconcile is.
 *
 * Restarts are counted without state in the plan: status.roles[].again says how often an index was re-created, and each
 * pod carries the number it was created with. While the status has a larger number than the pod, that pod's end is
 * counted. A pod whose end was not seen (deleted by force, or while no operator ran) is detected because fewer pods
 * exist than `active` has; it is counted at once, too. The back-off of a replica follows from its pod's number, and is
 * zero after ten minutes of running.
 *
 * The message of the latest condition has what the job waits for (a claim, a node, an image, another owner's pod),
 * after "Waiting for"; an event is recorded when that changes. A job waits for refused creates in the same way, and a
 * TrainJob has the condition ReplicaFailure for them, too (a TFJob's conditions are training-operator's). Of TrainJobs
 * that wait for a quota of one namespace, the younger gives its pods back (plan_quota.c). READY counts
 * the replicas that are ready or have succeeded, of all replicas. Once the job has succeeded, it counts those that
 * count as succeeded.
 */
#ifndef TRAINYARD_OPERATOR_PLAN_PLAN_H
#define TRAINYARD_OPERATOR_PLAN_PLAN_H

#include "api/job_spec.h"
#include "api/job_status.h"
#include "api/pod_info.h"
#include "plan/identity_plan.h"

struct plan_settings {
    bool network_policy;     /* for TrainJobs */
    bool gang;               /* a gang scheduler is configured */
    bool gang_waits;         /* volcano: no pods before the group is admitted */
    int64_t force_delete_ms; /* this long after gone_by_ms the node is considered dead; 0: never */
};

enum group_phase { GROUP_UNKNOWN, GROUP_ABSENT, GROUP_PENDING, GROUP_ADMITTED };

struct refusal;
/* The existing objects. Pods and services are those whose labels name this job, including those of other owners. */
struct observed {
    const struct pod_info *const *pods;
    size_t npods;
    const struct service_info *const *services;
    size_t nservices;
    const struct claim_info *claims; /* of spec->claims, same order */
    bool claims_known;
    const char *claims_fault;                                 /* build_claims_fault(), or NULL */
    bool config_ensured, policy_ensured, tensorboard_ensured; /* created (or found) since this operator leads */
    bool tensorboard_found;                /* TensorBoard's service exists, whichever controller created it */
    const char *tensorboard_trouble;       /* why its Deployment can create no pod; NULL: it can */
    const struct identity_facts *identity; /* NULL: nothing is done about certificates */
    enum group_phase group;
    const struct refusal *refused; /* NULL: nothing was */
    const char *quota_rival;       /* the oldest other job that waits for a quota; NULL: none */
    bool rival_is_older;
    const struct refusal *tensorboard_refused;
    struct training_progress progress; /* the chief's last report; not present: nothing new */
    int64_t progress_ms;               /* when it was received; 0: never */
};

enum action_kind {
    ACT_GET_CLAIMS,
    ACT_IDENTITY, /* the step of identity_plan() */
    ACT_ENSURE_CONFIG,
    ACT_ENSURE_POLICY,
    ACT_ENSURE_GROUP,
    ACT_DELETE_GROUP,
    ACT_ENSURE_TENSORBOARD,
    ACT_DELETE_TENSORBOARD,
    ACT_CREATE_SERVICE, /* role, index (-1: the job's) */
    ACT_CREATE_POD,     /* role, index, restarts */
    ACT_DELETE_SERVICE, /* name, uid, version */
    ACT_DELETE_POD,     /* name, uid, version, grace_s */
    ACT_ADOPT_POD,      /* name, uid, version */
    ACT_ADOPT_SERVICE,  /* name, uid, version */
    ACT_LABEL_POD,      /* role, index, name, uid, version: restores its labels */
    ACT_DELETE_JOB      /* its time to live has expired */
};
struct action {
    enum action_kind kind;
    enum role role;
    int index, restarts;
    int grace_s;            /* -1: the pod's own; 0: by force, because its node does not answer */
    const char *name, *uid; /* borrowed from pod_info or service_info */
    int64_t version;        /* the resourceVersion that was observed; 0: any */
};

/* A create that the API server refused. One create is reported for all. */
struct refusal {
    enum action_kind kind;
    enum role role;
    int index;
    char *name;         /* of the object; NULL: nothing was refused */
    char *what, *words; /* "pod digits-worker-1", and the server's message */
    bool over_quota;    /* a ResourceQuota is used up, */
    bool never_fits;    /* and can never admit the least number of replicas with which the job can train */
};
void refusal_fini(struct refusal *f);

/* True if the job gave its pods back to another one, which waits for a quota of the namespace, too (plan_quota.c). */
bool plan_gave_back(const struct job_status *st);

/* Is the replica in the job's core? The core is every ps, and the leader if there is a ps or a chief: the job cannot
 * train without them. */
bool plan_is_core(const struct job_spec *v, enum role r, int index);
/* True if pods of the core are not accepted yet. Then no others are created, so that a quota that is too small for the
 * whole job is used for the core. actions: of the plan; pods: those that exist or are in flight. */
bool plan_core_comes_first(const struct job_spec *v, const struct pod_info *const *pods, size_t npods,
                           const struct action *actions, size_t nactions);

struct plan_event {
    bool warning;
    const char *reason; /* constant text */
    char about[16];     /* role key, or "" */
    char *note;         /* owned */
};

struct job_plan {
    struct action *actions;
    size_t nactions;
    struct plan_event *events;
    size_t nevents;
    struct job_status status; /* the desired status */
    int64_t next_ms;          /* reconcile again then at the latest; 0: only after an event */
    int restarted;            /* replicas that this plan restarts, for the metrics */
    bool poll;                /* the leader runs and its /progress may be polled */
};
void job_plan_fini(struct job_plan *p);
DEFINE_AUTO_FINI(job_plan, job_plan_fini);

/* If the spec of a running job requests too many replicas (v->too_large), restores the accepted numbers: the previous
 * ones if known, else those of the existing pods and services. Call it before plan_job() and before any object is
 * built. */
void plan_keep_replicas(struct job_spec *v, const struct job_status *st, const struct observed *o);

void plan_job(const struct job_spec *v, const struct job_status *status, const struct observed *o,
              const struct plan_settings *s, int64_t now_ms, struct job_plan *ret);

/* Back-off before a replica that failed n times is re-created: 0, 1, 2, 4, ... 60 s after it ended. */
int64_t plan_backoff_ms(int64_t failures);

#endif
