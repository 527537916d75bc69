/* kind - the table of differences between TrainJob and TFJob. All other code in the operator serves both kinds. */
#ifndef TRAINYARD_API_KIND_H
#define TRAINYARD_API_KIND_H

#include "job/job.h"
#include "kube/client.h"

struct job_kind {
    struct kube_resource resource; /* { "kubeflow.org", "v1", "tfjobs", "TFJob" } */
    const char *api_version;       /* "kubeflow.org/v1" */
    const char *controller;        /* "tfjob-controller": label operator-name, source of events */
    const char *framework;         /* label of metrics: "tensorflow", "trainyard" */
    const char *label_prefix;      /* "training.kubeflow.org/", "trainyard.dev/" */
    const char *replica_specs;     /* key in spec: "tfReplicaSpecs", "replicaSpecs" */
    const char *container;         /* name of the training container: "tensorflow", "trainer" */
    enum restart_policy restart;   /* defaults */
    enum clean_pod_policy clean;
    int64_t backoff_limit;    /* -1: none */
    bool any_case;            /* role keys may be written in any case */
    bool service_per_replica; /* else one for the job */
    bool own_processes;       /* our binaries unless a template has its own: job file, /progress, shutdown order */
};
extern const struct job_kind KIND_TRAINJOB, KIND_TFJOB;

extern const struct kube_resource RESOURCE_PODS, RESOURCE_SERVICES, RESOURCE_CONFIG_MAPS, RESOURCE_CLAIMS,
    RESOURCE_NETWORK_POLICIES, RESOURCE_DEPLOYMENTS, RESOURCE_SECRETS;

#endif
