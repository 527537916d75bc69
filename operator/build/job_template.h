/* job_template - looks up a role's template and a pod's place in the job. All results are borrowed. */
#ifndef TRAINYARD_BUILD_JOB_TEMPLATE_H
#define TRAINYARD_BUILD_JOB_TEMPLATE_H

#include "api/job_spec.h"

enum { TENSORBOARD_PORT = 6006 };
#define TFJOB_PORT "tfjob-port"

/* {"replicas", "template", ...} of a role in job_spec_json(), borrowed; NULL: the spec has none. */
json_t *replica_spec(const struct job_spec *v, const json_t *spec, enum role r);
json_t *storage_source(const json_t *spec, const char *which); /* "data", "output": a VolumeSource, or NULL */
/* True if this pod leads the job: the chief (each one if there are several), or worker 0 without a chief. */
bool is_leader(const struct job_spec *v, enum role r, int index);
bool is_single_process(const struct job_spec *v); /* without peers, now and later */
/* The training container in a pod's spec: the one with the kind's name, else the first. Borrowed, or NULL. */
json_t *training_container(const struct job_kind *k, const json_t *pod_spec);

#endif
