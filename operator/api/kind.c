/* The table of the two kinds of jobs, and the kinds of objects that they consist of. */
#include "api/kind.h"

const struct job_kind KIND_TRAINJOB = {
    .resource = { "trainyard.dev", "v1alpha1", "trainjobs", "TrainJob" },
    .api_version = "trainyard.dev/v1alpha1",
    .controller = "trainjob-controller",
    .framework = "trainyard",
    .label_prefix = "trainyard.dev/",
    .replica_specs = "replicaSpecs",
    .container = "trainer",
    .restart = RESTART_EXIT_CODE,
    .clean = CLEAN_RUNNING,
    .backoff_limit = 6,
    .any_case = false,
    .service_per_replica = false,
    .own_processes = true,
};

const struct job_kind KIND_TFJOB = {
    .resource = { "kubeflow.org", "v1", "tfjobs", "TFJob" },
    .api_version = "kubeflow.org/v1",
    .controller = "tfjob-controller",
    .framework = "tensorflow",
    .label_prefix = "training.kubeflow.org/",
    .replica_specs = "tfReplicaSpecs",
    .container = "tensorflow",
    .restart = RESTART_NEVER,
    .clean = CLEAN_NONE,
    .backoff_limit = -1,
    .any_case = true,
    .service_per_replica = true,
    .own_processes = false,
};

const struct kube_resource RESOURCE_PODS = { "", "v1", "pods", "Pod" };
const struct kube_resource RESOURCE_SERVICES = { "", "v1", "services", "Service" };
const struct kube_resource RESOURCE_CONFIG_MAPS = { "", "v1", "configmaps", "ConfigMap" };
const struct kube_resource RESOURCE_CLAIMS = { "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim" };
const struct kube_resource RESOURCE_NETWORK_POLICIES = { "networking.k8s.io", "v1", "networkpolicies",
                                                         "NetworkPolicy" };
const struct kube_resource RESOURCE_DEPLOYMENTS = { "apps", "v1", "deployments", "Deployment" };
const struct kube_resource RESOURCE_SECRETS = { "", "v1", "secrets", "Secret" };
