/* Dense: matrix products, with bias and activation in the same pass where that is possible. */
#include "nn/layers/layer_rows.h"
#include "nn/ops/ops.h"
#include "tensor/gemm.h"
#include "tensor/kernel.h"

/* y (rows,units) = f(x (rows,channels) W (channels,units) + b (units)) */

enum { KERNEL_VAR, BIAS_VAR };

static size_t units(const struct layer *l)
{
    return (size_t)l->arg[DENSE_UNITS];
}

static bool has_bias(const struct layer *l)
{
    return l->arg[DENSE_USE_BIAS] != 0;
}

/* The relu that fuses with the bias and whose derivative is seen from y. */
static bool is_plain_relu(const struct activation *a)
{
    return a->kind == ACT_RELU && a->negative_slope == 0.0F && a->threshold == 0.0F && isinf(a->max_value);
}

/* Activations whose derivative needs their input get a copy of it. */
size_t op_dense_scratch(const struct layer *l, size_t max_n, bool training)
{
    return training && activation_needs_input(&l->activation) ? max_n * shape_elements(&l->out) : 0;
}

void op_dense_forward(const struct op_ctx *c)
{
    const struct activation *a = &c->l->activation;
    size_t rows = op_rows_of(c), u = units(c->l);

    gemm_nn(c->x[0], c->w[KERNEL_VAR], 0.0F, c->y, rows, u, op_channels(c));
    if (has_bias(c->l) && is_plain_relu(a) && !c->logits) {
        kernel_add_row_relu(c->w[BIAS_VAR], c->y, rows, u);
        return;
    }
    if (has_bias(c->l))
        kernel_add_row(c->w[BIAS_VAR], c->y, rows, u);
    if (c->logits || a->kind == ACT_LINEAR)
        return;
    if (c->training && activation_needs_input(a))
        memcpy(c->scratch, c->y, rows * u * sizeof(*c->y));
    activation_forward(a, c->y, c->y, rows, u);
}

/* dz = dy f'(z); dW = x^T dz; db = sum of dz over rows; dx = dz W^T */
void op_dense_backward(const struct op_ctx *c)
{
    const struct activation *a = &c->l->activation;
    size_t rows = op_rows_of(c), u = units(c->l), k = op_channels(c);

    if (!c->logits && is_plain_relu(a))
        kernel_relu_backward(c->y, c->dy, c->dy, rows * u);
    else if (!c->logits && a->kind != ACT_LINEAR)
        activation_backward(a, activation_needs_input(a) ? c->scratch : NULL, c->y, c->dy, c->dy, rows, u);
    if (c->g[KERNEL_VAR] != NULL)
        gemm_tn(c->x[0], c->dy, 0.0F, c->g[KERNEL_VAR], k, u, rows);
    if (has_bias(c->l) && c->g[BIAS_VAR] != NULL)
        kernel_sum_rows(c->dy, c->g[BIAS_VAR], rows, u);
    if (c->dx[0] != NULL)
        gemm_nt(c->dy, c->w[KERNEL_VAR], 0.0F, c->dx[0], rows, k, u);
}
