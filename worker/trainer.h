/* trainer - one training session with the objects that it needs: the parameters and the connection to the chief. */
#ifndef TRAINYARD_WORKER_TRAINER_H
#define TRAINYARD_WORKER_TRAINER_H

#include "coord/coordinator_client.h"
#include "replica.h"
#include "train/session.h"

struct trainer {
    const struct replica *replica;
    struct coordinator_client *coord; /* borrowed */
    struct params *params;            /* borrowed; NULL: the ps of the cluster, over gRPC */
    struct mutex *step_gate;          /* single machine */
    struct session_stats *stats;      /* borrowed */
};

/* Runs until the job is finished or stopped, then leaves. */
MUST_USE int trainer_run(const struct trainer *t, struct err *e);
/* The chief in another process, over gRPC. */
struct coordinator_client *replica_coordinator(const struct replica *r);
/* The ps of the cluster over gRPC. */
struct params *replica_params(const struct replica *r, const char *job_uid);

#endif
