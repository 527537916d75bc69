/* replica - what every role of trainyard-worker opens before it begins: the job, its place in the cluster, the model,
 * the data. Built from options by replica_open(), torn down by replica_fini(). */
#ifndef TRAINYARD_WORKER_REPLICA_H
#define TRAINYARD_WORKER_REPLICA_H

#include "data/dataset.h"
#include "job/cluster.h"
#include "nn/model.h"
#include "options.h"
#include "train/layout.h"

struct session_stats;
struct status;

struct replica {
    const struct options *options;
    struct session_stats *stats;   /* main's, as the next one */
    struct status *status;         /* NULL: no --http-port */
    struct job *job;
    struct cluster cluster;
    char name[64];                 /* "worker-3", "local" */
    char *job_uid;                 /* "" for a worker that learns it from the chief */
    uint64_t incarnation;
    char *data_dir, *output_dir, *cache_dir; /* cache_dir NULL: nothing can be cached */
    struct model *model;
    struct layout *layout;
    struct placement *placement;
    struct dataset *train, *validation; /* validation: NULL unless this replica evaluates */
    struct ordinal_space space;
};

/* Who it is and what it trains; the data comes with replica_open_data. */
MUST_USE int replica_open(const struct options *o, struct replica *ret, struct err *e);
MUST_USE int replica_open_data(struct replica *r, struct err *e); /* also the job's uid; may take long */
void replica_fini(struct replica *r);
DEFINE_AUTO_FINI(replica, replica_fini)

size_t replica_ps_count(const struct replica *r);
bool replica_leads(const struct replica *r);   /* hosts the chief */
bool replica_trains(const struct replica *r);
/* Its own address is on loopback, or it has none: what it serves stays on this machine. */
bool replica_on_loopback(const struct replica *r);

#endif
