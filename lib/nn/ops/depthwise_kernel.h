/* depthwise_kernel - convolutions of each channel by itself, with `multiplier` kernels each:
 * y[o, c m + k] = sum over the window of x[position, c] w[place, c m + k]. Strides and dilation of an axis are not both
 * above 1. Padding is left out of the sums. Pure; nothing may overlap.
 *
 * x and dx are (n, positions, channels), y and dy (n, outputs, channels * multiplier), w and dw (places, channels *
 * multiplier).
 */
#ifndef TRAINYARD_NN_OPS_DEPTHWISE_KERNEL_H
#define TRAINYARD_NN_OPS_DEPTHWISE_KERNEL_H

#include "nn/layers/layer_window.h"

struct depthwise {
    struct window_layout at; /* its out_channels are not used */
    size_t multiplier, n;    /* n: examples */
    float *scratch;          /* depthwise_scratch() floats, at a multiple of 8 bytes */
};

/* Floats, of any n. */
size_t depthwise_scratch(const struct window_layout *at, size_t multiplier);
void depthwise_forward(const struct depthwise *d, const float *x, const float *w, float *y);
void depthwise_weights_gradient(const struct depthwise *d, const float *x, const float *dy, float *dw);
void depthwise_input_gradient(const struct depthwise *d, const float *w, const float *dy, float *dx);

#endif
