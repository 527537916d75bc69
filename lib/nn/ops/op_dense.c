/* Dense: matrix products over the last axis. */
#include "nn/layers/layer_rows.h"
#include "nn/ops/bias.h"
#include "nn/ops/ops.h"
#include "tensor/gemm.h"

/* y (rows,units) = f(x (rows,channels) W (channels,units) + b (units)) */

enum { KERNEL_VAR, BIAS_VAR };

static size_t units(const struct layer *l)
{
    return (size_t)l->arg[DENSE_UNITS];
}

size_t op_dense_scratch(const struct layer *l, size_t max_n, bool training)
{
    return bias_scratch(l, max_n, training);
}

void op_dense_forward(const struct op_ctx *c)
{
    gemm_nn(c->x[0], c->w[KERNEL_VAR], 0.0F, c->y, op_rows_of(c), units(c->l), op_channels(c));
    bias_forward(c, BIAS_VAR, c->scratch);
}

/* dz = dy f'(z); dW = x^T dz; db = sum of dz over rows; dx = dz W^T */
void op_dense_backward(const struct op_ctx *c)
{
    size_t rows = op_rows_of(c), u = units(c->l), k = op_channels(c);
    bias_backward(c, BIAS_VAR, c->scratch);
    if (c->g[KERNEL_VAR] != NULL)
        gemm_tn(c->x[0], c->dy, 0.0F, c->g[KERNEL_VAR], k, u, rows);
    if (c->dx[0] != NULL)
        gemm_nt(c->dy, c->w[KERNEL_VAR], 0.0F, c->dx[0], rows, k, u);
}
