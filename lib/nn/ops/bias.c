/* Bias and activation, in one pass where that is possible. */
#include "nn/ops/bias.h"

#include "nn/ops/activation_kernel.h"
#include "tensor/kernel.h"

/* The relu that fuses with the bias and whose derivative is seen from y. */
static bool is_plain_relu(const struct activation *a)
{
    return a->kind == ACT_RELU && a->negative_slope == 0.0F && a->threshold == 0.0F && isinf(a->max_value);
}

size_t bias_scratch(const struct layer *l, size_t max_n, bool training)
{
    return training && activation_needs_input(&l->activation) ? max_n * shape_elements(&l->out) : 0;
}

void bias_forward(const struct op_ctx *c, const float *bias, float *before, size_t rows, size_t units)
{
    const struct activation *a = &c->l->activation;
    if (bias != NULL && is_plain_relu(a) && !c->logits) {
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

void bias_backward(const struct op_ctx *c, const float *before, float *grad, size_t rows, size_t units)
{
    const struct activation *a = &c->l->activation;
    if (!c->logits && is_plain_relu(a))
        kernel_relu_backward(c->y, c->dy, c->dy, rows * units);
    else if (!c->logits && a->kind != ACT_LINEAR)
        activation_backward(a, activation_needs_input(a) ? before : NULL, c->y, c->dy, c->dy, rows, units);
    if (grad != NULL)
        kernel_sum_rows(c->dy, grad, rows, units);
}
