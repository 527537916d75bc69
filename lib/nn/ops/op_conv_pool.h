/* op_conv_pool - a convolution with relu and the maximum of windows of 2 x 2 behind it, as one op.
 *
 * The output of the convolution, by far the largest tensor of a small image model, is never written: a few examples at
 * a time are convolved into a buffer that stays in the cache, and pooled. Forward keeps a byte for each pooled value:
 * from which of the four positions it came. Backward makes the gradient of the convolution's output from the pooled one
 * and these bytes. Positions that no window covers are not computed. Values and gradients are those of the two ops.
 *
 * The node of the pooling computes forward, and that of the convolution backward: op_ctx.joined. Private to lib/nn.
 */
#ifndef TRAINYARD_NN_OPS_OP_CONV_POOL_H
#define TRAINYARD_NN_OPS_OP_CONV_POOL_H

#include "nn/ops/op.h"

/* Whether `pool` can be computed together with `conv`, whose output it alone reads. */
bool op_conv_pool_fits(const struct layer *conv, const struct layer *pool);
/* Floats of scratch of the convolution's node then. Passes SIZE_MAX on overflow. */
size_t op_conv_pool_scratch(const struct layer *conv, const struct layer *pool, size_t max_n, bool training);
/* conv: x, w and scratch; pool: y. */
void op_conv_pool_forward(const struct op_ctx *conv, const struct op_ctx *pool);
/* conv: x, w, scratch, g, dx and dy, which is the gradient of the pooled values. */
void op_conv_pool_backward(const struct op_ctx *conv, const struct op_ctx *pool);

#endif
