/* Bias and activation, in one pass where that is possible. */
#include "nn/ops/bias.h"

#include "nn/ops/activation_kernel.h"
#include "tensor/kernel.h"

bool bias_is_plain_relu(const struct activation *a)
{
    return a->kind == ACT_RELU && a->negative_slope == 0.0F && a->threshold == 0.0F && isinf(a->max_value);
}

size_t bias_scratch(const struct layer *l, size_t max_n, bool training)
{
    return training && activation_needs_input(&l->activation) ? max_n * shape_elements(&l->out) : 0;
}

/* The last axis of the output, and how many rows of it there are. */
static size_t units_of(const struct op_ctx *c)
{
    return (size_t)c->l->out.dim[c->l->out.rank - 1];
}

static size_t rows_of(const struct op_ctx *c)
{
    return c->n * shape_elements(&c->l->out) / units_of(c);
}

void bias_forward(const struct op_ctx *c, int var, float *before)
{
    const struct activation *a = &c->l->activation;
    const float *bias = var < c->l->nvars ? c->w[var] : NULL;
    size_t rows = rows_of(c), units = units_of(c);
    if (bias != NULL && bias_is_plain_relu(a) && !c->logits) {
        kernel_add_row_relu(bias, c->y, rows, units);
        return;
    }
    if (bias != NULL)
        kernel_add_row(bias, c->y, rows, units);
    if (c->logits || a->kind == ACT_LINEAR)
        return;
    if (c->training && activation_needs_input(a))
        memcpy(before, c->y, rows * units * sizeof(*c->y));
    activation_forward(a, c->y, c->y, rows, units);
}

void bias_backward(const struct op_ctx *c, int var, const float *before)
{
    const struct activation *a = &c->l->activation;
    size_t rows = rows_of(c), units = units_of(c);
    float *sums = var < c->l->nvars ? c->g[var] : NULL;
    if (!c->logits && bias_is_plain_relu(a) && sums != NULL) {
        kernel_relu_backward_sum(c->y, c->dy, c->dy, sums, rows, units);
        return;
    }
    if (!c->logits && bias_is_plain_relu(a))
        kernel_relu_backward(c->y, c->dy, c->dy, rows * units);
    else if (!c->logits && a->kind != ACT_LINEAR)
        activation_backward(a, activation_needs_input(a) ? before : NULL, c->y, c->dy, c->dy, rows, units);
    if (sums != NULL)
        kernel_sum_rows(c->dy, sums, rows, units);
}
