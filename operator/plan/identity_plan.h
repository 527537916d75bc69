/* identity_plan - decides which certificates of a job are made next: the wanted replicas, what the status remembers,
 * the trusted CAs and the time -> one step.
 *
 * Pure and level-based, as the plan: it may be called at any moment and keeps no state. A leaf is renewed when a third
 * of its lifetime remains, and then all leaves of its Secret with it. A leaf is made again at once when its CA is not
 * trusted any more, and when the clock is so far back that the leaf is not valid yet. A replaced CA that is still
 * trusted changes only ca.crt; its leaves change at their renewal.
 *
 * A pod is created only when the API server has confirmed the Secret with its leaf and the status that remembers it.
 * A Secret that is deleted later causes no event. It is in doubt when a pod that mounts it does not start, and is then
 * written again: the answer says whether it exists.
 */
#ifndef TRAINYARD_OPERATOR_PLAN_IDENTITY_PLAN_H
#define TRAINYARD_OPERATOR_PLAN_IDENTITY_PLAN_H

#include "api/job_identity.h"
#include "api/job_spec.h"
#include "api/pod_info.h"

enum { IDENTITY_SECRET_LEAVES = 600 }; /* in one Secret, which may have 1 MiB */

/* A Secret that may have been deleted. */
struct identity_doubt {
    bool any;
    size_t secret;   /* its place */
    int64_t next_ms; /* look again then at the latest, 0: only after an event */
};

struct identity_facts {
    const struct job_identity *confirmed; /* of the status that the API server has; NULL: a change is being written */
    struct ca_list cas;                   /* trusted; n 0: not known yet */
    int64_t cas_until_ms;                 /* they change by themselves then; 0: they do not */
    int64_t lifetime_ms;                  /* of a leaf */
    bool insecure;                        /* the operator gives no certificates to new jobs */
    struct identity_doubt doubt;
    size_t first;      /* the Secret that is looked at first: others failed */
    const char *fault; /* why certificates cannot be made now; NULL: they can */
    bool fault_told;   /* there was an event about it */
};

enum identity_step_kind {
    IDENTITY_NOTHING,
    IDENTITY_CREATE,   /* a new Secret */
    IDENTITY_RECREATE, /* a deleted Secret under its name, which pods mount */
    IDENTITY_PATCH     /* ca.crt, and these leaves, of a Secret that should exist */
};
struct identity_step {
    enum identity_step_kind kind;
    size_t secret; /* its place; not of IDENTITY_CREATE */
    struct identity_replica {
        enum role role;
        int index;
    } * leaves; /* those to issue; owned */
    size_t nleaves;
    bool renewal; /* some of them replace leaves that exist */
};
void identity_step_fini(struct identity_step *s);
DEFINE_AUTO_FINI(identity_step, identity_step_fini);

/* Decides which Secret is in doubt. answered_ms: [nanswered] when the API server last confirmed the Secret of that
 * place; 0, and that of the places beyond: not since this operator has started. */
struct identity_doubt identity_find_doubt(const struct job_identity *has, const struct pod_info *const pods[],
                                          size_t npods, const int64_t *answered_ms, size_t nanswered, int64_t now_ms);
/* What to do next for these replicas; *ret_next_ms: look again then at the latest, 0: only after an event. */
void identity_plan(const struct role_spec roles[ROLE_COUNT], const struct job_identity *has,
                   const struct identity_facts *f, int64_t now_ms, struct identity_step *ret, int64_t *ret_next_ms);
/* May the pod of this replica be created? */
bool identity_ready(const struct job_identity *has, const struct identity_facts *f, enum role role, int index,
                    int64_t now_ms);
/* The earliest end of a leaf of these replicas; 0: they have none. */
int64_t identity_expiry_ms(const struct role_spec roles[ROLE_COUNT], const struct job_identity *has);

#endif
