/* conv_kernel - the ways to compute a convolution.
 *
 * Shapes, row-major: x and dx (n, in height, in width, channels); w and dw (window height, window width, channels, out
 * channels), as in Keras; y and dy (n, out height, out width, out channels). A sequence has height 1. Positions outside
 * of the input are zeros. There may be fewer outputs than windows that fit: the last ones are left out.
 *
 * Ownership: the caller owns everything, and gives scratch() floats; nothing in them is kept between passes. Buffers do
 * not overlap, and need no alignment. Thread-safe: no state. Deterministic: the same call gives the same bits. No
 * errors: the caller guarantees that all shapes fit together. Private to lib/nn.
 */
#ifndef TRAINYARD_NN_OPS_CONV_KERNEL_H
#define TRAINYARD_NN_OPS_CONV_KERNEL_H

#include "nn/layers/layer_window.h"

struct conv_grads { /* of backward */
    const float *dy;
    float *dw, *dx; /* NULL: not needed */
};

/* A pass over a batch: begin, then the examples in parts, in their order, and for backward end. The functions between
 * get the same at, w, scratch, and g except for its dy and dx. */
struct conv_kernel {
    bool (*fits)(const struct window_layout *at);
    size_t (*scratch)(const struct window_layout *at, size_t n); /* of both passes, with at most n examples in a part */
    void (*begin_forward)(const struct window_layout *at, const float *w, float *scratch); /* NULL: nothing to do */
    void (*forward)(const struct window_layout *at, size_t n, const float *x, const float *w, float *y, float *scratch);
    /* x is only read for dw, and w for dx. dx is overwritten. dw is complete after end_backward. */
    void (*begin_backward)(const struct window_layout *at, const float *w, const struct conv_grads *g, float *scratch);
    void (*backward)(const struct window_layout *at, size_t n, const float *x, const float *w,
                     const struct conv_grads *g, float *scratch);
    void (*end_backward)(const struct window_layout *at, const struct conv_grads *g, float *scratch); /* or NULL */
};

/* A kernel with its scratch. */
struct conv_call {
    const struct conv_kernel *kernel;
    struct window_layout at;
    float *scratch;
};
/* The beginning and the end of a pass, whatever the kernel needs. */
void conv_begin_forward(const struct conv_call *c, const float *w);
void conv_end_backward(const struct conv_call *c, const struct conv_grads *g);
/* Passes of one part. */
void conv_forward(const struct conv_call *c, size_t n, const float *x, const float *w, float *y);
void conv_backward(const struct conv_call *c, size_t n, const float *x, const float *w, const struct conv_grads *g);
/* The first kernel that fits. */
const struct conv_kernel *conv_kernel_for(const struct window_layout *at);
/* A begin_backward: dw = 0, for kernels whose backward adds to it. */
void conv_clear_weights(const struct window_layout *at, const float *w, const struct conv_grads *g, float *scratch);

/* Any convolution: windows are copied into the rows of a matrix, which is multiplied by the kernel. Scratch: a few
 * hundred KiB, or 32 windows if these are more. */
extern const struct conv_kernel conv_windows;
/* Windows side by side, and filters in whole vectors: windows are read where they lie in the image. The gradient of the
 * input is that of conv_windows. Scratch: likewise, or an image with its padding if that is more, at most 4 MiB. */
extern const struct conv_kernel conv_direct;
/* Kernels of one position, with strides of 1 and as many outputs as positions: the input is the matrix. No scratch. */
extern const struct conv_kernel conv_pointwise;
/* Windows of 3 x 3 side by side, by Winograd's F(2x2, 3x3). The output is cut into tiles of 2 x 2. A tile needs 16
 * products for each pair of channels, where the direct way needs 36. It is as exact as the direct way: its factors are
 * 1 and 1/2. backward is the exact adjoint of forward. The bits are the same with AVX2 and with AVX-512; those of y and
 * dx of an example do not depend on the other examples. Scratch: for 64 channels in and out 0.8 MiB, for any n. */
extern const struct conv_kernel conv_winograd;

#endif
