/* job_status - a job's status as plain values: read from the object, changed by the plan, written as a merge patch.
 *
 * It contains everything that must survive a restart of the operator: conditions, times, completed indexes, counts of
 * restarts. TFJob's rules for conditions (operators' reference, 1.3): a changed condition moves to the end, so the last
 * one is the latest. Running and Restarting exclude each other. Succeeded and Failed make Running, Restarting and
 * Stalled false. After Failed only its own message may change. The same status, reason and message again is not a
 * change; a different message alone changes in place. SpecChangeRefused is placed first, so that it is never mistaken
 * for the latest condition. ReplicaFailure is placed first, too: it exists while the API server refuses what the job's
 * replicas need, and is removed afterwards, as in ReplicaSet. TensorBoardFailure is the same for TensorBoard. Insecure
 * is placed first, too.
 */
#ifndef TRAINYARD_API_JOB_STATUS_H
#define TRAINYARD_API_JOB_STATUS_H

#include "api/job_identity.h"
#include "api/kind.h"
#include "codec/sha256.h"

enum condition_type {
    COND_CREATED,
    COND_RUNNING,
    COND_RESTARTING,
    COND_SUCCEEDED,
    COND_FAILED,
    COND_SUSPENDED,
    COND_STALLED,
    COND_REFUSED /* SpecChangeRefused: the spec was changed in a way that is not followed */,
    COND_REPLICA_FAILURE /* ReplicaFailure: a replica cannot be created */,
    COND_TENSORBOARD_FAILURE /* TensorBoardFailure: TensorBoard cannot be created */,
    COND_INSECURE /* Insecure: the replicas have no certificates */,
    COND_COUNT
};
const char *condition_name(enum condition_type t);  /* "Created" */
bool condition_is_auxiliary(enum condition_type t); /* is placed first and never describes what the job is doing */

struct condition {
    enum condition_type type;
    bool is_true;
    char *reason, *message; /* owned */
    int64_t updated_ms, changed_ms, generation;
};

struct role_status {
    int active, succeeded, failed; /* pods by phase, as TFJob counts them; succeeded includes completed indexes */
    struct index_set completed;    /* these are never run again */
    struct index_counts again;     /* re-creations of each index; pods carry the same number as an annotation */
    int64_t restarts;              /* all re-creations by the operator */
    int64_t counted; /* what backoffLimit counts: these and kubelet's restarts of deleted pods (TrainJob: since the last
                        progress; earlier kubelet restarts of existing pods are subtracted, so it may be negative) */
};

struct training_progress { /* what the chief reports */
    bool present;
    int64_t step, epoch, epochs, last_checkpoint_step;
    int64_t percent, remaining_s; /* remaining_s 0: nothing remains, or unknown */
    int64_t highest_step;         /* the plan's: the step decreases when training progress is lost */
    char loss[32];                /* text: "0.1433", "NaN" */
    double examples_per_second;
    char weights_sha256[SHA256_TEXT]; /* of the result of a finished job; "" before */
    char *metrics;                    /* JSON text of {"accuracy": "0.95"}, owned, or NULL */
    char waiting[160];                /* what training waits for; "": it does not. Not in the status */
    int64_t updated_ms;               /* when step last changed */
};

struct job_status {
    struct condition *conds; /* in the order in which they are shown */
    size_t nconds;
    json_t *foreign; /* conditions of types that are not ours, unchanged; a reference; NULL: none */
    struct role_status roles[ROLE_COUNT];
    struct training_progress progress;
    struct job_identity identity; /* its certificates */
    char state[16]; /* Created, Running, Restarting, Suspended, Stalled, Succeeded, Failed: the latest true condition */
    char ready[24]; /* "3/4" */
    char spec_hash[20]; /* of the spec with which training started; "" before the start */
    int64_t start_ms, completion_ms, observed_generation;
    bool master;  /* the chief is spelled Master */
    char job[64]; /* the job's name, for selectors: the plan sets it, it is not read back */
};

void job_status_fini(struct job_status *s);
DEFINE_AUTO_FINI(job_status, job_status_fini);
void job_status_copy(const struct job_status *s, struct job_status *ret); /* deep; ret is overwritten, not freed */
/* Lenient: ignores what it does not understand (the object may be another controller's). */
void job_status_parse(const json_t *status, struct job_status *ret);
/* Replaces the known conditions of other writers with those in this status. */
void job_status_set_foreign(struct job_status *s, const json_t *status);
bool job_status_is(const struct job_status *s, enum condition_type t); /* present and true */
const struct condition *job_status_find(const struct job_status *s, enum condition_type t);
/* Sets a condition by the rules above; true: something changed. */
bool job_status_set(struct job_status *s, enum condition_type t, bool is_true, const char *reason, const char *message,
                    int64_t generation, int64_t now_ms);
void job_status_drop(struct job_status *s, enum condition_type t);
bool job_status_finished(const struct job_status *s); /* Succeeded or Failed */

/* Which of the fields that would be written differ: STATUS_* flags; 0: none. */
enum { STATUS_CONDITIONS = 1, STATUS_PROGRESS = 2, STATUS_REST = 4, STATUS_IDENTITY = 8 };
/* True if an index was re-created more often in b than in a. */
bool job_status_counts_differ(const struct job_status *a, const struct job_status *b);
unsigned job_status_differs(const struct job_status *a, const struct job_status *b);
/* True if the API server's status is not what was written. training-operator's CRD keeps only the fields of its TFJobs:
 * if state and observedGeneration are absent, our other fields do not count as missing. */
bool job_status_lacks(const struct job_status *has, const struct job_status *written);

/* The body of a merge patch of /status that turns `was` into `is`, or NULL when they are the same. New reference. Lists
 * are written completely, foreign conditions first, so that our latest condition stays the last. version > 0: a patch
 * with conditions has that resourceVersion as a precondition, because conditions that others have written since would
 * be lost. metadata has the uid, so that the patch never changes a new object of the same name. A TFJob has the keys of
 * TFJob's schema, and ours in addition. A role's entry has the selector of its pods. */
json_t *job_status_patch(const struct job_kind *k, const char *uid, int64_t version, const struct job_status *was,
                         const struct job_status *is);

#endif
