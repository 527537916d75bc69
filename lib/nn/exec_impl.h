/* exec_impl - the inside of exec, for lib/nn's own use (adapt.c). */
#ifndef TRAINYARD_NN_EXEC_IMPL_H
#define TRAINYARD_NN_EXEC_IMPL_H

#include "nn/exec.h"
#include "nn/model_impl.h"
#include "nn/ops/op.h"

/* Forward in inference mode through the first `layers` layers; what comes out of them. */
const float *exec_forward(struct exec *x, const float *params, const struct batch *b, size_t layers);

#endif
