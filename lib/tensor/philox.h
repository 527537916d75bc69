/* philox - many draws of base/rng.h at once (vectorised), for dropout masks and the like.
 *
 * The draws are those that calls of rng_u32(r) would return, for a cursor fresh from rng_at(); the cursor is not
 * moved. Thread-safe.
 */
#ifndef TRAINYARD_TENSOR_PHILOX_H
#define TRAINYARD_TENSOR_PHILOX_H

#include "base/rng.h"

/* Dropout's mask of one example: y[i] = draw i >= rate * 2^32 ? keep : 0. */
void philox_mask(const struct rng *r, double rate, float keep, float *y, size_t n);

#endif
