/* replica_file - the job as its replicas get it on a cluster: the manifest without what concerns the operator alone.
 *
 * Counts of replicas, pod templates, volumes, the run policy and TensorBoard are left out, so that the file (and with
 * it a hash of it) is the same however the job is scaled, suspended or scheduled: a replica learns from TF_CONFIG who
 * its peers are. job_parse reads it.
 */
#ifndef TRAINYARD_JOB_REPLICA_FILE_H
#define TRAINYARD_JOB_REPLICA_FILE_H

#include "codec/json.h"

/* A new object: apiVersion, kind, metadata {name, namespace, uid}, spec; in it replicaSpecs has the roles that the job
 * has, as {} (Master as Chief), and strategy.name is written out, since it hangs on them. `doc` is a TrainJob with a
 * model that job_parse or job_from_value accepted; it is not changed. */
json_t *job_replica_file(const json_t *doc);

#endif
