/* pod_build - the steps that turn a template into a replica's pod, between pod.c and the pod_*.c files. */
#ifndef TRAINYARD_BUILD_POD_BUILD_H
#define TRAINYARD_BUILD_POD_BUILD_H

#include "build/job_template.h"
#include "build/json_fill.h"
#include "build/metadata.h"
#include "build/objects.h"
#include "build/pod_ports.h"

#define VOLUME_GROUP "trainyard.dev/volume-group"

/* A pod that is being built; pointers into it are borrowed from `pod`. */
struct pod_build {
    const struct job_spec *v;
    const json_t *spec; /* of the job */
    const struct build_settings *s;
    enum role role;
    int index;
    json_t *pod, *metadata, *pod_spec;
    json_t *container; /* the training container; NULL: the template has none */
};
/* The data of the ConfigMap of a TrainJob without a model. */
json_t *cluster_config_data(const struct job_spec *v, const struct build_settings *s);
/* TF_CONFIG and the JOB_NAME family. True: the template had a TF_CONFIG, which is gone. */
bool pod_cluster_env(struct pod_build *p);
/* Adds a variable, unless the container has a variable of that name. */
void fill_env(json_t *container, const char *name, const char *value);
/* Adds a port, unless the container has a port of that name. */
void fill_port(json_t *container, const char *name, int port);
/* A TrainJob's defaults for what the template does not set. */
void pod_defaults(struct pod_build *p);
void pod_volumes(struct pod_build *p);
/* Mounts a volume into the training container. A mount at that path or a volume of that name in the template takes
 * precedence. source is borrowed. */
void fill_mount(struct pod_build *p, const char *volume, const char *path, bool read_only, const json_t *source);
/* The replica's certificate, or the variable that says that it has none. */
void pod_identity(struct pod_build *p, const struct job_identity *identity);
/* Pods that share a ReadWriteOnce claim must run on one node: gives them a label and affinity to that label. */
void pod_claims(struct pod_build *p, const struct claim_info *claims, size_t nclaims);
void tensorboard_claims(const struct job_spec *v, const json_t *spec, const struct claim_info *claims, size_t nclaims,
                        json_t *metadata, json_t *pod_spec);
/* Applies spec.podDefaults: adds to labels, annotations, nodeSelector, imagePullSecrets and tolerations of the pod, and
 * fills other members if they are absent. The pod's own values take precedence. */
void apply_pod_defaults(const json_t *spec, json_t *metadata, json_t *pod_spec);
/* Fills in what Pod Security "restricted" requires. */
void fill_pod_security(json_t *pod_spec, const json_t *container, const json_t *spec, const struct build_settings *s);
void fill_container_security(json_t *container);

#endif
