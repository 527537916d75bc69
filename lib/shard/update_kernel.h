/* update_kernel - inner loops of updates, beside those of the optimizers. x: float32 at any address. Pure; the result
 * does not depend on how a range is cut, nor on the processor. */
#ifndef TRAINYARD_SHARD_UPDATE_KERNEL_H
#define TRAINYARD_SHARD_UPDATE_KERNEL_H

#include <stddef.h>

/* sum = w x */
void update_weigh(const void *x, float w, float *sum, size_t n);
/* sum += w x */
void update_add(const void *x, float w, float *sum, size_t n);
/* sum = w x + v y: as update_weigh of x, and update_add of y */
void update_weigh_two(const void *x, float w, const void *y, float v, float *sum, size_t n);
/* mean = w x / k, or with the sum of others: (sum + w x) / k */
void update_mean_of_one(const void *x, float w, float k, float *mean, size_t n);
void update_mean(const float *sum, const void *x, float w, float k, float *mean, size_t n);
/* next = m values + (1 - m) x; next may be values */
void update_average(const float *values, const void *x, float m, float *next, size_t n);

#endif
