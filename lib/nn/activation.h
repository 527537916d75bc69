/* activation - Keras's activation functions: names, arguments, forward, backward. A plain value.
 *
 * Formulas and defaults: keras/src/activations/activations.py (gelu exact erf form unless approximate,
 * leaky_relu negative_slope 0.2, hard_sigmoid = relu6(x + 3) / 6, relu max_value/negative_slope/threshold).
 * Data is (rows, cols), cols being the last axis: softmax and log_softmax normalise along it.
 * Speed: relu, sigmoid, tanh, softmax are KERNELs (tensor/kernel.h).
 */
#ifndef TRAINYARD_NN_ACTIVATION_H
#define TRAINYARD_NN_ACTIVATION_H

#include "codec/node.h"

/* X(enum, Keras name) - the canonical names; parse also accepts Keras's aliases (swish = silu, hard_swish =
 * hard_silu, and class names such as "ReLU" or "Softmax" in a map). D2 may add rows. */
#define ACTIVATIONS(X)                                                                                                 \
    X(ACT_LINEAR, "linear")                                                                                            \
    X(ACT_RELU, "relu")                                                                                                \
    X(ACT_RELU6, "relu6")                                                                                              \
    X(ACT_LEAKY_RELU, "leaky_relu")                                                                                    \
    X(ACT_ELU, "elu")                                                                                                  \
    X(ACT_SELU, "selu")                                                                                                \
    X(ACT_CELU, "celu")                                                                                                \
    X(ACT_GELU, "gelu")                                                                                                \
    X(ACT_SILU, "silu")                                                                                                \
    X(ACT_MISH, "mish")                                                                                                \
    X(ACT_SIGMOID, "sigmoid")                                                                                          \
    X(ACT_HARD_SIGMOID, "hard_sigmoid")                                                                                \
    X(ACT_HARD_SILU, "hard_silu")                                                                                      \
    X(ACT_HARD_TANH, "hard_tanh")                                                                                      \
    X(ACT_LOG_SIGMOID, "log_sigmoid")                                                                                  \
    X(ACT_TANH, "tanh")                                                                                                \
    X(ACT_TANH_SHRINK, "tanh_shrink")                                                                                  \
    X(ACT_SOFTPLUS, "softplus")                                                                                        \
    X(ACT_SOFTSIGN, "softsign")                                                                                        \
    X(ACT_EXPONENTIAL, "exponential")                                                                                  \
    X(ACT_SOFTMAX, "softmax")                                                                                          \
    X(ACT_LOG_SOFTMAX, "log_softmax")
enum activation_kind {
#define X(id, name) id,
    ACTIVATIONS(X)
#undef X
        ACTIVATION_COUNT
};

struct activation { /* zero is linear; relu has max_value HUGE_VALF unless given */
    enum activation_kind kind;
    float negative_slope; /* relu, leaky_relu; alpha of elu and celu */
    float max_value;      /* relu */
    float threshold;      /* relu */
    bool approximate;     /* gelu: tanh form */
};

/* The activation of that kind with Keras's defaults. */
struct activation activation_of(enum activation_kind kind);
/* Absent or null: linear. A name, any map node_named() accepts, or a layer of Keras ({class_name: ReLU, config}). */
MUST_USE int activation_parse(const struct node *n, struct activation *ret, struct err *e);
const char *activation_name(enum activation_kind kind);
/* The name when all arguments are Keras's defaults, as Keras writes it; else the layer that has them. celu and gelu
 * have no layer: with arguments they are written in a form that only Trainyard reads. New reference. */
json_t *activation_json(const struct activation *a);

/* y = f(x); y may equal x. */
void activation_forward(const struct activation *a, const float *x, float *y, size_t rows, size_t cols);
/* dx = dy * f'(x), for softmax the product with the Jacobian; dx may equal dy. y is the output. x, the
 * input, may be NULL unless activation_needs_input(a) (so most layers run in place). */
bool activation_needs_input(const struct activation *a);
void activation_backward(const struct activation *a, const float *x, const float *y, const float *dy, float *dx,
                         size_t rows, size_t cols);

#endif
