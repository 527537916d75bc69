/* exec_impl - the inside of exec, for lib/nn's own use (adapt.c). */
#ifndef TRAINYARD_NN_EXEC_IMPL_H
#define TRAINYARD_NN_EXEC_IMPL_H

#include "nn/exec.h"
#include "nn/model_impl.h"
#include "nn/ops/op.h"

/* The tensor of that number (struct model_node) in inference mode; valid until the next call. */
const float *exec_forward(struct exec *x, const float *params, const struct batch *b, size_t tensor);

#endif
