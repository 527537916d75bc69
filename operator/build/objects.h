/* objects - the Kubernetes objects of a job, as JSON. Pure: (job, settings) -> object. All give new references.
 *
 * Names, labels, TF_CONFIG and services of a TFJob are training-operator's to the byte (operators' reference 1.4-1.6).
 * A TrainJob has labels trainyard.dev/{operator-name,job-name,replica-type,replica-index,job-role}, one headless
 * service called like the job with publishNotReadyAddresses, and pods with hostname and subdomain, so that
 * JOB-ROLE-INDEX.JOB.NAMESPACE.svc names a pod from the first moment.
 *
 * Pods never lose anything the template says. Built-in defaults of a TrainJob's pods (image, command, security context,
 * readiness probe, resources, grace) fill only what the template leaves open.
 */
#ifndef TRAINYARD_BUILD_OBJECTS_H
#define TRAINYARD_BUILD_OBJECTS_H

#include "api/job_spec.h"
#include "api/pod_info.h"

struct build_settings {
    const char *trainer_image, *pull_policy; /* pull_policy "" : the cluster's */
    const char *tensorboard_image;
    const char *cluster_domain; /* "": none */
    const char *gang_scheduler; /* "", "volcano", or another's schedulerName */
    const char *operator_ns;    /* whose pods may reach the replicas */
    const struct strlist *scraper_namespaces;
    bool leave_user;          /* runAsUser, runAsGroup and fsGroup are the platform's to choose */
    const char *architecture; /* of trainer_image, as nodes are labelled ("amd64"); "": of any node */
    int lost_after_s;         /* tolerationSeconds of not-ready and unreachable for a TrainJob's pods
                               * whose template has none of its own; 0: the cluster's */
};

/* One pod. spec: job_spec_json(v), unpacked once for all pods of a job. warn (may be NULL) gets what a user should
 * know, as "REASON: text" lines: SetPodTemplateRestartPolicy, SetPodTemplateSchedulerName. */
json_t *build_pod(const struct job_spec *v, const json_t *spec, enum role r, int index, int restarts,
                  const struct claim_info *claims, size_t nclaims, const struct build_settings *s, struct buf *warn);
/* index -1: the job's one service (TrainJob). */
json_t *build_service(const struct job_spec *v, const json_t *spec, enum role r, int index);
/* A TrainJob's ConfigMap "JOB-job". With a model: the job file, key job.yaml (job/replica_file.h). Without: the
 * addresses of all replicas, keys cluster, ps-hosts, worker-hosts, chief-host, which the environment of its pods refers
 * to. NULL: it needs none. */
json_t *build_config_map(const struct job_spec *v, const json_t *spec, const struct build_settings *s);
bool build_needs_config_map(const struct job_spec *v);
/* Why its replicas cannot be told of each other: there are too many of them. NULL: they can. xmalloc'ed. */
char *build_cluster_fault(const struct job_spec *v, const struct build_settings *s);
json_t *build_network_policy(const struct job_spec *v, const struct build_settings *s);
/* Volcano's or scheduler-plugins' PodGroup, by s->gang_scheduler. completed: replicas that are not run again. */
json_t *build_pod_group(const struct job_spec *v, const json_t *spec, int completed, const struct build_settings *s);
const struct kube_resource *build_pod_group_resource(const struct build_settings *s);
json_t *build_tensorboard(const struct job_spec *v, const json_t *spec, const struct claim_info *claims, size_t nclaims,
                          const struct build_settings *s);
json_t *build_tensorboard_service(const struct job_spec *v);
/* {"metadata": {"uid", "resourceVersion", "ownerReferences"}}, a strategic merge patch: makes an orphan ours, if it is
 * still the object that was looked at. Other owners stay. */
json_t *build_adoption_patch(const struct job_spec *v, const char *uid, int64_t version);
/* {"metadata": {"uid", "resourceVersion", "labels"}}: gives a pod the labels back that it was made with. */
json_t *build_label_patch(const struct job_spec *v, enum role r, int index, const char *uid, int64_t version);
/* A merge patch that turns `current` into `object`, which one of the functions above built; only for the uid and the
 * resourceVersion of `current`. NULL: it is so already. Labels and annotations of others stay. */
struct merge_patch_rules {
    const char *whole[4]; /* what `current` has below these paths and `object` has not is taken away */
    const char *keep;     /* a text that stays as it is when there is one; NULL: none */
};
json_t *build_merge_patch(const json_t *object, const json_t *current, const struct merge_patch_rules *rules);
/* Makes it a strategic merge patch of the same effect, for a Service, a ConfigMap or a NetworkPolicy. NULL is fine. */
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
