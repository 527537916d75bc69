/* pod_template - errors of a pod template that the API server reports without their place, or not at all. Pure. */
#ifndef TRAINYARD_JOB_POD_TEMPLATE_H
#define TRAINYARD_JOB_POD_TEMPLATE_H

#include "codec/node.h"

/* ERR_INPUT: a request or a limit of a container is not a quantity. Absent: no template. */
MUST_USE int pod_template_check_resources(const struct node *pod_template, struct err *e);
/* ERR_INPUT: a container has the name that the trainer of a TFJob has. In a TrainJob with a model it would be a sidecar
 * of the trainer. */
MUST_USE int pod_template_check_names(const struct node *pod_template, struct err *e);

#endif
