/* quantity - a Kubernetes quantity, such as 2, "500m" or "4Gi". Pure. */
#ifndef TRAINYARD_JOB_QUANTITY_H
#define TRAINYARD_JOB_QUANTITY_H

#include "codec/node.h"

/* In thousandths, rounded up; *ret_binary: written with Ki, Mi, ... -1: it is not a quantity. */
MUST_USE int quantity_parse(const json_t *v, double *ret_milli, bool *ret_binary);
/* Every value of a map of resources, such as `requests`. Absent: none. */
MUST_USE int quantity_check_map(const struct node *resources, struct err *e);

#endif
