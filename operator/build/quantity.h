/* quantity - sums of Kubernetes quantities. */
#ifndef TRAINYARD_BUILD_QUANTITY_H
#define TRAINYARD_BUILD_QUANTITY_H

#include "codec/json.h"

/* A sum of Kubernetes quantities ("500m", "1.5Gi", 2). */
struct quantity_sum {
    int64_t milli;
    bool binary; /* written with Ki, Mi, ... */
};
/* Adds it so many times. -1, and no change, when v is no quantity or the sum is beyond 4e15. */
int quantity_add(struct quantity_sum *sum, const json_t *v, int times);
json_t *quantity_value(const struct quantity_sum *sum); /* "1500m", "3Gi" */

#endif
