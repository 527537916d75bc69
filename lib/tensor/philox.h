/* philox - many draws of base/rng.h at once (vectorised), for dropout masks and the like.
 *
 * philox_fill(r, out, n) writes what n calls of rng_u32(r) would return, for a cursor fresh from rng_at();
 * the cursor is not moved. Thread-safe.
 */
#ifndef TRAINYARD_TENSOR_PHILOX_H
#define TRAINYARD_TENSOR_PHILOX_H

#include "base/rng.h"

void philox_fill(const struct rng *r, uint32_t *out, size_t n);
/* Dropout's mask of one example: y[i] = draw i >= rate * 2^32 ? keep : 0. */
void philox_mask(const struct rng *r, double rate, float keep, float *y, size_t n);

#endif
