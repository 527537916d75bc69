/* replica - what every role of trainyard-worker opens first: the job, its task in the cluster, the model, the data.
 * Built from options by replica_open(), torn down by replica_fini(). */
#ifndef TRAINYARD_WORKER_REPLICA_H
#define TRAINYARD_WORKER_REPLICA_H

#include "data/job_data.h"
#include "job/cluster.h"
#include "nn/class_weight.h"
#include "rpc/replica_credentials.h"
#include "shard/layout.h"
#include "worker_options.h"

struct session_stats;
struct http_pages;

struct replica {
    const struct worker_options *options;
    struct session_stats *stats; /* main's, as the next one */
    struct http_pages *pages;    /* NULL: no --http-port */
    struct job *job;
    struct cluster cluster;
    struct replica_credentials credentials;
    char name[64]; /* "worker-3", "local" */
    char *job_uid; /* "" for a worker that gets it from the chief */
    uint64_t incarnation;
    char *data_dir, *output_dir, *cache_dir; /* cache_dir NULL: nothing can be cached */
    struct model *model;
    struct class_weights *class_weights; /* NULL: none */
    struct layout *layout;
    struct placement *placement;
    struct job_data data; /* data.validation is opened by replicas that evaluate */
};

/* Its name, job and model; replica_open_data opens the data. */
MUST_USE int replica_open(const struct worker_options *o, struct replica *ret, struct err *e);
MUST_USE int replica_open_data(struct replica *r, struct err *e); /* also the job's uid; may take long */
void replica_fini(struct replica *r);
DEFINE_AUTO_FINI(replica, replica_fini);

size_t replica_ps_count(const struct replica *r);
bool replica_leads(const struct replica *r);         /* it hosts the chief */
bool replica_is_collective(const struct replica *r); /* the state is in the workers: MultiWorkerMirrored */
int replica_towers(const struct replica *r);         /* threads of Mirrored or Hogwild; 0: it trains in one */
bool replica_trains(const struct replica *r);
/* Its own entry in the cluster spec, borrowed. A task that is not listed gets its leader's. A task without a cluster
 * gets an address on loopback: what it serves is reachable from this machine only. */
const char *replica_address(const struct replica *r);

#endif
