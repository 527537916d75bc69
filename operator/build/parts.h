/* parts - what the builders of this folder share: looking into a job's spec, filling what is open, heads and labels.
 *
 * Templates are the user's and come unchecked. Where one has something of a wrong type the functions here leave it
 * alone, and the API server refuses the object in its own words. null counts as absent.
 */
#ifndef TRAINYARD_BUILD_PARTS_H
#define TRAINYARD_BUILD_PARTS_H

#include "build/objects.h"

enum { HTTP_PORT = 8080, TENSORBOARD_PORT = 6006 };
#define TFJOB_PORT   "tfjob-port"
#define VOLUME_GROUP "trainyard.dev/volume-group"

/* ---- JSON ---- */

bool has(const json_t *object, const char *key);           /* present and not null */
void fill(json_t *object, const char *key, json_t *value); /* set when it has none; takes the value */
json_t *object_in(json_t *parent, const char *key); /* borrowed, made when absent; NULL: something else is there */
json_t *array_in(json_t *parent, const char *key);
json_t *named_in(const json_t *array, const char *name); /* the item whose "name" is this, borrowed, or NULL */

/* ---- the job ---- */

/* {"replicas", "template", ...} of a role in job_spec_json(), borrowed; NULL: the spec has none. */
json_t *replica_in(const struct job_spec *v, const json_t *spec, enum role r);
json_t *storage_in(const json_t *spec, const char *which); /* "data", "output": a VolumeSource, or NULL */
/* This pod leads the job: the chief, or worker 0 when there is none. All chiefs are meant where there are several. */
bool leads(const struct job_spec *v, enum role r, int index);
bool alone(const struct job_spec *v); /* one process: nobody to find */
/* The container that trains in a pod's spec: by its name, else the first. Borrowed, or NULL. */
json_t *training_container(const struct job_kind *k, const json_t *pod_spec);

/* ---- metadata ---- */

void put_label(json_t *labels, const struct job_spec *v, const char *name,
               const char *value);            /* the kind's prefix + name */
json_t *job_labels(const struct job_spec *v); /* operator-name, job-name: what selects the replicas */
json_t *replica_labels(const struct job_spec *v, enum role r, int index); /* with replica-type, replica-index */
void put_app_labels(json_t *labels);                                      /* app.kubernetes.io/..., where it has none */
/* {"apiVersion", "kind", "metadata": {"name", "namespace", "labels", "ownerReferences"}}; takes the labels. */
json_t *object_head(const struct job_spec *v, const char *api_version, const char *kind, const char *name,
                    json_t *labels);

/* ---- pods ---- */

/* A pod in the making; all borrowed from `pod`. */
struct pod_build {
    const struct job_spec *v;
    const json_t *spec; /* of the job */
    const struct build_settings *s;
    enum role role;
    int index;
    json_t *pod, *metadata, *pod_spec;
    json_t *container; /* that trains; NULL: the template has none */
};
/* What the ConfigMap of a TrainJob without a model says. */
json_t *cluster_data(const struct job_spec *v, const struct build_settings *s);
/* TF_CONFIG and the JOB_NAME family. */
void pod_cluster_env(struct pod_build *p);
/* Adds a variable, unless the container has one of that name. */
void put_env(json_t *container, const char *name, const char *value);
/* A TrainJob's: what its pods are given where the template is silent. */
void pod_defaults(struct pod_build *p);
void pod_volumes(struct pod_build *p);
/* Pods that share a ReadWriteOnce claim go where it is: their label, and the wish to be with those of that label. */
void pod_claims(struct pod_build *p, const struct claim_info *claims, size_t nclaims);
void board_claims(const struct job_spec *v, const json_t *spec, const struct claim_info *claims, size_t nclaims,
                  json_t *metadata, json_t *pod_spec);
/* What spec.podDefaults says for all pods of the job: adds to labels, annotations, nodeSelector, imagePullSecrets and
 * tolerations of the pod, and fills what is open of the rest. Where both say something the pod's own is kept. */
void job_pod_defaults(const json_t *spec, json_t *metadata, json_t *pod_spec);
/* Where Pod Security "restricted" wants something said: fills what is open. */
void secure_pod(json_t *pod_spec, const json_t *container, const json_t *spec, const struct build_settings *s);
void secure_container(json_t *container);

/* ---- quantities ---- */

/* A sum of Kubernetes quantities ("500m", "1.5Gi", 2). */
struct quantity_sum {
    int64_t milli;
    bool binary; /* written with Ki, Mi, ... */
};
/* Adds it so many times. -1, and no change, when v is no quantity or the sum is beyond 4e15. */
int quantity_add(struct quantity_sum *sum, const json_t *v, int times);
json_t *quantity_value(const struct quantity_sum *sum); /* "1500m", "3Gi" */

#endif
