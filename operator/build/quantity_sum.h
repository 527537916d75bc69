/* quantity_sum - sums of Kubernetes quantities. */
#ifndef TRAINYARD_BUILD_QUANTITY_SUM_H
#define TRAINYARD_BUILD_QUANTITY_SUM_H

#include "codec/json.h"

/* A sum of Kubernetes quantities ("500m", "1.5Gi", 2). */
struct quantity_sum {
    int64_t milli;
    bool binary; /* written with Ki, Mi, ... */
};
/* Adds v `times` times. -1, without a change, when v is not a quantity or the sum exceeds 4e15. */
int quantity_sum_add(struct quantity_sum *sum, const json_t *v, int times);
json_t *quantity_sum_value(const struct quantity_sum *sum); /* "1500m", "3Gi" */

#endif
