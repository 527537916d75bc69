/* example_rng - random numbers of one example: named by (seed, epoch, position of the example, node), whatever batch it
 * is in. A layer's own seed replaces that of the run.
 */
#ifndef TRAINYARD_NN_OPS_EXAMPLE_RNG_H
#define TRAINYARD_NN_OPS_EXAMPLE_RNG_H

#include <math.h>

#include "base/rng.h"
#include "nn/ops/op.h"

/* Example i of the batch; `seed`: NaN for that of the run. 24 bits of epoch and 40 of position share the first name. */
static inline struct rng rng_of_example(const struct op_ctx *c, enum rng_stream stream, double seed, size_t i)
{
    uint64_t example = (uint64_t)c->epoch << 40 ^ ((uint64_t)c->position + i);
    return rng_at(isnan(seed) ? c->seed : (uint64_t)(int64_t)seed, stream, example, c->node);
}

#endif
