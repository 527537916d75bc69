/* replica_file - the job as its replicas get it on a cluster: the manifest without the fields that only the operator
 * uses.
 *
 * Counts of replicas, pod templates, volumes, the run policy and TensorBoard are left out, so that scaling, suspending
 * or scheduling the job changes neither the file nor its hash. A replica gets its peers from TF_CONFIG. job_parse reads
 * it.
 */
#ifndef TRAINYARD_JOB_REPLICA_FILE_H
#define TRAINYARD_JOB_REPLICA_FILE_H

#include "codec/json.h"

/* A new object: apiVersion, kind, metadata {name, namespace, uid}, spec; in it replicaSpecs has the roles that the
 * job has, as {} (Master as Chief; Worker has strategy.minReplicas, if that is given), and strategy.name is written
 * out, because its default depends on them. `doc` is a TrainJob with a model that job_parse or job_from_value accepted;
 * it is not changed. */
json_t *job_replica_file(const json_t *doc);
/* It is the one key of a ConfigMap, whose size is limited. ERR_INPUT with the size, the limit and a cure. */
MUST_USE int job_replica_file_fits(const json_t *doc, struct err *e);

#endif
