/* broadcast - a tensor seen in a larger shape, as NumPy and Keras align shapes: from the last axis on, and axes of size
 * 1, or that are missing, are repeated. Shapes are of one example, n examples follow each other. Pure, thread-safe.
 */
#ifndef TRAINYARD_NN_OPS_BROADCAST_H
#define TRAINYARD_NN_OPS_BROADCAST_H

#include "tensor/tensor.h"

/* y (n, out) = x (n, in), repeated */
void broadcast_repeat(const struct shape *in, const struct shape *out, size_t n, const float *x, float *y);
/* Its gradient: dx (n, in) = the sums of dy (n, out) over what was repeated */
void broadcast_sum(const struct shape *in, const struct shape *out, size_t n, const float *dy, float *dx);

#endif
