/* metadata - names, labels and owner references of the objects of a job. */
#ifndef TRAINYARD_BUILD_METADATA_H
#define TRAINYARD_BUILD_METADATA_H

#include "api/job_spec.h"

void set_label(json_t *labels, const struct job_spec *v, const char *name,
               const char *value);            /* the kind's prefix + name */
json_t *job_labels(const struct job_spec *v); /* operator-name, job-name: the selector of the replicas */
json_t *replica_labels(const struct job_spec *v, enum role r, int index); /* with replica-type, replica-index */
void fill_app_labels(json_t *labels);                                     /* app.kubernetes.io/..., if absent */
/* {"apiVersion", "kind", "metadata": {"name", "namespace", "labels", "ownerReferences"}}; takes the labels. */
json_t *object_with_metadata(const struct job_spec *v, const char *api_version, const char *kind, const char *name,
                             json_t *labels);

#endif
