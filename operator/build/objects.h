/* objects - the Kubernetes objects of a job, as JSON. Pure: (job, settings) -> object. All functions return new
 * references.
 *
 * Names, labels, TF_CONFIG and services of a TFJob are byte for byte training-operator's (operators' reference
 * 1.4-1.6). A TrainJob has labels trainyard.dev/{operator-name,job-name,replica-type,replica-index,job-role}, one
 * headless service with the job's name and publishNotReadyAddresses, and pods with hostname and subdomain. So
 * JOB-ROLE-INDEX.JOB.NAMESPACE.svc resolves to a pod as soon as it has an address.
 *
 * Pods keep everything that their template sets. Defaults of a TrainJob's pods (image, command, security context,
 * readiness probe, resources, grace period) fill in only what the template does not set.
 */
#ifndef TRAINYARD_BUILD_OBJECTS_H
#define TRAINYARD_BUILD_OBJECTS_H

#include "api/job_identity.h"
#include "api/job_spec.h"
#include "api/pod_info.h"

struct build_settings {
    const char *trainer_image, *pull_policy; /* pull_policy "" : the cluster's */
    const char *tensorboard_image;
    const char *cluster_domain; /* "": none */
    const char *gang_scheduler; /* "", "volcano", or another's schedulerName */
    const char *operator_ns;    /* its pods may connect to the replicas */
    const struct strlist *scraper_namespaces;
    bool leave_user;          /* the platform assigns runAsUser, runAsGroup and fsGroup */
    const char *architecture; /* of trainer_image, as nodes are labelled ("amd64"); "": of any node */
    int lost_after_s;         /* tolerationSeconds of not-ready and unreachable for a TrainJob's pods
                               * whose template sets none; 0: the cluster's */
};

/* One pod. spec: job_spec_json(v), unpacked once for all pods of a job. identity: the job's certificates, NULL: none; a
 * replica without a leaf gets none. warn (may be NULL) receives messages for the user, as "REASON: text" lines:
 * SetPodTemplateRestartPolicy, SetPodTemplateSchedulerName, SetPodTemplateTFConfig, NoOutputVolume. */
json_t *build_pod(const struct job_spec *v, const json_t *spec, enum role r, int index, int restarts,
                  const struct claim_info *claims, size_t nclaims, const struct job_identity *identity,
                  const struct build_settings *s, struct buf *warn);
/* index -1: the job's single service (TrainJob). */
json_t *build_service(const struct job_spec *v, const json_t *spec, enum role r, int index);
/* A TrainJob's ConfigMap "JOB-job". With a model it contains the job file, key job.yaml (job/replica_file.h). Without a
 * model it contains the addresses of all replicas, keys cluster, ps-hosts, worker-hosts, chief-host, to which the
 * environment of its pods refers. NULL: the job needs none. */
json_t *build_config_map(const struct job_spec *v, const json_t *spec, const struct build_settings *s);
bool build_needs_config_map(const struct job_spec *v);
/* An error when the addresses of all replicas are too long for their pods, or NULL. xmalloc'ed. */
char *build_cluster_fault(const struct job_spec *v, const struct build_settings *s);
json_t *build_network_policy(const struct job_spec *v, const struct build_settings *s);
/* Volcano's or scheduler-plugins' PodGroup, by s->gang_scheduler. completed: replicas that have succeeded. */
json_t *build_pod_group(const struct job_spec *v, const json_t *spec, int completed, const struct build_settings *s);
const struct kube_resource *build_pod_group_resource(const struct build_settings *s);
json_t *build_tensorboard(const struct job_spec *v, const json_t *spec, const struct claim_info *claims, size_t nclaims,
                          const struct build_settings *s);
json_t *build_tensorboard_service(const struct job_spec *v);
/* {"metadata": {"uid", "resourceVersion", "ownerReferences"}}, a strategic merge patch that adopts an orphan if it
 * has not changed since it was read. Other owners are kept. */
json_t *build_adoption_patch(const struct job_spec *v, const char *uid, int64_t version);
/* {"metadata": {"uid", "resourceVersion", "labels"}}: restores the labels with which a pod was created. */
json_t *build_label_patch(const struct job_spec *v, enum role r, int index, const char *uid, int64_t version);
/* A merge patch that turns `current` into `object`, which one of the functions above built, with the uid and the
 * resourceVersion of `current` as preconditions. NULL: no difference. Labels and annotations of others are kept. */
struct merge_patch_rules {
    const char *whole[4]; /* below these paths members that `object` lacks are removed */
    const char *keep;     /* a string that is kept if it is not empty; NULL: none */
};
json_t *build_merge_patch(const json_t *object, const json_t *current, const struct merge_patch_rules *rules);
/* Turns it into a strategic merge patch with the same effect, for a Service, ConfigMap or NetworkPolicy. NULL is
 * allowed.
 */
void build_strategic_patch(json_t *change);
/* {"apiVersion", "kind", "name", "uid", "controller": true, "blockOwnerDeletion": true} */
json_t *build_owner_reference(const struct job_spec *v);

/* Names of a job's other objects. */
const char *build_config_map_name(const struct job_spec *v, char out[128]);
const char *build_tensorboard_name(const struct job_spec *v, char out[128]);
/* What is wrong with the claims' access modes for this job ("claim c is ReadWriteOncePod, but chief and 2 workers mount
 * it ..."), or NULL. xmalloc'ed. */
char *build_claims_fault(const struct job_spec *v, const struct claim_info *claims, size_t nclaims);

#endif
