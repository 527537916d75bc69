/* Conv1D, Conv2D and their transposes: a convolution (conv_kernel.h), bias and activation. */
#include "nn/layers/layer_rows.h"
#include "nn/ops/bias.h"
#include "nn/ops/conv_kernel.h"
#include "nn/ops/op_conv_pool.h"
#include "nn/ops/ops.h"

enum { KERNEL_VAR, BIAS_VAR };

static struct conv_call conv_between(const struct window_layout *at, float *scratch)
{
    return (struct conv_call){ .kernel = conv_kernel_for(at), .at = *at, .scratch = scratch };
}

/* The kernel has done with it when the input of the activation is put there, and begins after that was read. */
size_t op_conv_scratch(const struct layer *l, size_t max_n, bool training)
{
    const struct window_layout at = window_layout_of(l);
    return MAX(bias_scratch(l, max_n, training), conv_kernel_for(&at)->scratch(&at, max_n));
}

void op_conv_forward(const struct op_ctx *c)
{
    const struct window_layout at = window_layout_of(c->l);
    const struct conv_call conv = conv_between(&at, c->scratch);
    conv_forward(&conv, c->n, c->x[0], c->w[KERNEL_VAR], c->y);
    bias_forward(c, BIAS_VAR, c->scratch);
}

void op_conv_backward(const struct op_ctx *c)
{
    if (c->joined != NULL) {
        op_conv_pool_backward(c, c->joined);
        return;
    }
    const struct window_layout at = window_layout_of(c->l);
    const struct conv_call conv = conv_between(&at, c->scratch);
    bias_backward(c, BIAS_VAR, c->scratch);
    const struct conv_grads g = { .dy = c->dy, .dw = c->g[KERNEL_VAR], .dx = c->dx[0] };
    conv_backward(&conv, c->n, c->x[0], c->w[KERNEL_VAR], &g);
}

/* ---- the transpose: forward is what backward is of the convolution from its output to its input ---- */

static struct window_layout conv_transposed_layout(const struct layer *l)
{
    return window_layout_between(l->own, &l->out, &l->in[0]);
}

size_t op_conv_transpose_scratch(const struct layer *l, size_t max_n, bool training)
{
    const struct window_layout at = conv_transposed_layout(l);
    return MAX(bias_scratch(l, max_n, training), conv_kernel_for(&at)->scratch(&at, max_n));
}

void op_conv_transpose_forward(const struct op_ctx *c)
{
    const struct window_layout at = conv_transposed_layout(c->l);
    const struct conv_call conv = conv_between(&at, c->scratch);
    const struct conv_grads g = { .dy = c->x[0], .dx = c->y };
    conv_backward(&conv, c->n, NULL, c->w[KERNEL_VAR], &g);
    bias_forward(c, BIAS_VAR, c->scratch);
}

void op_conv_transpose_backward(const struct op_ctx *c)
{
    const struct window_layout at = conv_transposed_layout(c->l);
    const struct conv_call conv = conv_between(&at, c->scratch);
    const struct conv_grads g = { .dy = c->x[0], .dw = c->g[KERNEL_VAR] };
    bias_backward(c, BIAS_VAR, c->scratch);
    if (c->dx[0] != NULL)
        conv_forward(&conv, c->n, c->dy, c->w[KERNEL_VAR], c->dx[0]);
    if (g.dw != NULL)
        conv_backward(&conv, c->n, c->dy, NULL, &g);
}
