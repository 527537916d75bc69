/* The kernels in order, and passes of one part. */
#include "nn/ops/conv_kernel.h"

#include <string.h>

static const struct conv_kernel *const CONV_KERNELS[] = { &conv_winograd, &conv_pointwise, &conv_direct,
                                                          &conv_windows };

const struct conv_kernel *conv_kernel_for(const struct window_layout *at)
{
    size_t i = 0;
    while (!CONV_KERNELS[i]->fits(at))
        i++;
    return CONV_KERNELS[i];
}

void conv_begin_forward(const struct conv_call *c, const float *w)
{
    if (c->kernel->begin_forward != NULL)
        c->kernel->begin_forward(&c->at, w, c->scratch);
}

void conv_end_backward(const struct conv_call *c, const struct conv_grads *g)
{
    if (c->kernel->end_backward != NULL)
        c->kernel->end_backward(&c->at, g, c->scratch);
}

void conv_forward(const struct conv_call *c, size_t n, const float *x, const float *w, float *y)
{
    conv_begin_forward(c, w);
    c->kernel->forward(&c->at, n, x, w, y, c->scratch);
}

void conv_backward(const struct conv_call *c, size_t n, const float *x, const float *w, const struct conv_grads *g)
{
    c->kernel->begin_backward(&c->at, w, g, c->scratch);
    c->kernel->backward(&c->at, n, x, w, g, c->scratch);
    conv_end_backward(c, g);
}

void conv_clear_weights(const struct window_layout *at, const float *w UNUSED, const struct conv_grads *g,
                        float *scratch UNUSED)
{
    size_t window = at->axis[WINDOW_HEIGHT].size * at->axis[WINDOW_WIDTH].size * at->channels;
    if (g->dw != NULL)
        memset(g->dw, 0, window * at->out_channels * sizeof(float));
}
