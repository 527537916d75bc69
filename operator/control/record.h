/* record - all the operator knows of one job: its view, its status, its pods and services, and what is on its way.
 *
 * Records are found by "namespace/name". One may exist before its job is known (a pod may be told first), and goes when
 * neither job nor pods nor services are left. Requests on their way remember the key, never the record.
 */
#ifndef TRAINYARD_CONTROL_RECORD_H
#define TRAINYARD_CONTROL_RECORD_H

#include "base/map.h"
#include "control/dispatch.h"
#include "control/pace.h"
#include "plan/plan.h"

/* Requests of a kind failed: none before. Times ending in _ms are clock_ms() here, so that no clock that is set moves
 * them, but for progress_ms, which the plan compares with others' times. */
struct pause {
    int failures; /* rounds in a row */
    int64_t until_ms;
};

/* What the API server refuses is refused by kind: a quota of services does not keep pods from being created. */
enum make_kind { MAKE_PODS, MAKE_SERVICES, MAKE_OTHERS, MAKE_KINDS };
/* The replica whose object was refused last. */
struct cursor {
    bool set;
    enum role role;
    int index;
};

/* An object of the job's as the watch told it last; uid NULL: it is not there. */
struct beside {
    char *uid, *owner_uid;
};
void beside_fini(struct beside *b);

struct controller;
struct record {
    char *key;
    int metered; /* 1 + the state that meters_state() counted it in; 0: none */
    bool known;  /* the job's object has been seen: view and status count */
    struct job_spec view;
    struct job_status status; /* as decided */
    struct job_status *acked; /* as the API server has it; NULL: the same */
    int64_t version;          /* resourceVersion of the object that status.foreign is of; 0: not known */
    int conflicts;            /* status patches in a row that came too late for that version */
    int64_t changed_ms;       /* since when it is not */
    struct job_status *seen;  /* as the watch told last, if it lacks something; NULL: it does not */
    int64_t seen_ms;
    int rewrites;                  /* what others took away was written again so often */
    bool writing;                  /* a status patch is on its way */
    bool writing_counts;           /* with counts of restarts that were not there before */
    bool held;                     /* something waits until such counts are written */
    bool resumed_unseen;           /* it was suspended and resumed between two looks */
    bool unsure, asked;            /* the end of a child went unseen, and so may the job's; the API server was asked */
    bool begun, granted;           /* it may make what it needs: its first turn has come; it is its turn */
    struct dispatch_job turn;      /* to send what its plan asks for */
    struct kube_ticket tell;       /* to write its status */
    struct controller *controller; /* whose turns these are */
    struct pod_info **pods;
    size_t npods;
    struct service_info **services;
    size_t nservices;
    struct claim_info *claims; /* view.nclaims of them, or NULL */
    char *claims_fault;
    size_t claims_asked; /* answers that are still to come */
    size_t claims_round; /* which asking they belong to: those of an earlier spec do not count */
    int64_t claims_ms;
    bool claims_known;
    struct beside config, policy;                             /* the job file and the NetworkPolicy */
    bool config_ensured, policy_ensured, tensorboard_ensured; /* an answer said so */
    bool tensorboard_found;                                   /* its service was seen, whoever made it */
    bool config_asked, policy_asked, tensorboard_in_flight, group_asked;
    int64_t ensured_ms;
    enum group_phase group;
    int64_t group_ms; /* when its phase was last asked for */
    struct training_progress progress;
    int64_t progress_ms, progress_written_ms;
    bool poll, polling;
    int64_t label_after_ms;        /* labels of its pods are put back then at the earliest */
    struct pace makes[MAKE_KINDS]; /* what it creates */
    struct cursor refused_last[MAKE_KINDS];
    struct pause deletes, tells;        /* of requests the API server refused; tells: the status */
    struct refusal refused;             /* what is told of them; the same one until it is made */
    struct refusal tensorboard_refused; /* the same of TensorBoard, without which the job runs */
};

struct store {
    struct map records;
};
void store_fini(struct store *s);
struct record *store_find(const struct store *s, const char *key);
struct record *store_get(struct store *s, const char *ns, const char *name); /* made when there is none */
void store_drop_if_empty(struct store *s, struct record *r);                 /* r may be gone afterwards */
void store_remove(struct store *s, struct record *r);

/* One on the heap, such as r->acked; NULL afterwards. */
void record_drop_status(struct job_status **s);
/* "ns/name" into out. */
const char *record_key(const char *ns, const char *name, char out[512]);
/* The job's object is gone or is another life of the name: back to an unknown job with the same pods. */
void record_forget_job(struct record *r);

struct pod_info *record_pod(const struct record *r, const char *name);
/* Takes the facts over. An older version of the same pod is left out; false then. */
bool record_put_pod(struct record *r, struct pod_info *p);
/* uid NULL: whichever has the name; else never one that is still being made, whose uid nobody knows. */
bool record_remove_pod(struct record *r, const char *name, const char *uid);
struct service_info *record_service(const struct record *r, const char *name);
void record_put_service(struct record *r, struct service_info *s);
bool record_remove_service(struct record *r, const char *name, const char *uid);
/* What a create put there before its answer; not what the watch has told since. owner NULL: any job's. */
void record_drop_expected_pod(struct record *r, const char *name, const char *owner);
void record_drop_expected_service(struct record *r, const char *name, const char *owner);

void pod_info_free(struct pod_info *p);
DEFINE_AUTO(pod_info, pod_info_free);
void service_info_free(struct service_info *s);
DEFINE_AUTO(service_info, service_info_free);

#endif
