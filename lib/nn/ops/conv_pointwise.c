/* Convolutions whose kernel has one position: products of the input with the kernel, as of Dense. */
#include "nn/ops/conv_kernel.h"
#include "tensor/gemm.h"

static bool pointwise_fits(const struct window_layout *at)
{
    for (int i = 0; i < WINDOW_AXES; i++)
        if (at->axis[i].size != 1 || at->axis[i].stride != 1 || at->axis[i].in != at->axis[i].out)
            return false;
    return true;
}

static size_t pointwise_scratch(const struct window_layout *at UNUSED, size_t n UNUSED)
{
    return 0;
}

static size_t pointwise_rows(const struct window_layout *at, size_t n)
{
    return n * at->axis[WINDOW_HEIGHT].out * at->axis[WINDOW_WIDTH].out;
}

static void pointwise_forward(const struct window_layout *at, size_t n, const float *x, const float *w, float *y,
                              float *scratch UNUSED)
{
    gemm_nn(x, w, 0.0F, y, pointwise_rows(at, n), at->out_channels, at->channels);
}

static void pointwise_backward(const struct window_layout *at, size_t n, const float *x, const float *w,
                               const struct conv_grads *g, float *scratch UNUSED)
{
    size_t rows = pointwise_rows(at, n);
    if (g->dw != NULL)
        gemm_tn(x, g->dy, 1.0F, g->dw, at->channels, at->out_channels, rows);
    if (g->dx != NULL)
        gemm_nt(g->dy, w, 0.0F, g->dx, rows, at->channels, at->out_channels);
}

const struct conv_kernel conv_pointwise = { .fits = pointwise_fits,
                                            .scratch = pointwise_scratch,
                                            .forward = pointwise_forward,
                                            .begin_backward = conv_clear_weights,
                                            .backward = pointwise_backward };
