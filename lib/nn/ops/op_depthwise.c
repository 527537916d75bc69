/* DepthwiseConv and SeparableConv, of sequences and images: each channel has kernels of its own; a separable one then
 * mixes the channels of each position. */
#include "nn/layers/layer_rows.h"
#include "nn/ops/bias.h"
#include "nn/ops/depthwise_kernel.h"
#include "nn/ops/ops.h"
#include "tensor/gemm.h"

enum { KERNEL_VAR, BIAS_VAR };
enum { SEPARABLE_DEPTHWISE_VAR, SEPARABLE_POINTWISE_VAR, SEPARABLE_BIAS_VAR };

static struct depthwise depthwise_of(const struct op_ctx *c, size_t multiplier)
{
    return (
        struct depthwise){ .at = window_layout_of(c->l), .multiplier = multiplier, .n = c->n, .scratch = c->scratch };
}

/* ---- DepthwiseConv: scratch has that of the kernel, then that of the bias ---- */

static size_t depthwise_multiplier(const struct layer *l)
{
    return (size_t)l->arg[DEPTHWISE_MULTIPLIER];
}

static size_t depthwise_kernel_scratch(const struct layer *l)
{
    const struct window_layout at = window_layout_of(l);
    return depthwise_scratch(&at, depthwise_multiplier(l));
}

size_t op_depthwise_conv_scratch(const struct layer *l, size_t max_n, bool training)
{
    return depthwise_kernel_scratch(l) + bias_scratch(l, max_n, training);
}

void op_depthwise_conv_forward(const struct op_ctx *c)
{
    const struct depthwise d = depthwise_of(c, depthwise_multiplier(c->l));
    depthwise_forward(&d, c->x[0], c->w[KERNEL_VAR], c->y);
    bias_forward(c, BIAS_VAR, c->scratch + depthwise_kernel_scratch(c->l));
}

void op_depthwise_conv_backward(const struct op_ctx *c)
{
    const struct depthwise d = depthwise_of(c, depthwise_multiplier(c->l));
    bias_backward(c, BIAS_VAR, c->scratch + depthwise_kernel_scratch(c->l));
    if (c->g[KERNEL_VAR] != NULL)
        depthwise_weights_gradient(&d, c->x[0], c->dy, c->g[KERNEL_VAR]);
    if (c->dx[0] != NULL)
        depthwise_input_gradient(&d, c->w[KERNEL_VAR], c->dy, c->dx[0]);
}

/* ---- SeparableConv ---- */

struct separable {
    struct depthwise d;
    size_t outputs, between, filters; /* outputs of all examples; channels between both convolutions */
    float *y, *dy, *before;           /* of the depthwise convolution; the scratch of the bias */
};

static size_t separable_multiplier(const struct layer *l)
{
    return (size_t)l->arg[SEPARABLE_MULTIPLIER];
}

/* Floats between both convolutions, of n examples. */
static size_t separable_between(const struct layer *l, size_t n)
{
    size_t outputs = shape_elements(&l->out) / (size_t)l->arg[CONV_FILTERS];
    return n * outputs * (size_t)layer_channels(l) * separable_multiplier(l);
}

static size_t separable_kernel_scratch(const struct layer *l)
{
    const struct window_layout at = window_layout_of(l);
    return depthwise_scratch(&at, separable_multiplier(l));
}

size_t op_separable_conv_scratch(const struct layer *l, size_t max_n, bool training)
{
    return separable_kernel_scratch(l) + (training ? 2 : 1) * separable_between(l, max_n) +
           bias_scratch(l, max_n, training);
}

static struct separable separable_of(const struct op_ctx *c)
{
    struct separable s = { .d = depthwise_of(c, separable_multiplier(c->l)),
                           .filters = (size_t)c->l->arg[CONV_FILTERS],
                           .y = c->scratch + separable_kernel_scratch(c->l) };
    s.between = s.d.at.channels * s.d.multiplier;
    s.outputs = c->n * s.d.at.axis[WINDOW_HEIGHT].out * s.d.at.axis[WINDOW_WIDTH].out;
    s.dy = s.y + (c->training ? s.outputs * s.between : 0);
    s.before = s.dy + s.outputs * s.between;
    return s;
}

void op_separable_conv_forward(const struct op_ctx *c)
{
    const struct separable s = separable_of(c);
    depthwise_forward(&s.d, c->x[0], c->w[SEPARABLE_DEPTHWISE_VAR], s.y);
    gemm_nn(s.y, c->w[SEPARABLE_POINTWISE_VAR], 0.0F, c->y, s.outputs, s.filters, s.between);
    bias_forward(c, SEPARABLE_BIAS_VAR, s.before);
}

void op_separable_conv_backward(const struct op_ctx *c)
{
    const struct separable s = separable_of(c);
    float *dw = c->g[SEPARABLE_DEPTHWISE_VAR];
    bias_backward(c, SEPARABLE_BIAS_VAR, s.before);
    if (c->g[SEPARABLE_POINTWISE_VAR] != NULL)
        gemm_tn(s.y, c->dy, 0.0F, c->g[SEPARABLE_POINTWISE_VAR], s.between, s.filters, s.outputs);
    if (dw == NULL && c->dx[0] == NULL)
        return;
    gemm_nt(c->dy, c->w[SEPARABLE_POINTWISE_VAR], 0.0F, s.dy, s.outputs, s.between, s.filters);
    if (dw != NULL)
        depthwise_weights_gradient(&s.d, c->x[0], s.dy, dw);
    if (c->dx[0] != NULL)
        depthwise_input_gradient(&s.d, c->w[SEPARABLE_DEPTHWISE_VAR], s.dy, c->dx[0]);
}
