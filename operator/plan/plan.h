/* plan - what to do about a job, decided without doing anything: (job, what is there, now) -> actions, status,
 * deadline.
 *
 * Pure, and whole: it looks at everything each time and remembers nothing, so it may be called at any moment, after any
 * crash, as often as one likes. What is on its way is among the facts (`creating`, `deleting`), so calling it twice
 * never does a thing twice. Its cases are the folders of test/data/plan.
 *
 * Order of looks: deletion, end (clean up, TTL), what has completed, invalid spec, success, suspension, deadline,
 * failure, restarts and back-off limit, stall, then what is missing and what is too much. So who has succeeded is
 * neither late nor suspended, however long nobody looked.
 *
 * Counting without a memory: status.roles[].again says how often an index was made again, and each pod carries the
 * number it was made with. While the status says more than the pod, that pod's going is counted. A pod that goes unseen
 * (by force, or while no operator was there) is missed because fewer are there than `active` said; that counts at once
 * too. The pause before a replica is made again follows from its pod's number, none when it ran for ten minutes.
 *
 * What a job waits for (a claim, a node, an image, somebody else's pod) stands in the message of its latest condition,
 * after "Waiting for"; its event is said when that changes. What the API server refuses to create is one of these, and
 * a TrainJob has condition ReplicaFailure for it, too (a TFJob's conditions are training-operator's). READY is replicas
 * that are ready or have succeeded, of all that are wanted; once the job has succeeded, those that count as succeeded.
 */
#ifndef TRAINYARD_OPERATOR_PLAN_PLAN_H
#define TRAINYARD_OPERATOR_PLAN_PLAN_H

#include "api/job_spec.h"
#include "api/job_status.h"
#include "api/pod_info.h"

struct plan_settings {
    bool network_policy;     /* for TrainJobs */
    bool gang;               /* a gang scheduler is set up */
    bool gang_waits;         /* volcano: no pods before the group is admitted */
    int64_t force_delete_ms; /* beyond gone_by_ms: the node is taken for dead; 0: never */
};

enum group_phase { GROUP_UNKNOWN, GROUP_ABSENT, GROUP_PENDING, GROUP_ADMITTED };

struct refusal;
/* What is there. Pods and services are those whose labels name this job, foreign ones too. */
struct observed {
    const struct pod_info *const *pods;
    size_t npods;
    const struct service_info *const *services;
    size_t nservices;
    const struct claim_info *claims; /* of spec->claims, same order */
    bool claims_known;
    const char *claims_fault;                                 /* build_claims_fault(), or NULL */
    bool config_ensured, policy_ensured, tensorboard_ensured; /* made (or found) since this operator leads */
    bool tensorboard_found;                                   /* TensorBoard's service is there, of whatever time */
    enum group_phase group;
    const struct refusal *refused; /* NULL: nothing was */
    const struct refusal *tensorboard_refused;
    struct training_progress progress; /* the chief's last word; not present: nothing new */
    int64_t progress_ms;               /* when it was heard; 0: never */
};

enum action_kind {
    ACT_GET_CLAIMS,
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
    ACT_LABEL_POD,      /* role, index, name, uid, version: its labels as they were */
    ACT_DELETE_JOB      /* its time to live is over */
};
struct action {
    enum action_kind kind;
    enum role role;
    int index, restarts;
    int grace_s;            /* -1: the pod's own; 0: by force, for its node does not answer */
    const char *name, *uid; /* borrowed from the facts */
    int64_t version;        /* the resourceVersion that was looked at; 0: any */
};

/* A create that the API server refused: one speaks for all. */
struct refusal {
    enum action_kind kind;
    enum role role;
    int index;
    char *name;         /* of what is to be made; NULL: nothing was refused */
    char *what, *words; /* "pod digits-worker-1", and the server's words */
};
void refusal_fini(struct refusal *f);

/* Is the replica of the job's core? That is every ps, and the leader where there is a ps or a chief: nothing trains
 * without them. */
bool plan_is_core(const struct job_spec *v, enum role r, int index);
/* Pods of the core are still to be accepted, so no others are created: with a quota that is too small for the whole job
 * its core gets the room. actions: of the plan; pods: those that are there, or on their way. */
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
    struct job_status status; /* as it should be now */
    int64_t next_ms;          /* look again then at the latest; 0: only when something happens */
    int restarted;            /* replicas that this plan restarts, for the metrics */
    bool poll;                /* the leader runs and its /progress may be asked */
};
void job_plan_fini(struct job_plan *p);
DEFINE_AUTO_FINI(job_plan, job_plan_fini);

/* Of a job that runs and is now too large (v->too_large) the view gets the sizes that were accepted: those it had
 * before, when that is known, else those of the pods and services that are there. To be called before plan_job(), and
 * before anything is built. */
void plan_keep_replicas(struct job_spec *v, const struct job_status *st, const struct observed *o);

void plan_job(const struct job_spec *v, const struct job_status *status, const struct observed *o,
              const struct plan_settings *s, int64_t now_ms, struct job_plan *ret);

/* Pause before a replica that failed n times is made again: 0, 1, 2, 4, ... 60 s after it ended. */
int64_t plan_backoff_ms(int64_t failures);

#endif
