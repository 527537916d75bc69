/* activation_kernel - the arithmetic behind activation.c; private to lib/nn. Contracts as activation.h:
 * y may equal x, dx may equal dy; x of a backward may be y where the input is not needed. */
#ifndef TRAINYARD_NN_OPS_ACTIVATION_KERNEL_H
#define TRAINYARD_NN_OPS_ACTIVATION_KERNEL_H

#include "nn/activation.h"

typedef void activation_fn(const struct activation *a, const float *x, float *y, size_t rows, size_t cols);
typedef void activation_grad_fn(const struct activation *a, const float *x, const float *y, const float *dy, float *dx,
                                size_t rows, size_t cols);

activation_fn linear_forward, relu_forward, relu6_forward, leaky_relu_forward, elu_forward, selu_forward, celu_forward,
    gelu_forward, gelu_erf_forward, gelu_tanh_forward, silu_forward, mish_forward, sigmoid_forward,
    hard_sigmoid_forward, hard_silu_forward, hard_tanh_forward, log_sigmoid_forward, tanh_forward, tanh_shrink_forward,
    softplus_forward, softsign_forward, exponential_forward, softmax_forward, log_softmax_forward;
activation_grad_fn linear_backward, relu_backward, relu6_backward, leaky_relu_backward, elu_backward, selu_backward,
    celu_backward, gelu_backward, gelu_erf_backward, gelu_tanh_backward, silu_backward, mish_backward, sigmoid_backward,
    hard_sigmoid_backward, hard_silu_backward, hard_tanh_backward, log_sigmoid_backward, tanh_backward,
    tanh_shrink_backward, softplus_backward, softsign_backward, exponential_backward, softmax_backward,
    log_softmax_backward;

#endif
