/* bias - the end of a layer with weights: a bias and an activation, and back. Private to lib/nn. */
#ifndef TRAINYARD_NN_OPS_BIAS_H
#define TRAINYARD_NN_OPS_BIAS_H

#include "nn/ops/op.h"

/* The relu that fuses with the bias and whose derivative is seen from y. */
bool bias_is_plain_relu(const struct activation *a);
/* Floats that activations need whose derivative is computed from their input: a copy of it. */
size_t bias_scratch(const struct layer *l, size_t max_n, bool training);
/* c->y (rows, units) = f(c->y + bias). The bias is variable `var` of the layer; a layer with fewer has none. before:
 * bias_scratch() floats. */
void bias_forward(const struct op_ctx *c, int var, float *before);
/* c->dy becomes the gradient before f, and that of the bias its sum over the rows. */
void bias_backward(const struct op_ctx *c, int var, const float *before);

#endif
