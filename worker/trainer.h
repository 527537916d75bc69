/* trainer - one training session with the objects that it needs: the parameters and the connection to the chief. */
#ifndef TRAINYARD_WORKER_TRAINER_H
#define TRAINYARD_WORKER_TRAINER_H

#include "coord/coordinator_client.h"
#include "replica.h"
#include "train/session.h"

struct trainer {
    const struct replica *replica;
    const char *name;                 /* to the chief: the replica's, or that of one of its threads */
    struct coordinator_client *coord; /* borrowed */
    struct params *params;            /* borrowed; NULL: the ps of the cluster, over gRPC */
    struct collective *collective;    /* MultiWorkerMirrored, borrowed; else NULL */
    enum strategy strategy;
    struct mutex *step_gate;     /* single machine */
    struct claims *claims;       /* Mirrored: of all its threads */
    struct session_stats *stats; /* borrowed */
    _Atomic int64_t *computed;   /* as in train/session.h */
};

/* Runs until the job is finished or stopped, then leaves. */
MUST_USE int trainer_run(const struct trainer *t, struct err *e);
/* Why trainer_run() failed: this process, and not the chief or a signal. */
bool trainer_failed(const struct err *e);
/* The chief in another process, over gRPC. */
struct coordinator_client *replica_coordinator(const struct replica *r);
/* The ps of the cluster over gRPC. */
struct params *replica_params(const struct replica *r, const char *job_uid);

#endif
