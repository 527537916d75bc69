/* loss_kernel - one row of a loss: its value and gradient; private to lib/nn.
 * Formulas: keras/src/losses/losses.py and keras/src/backend/tensorflow/nn.py. */
#ifndef TRAINYARD_NN_LOSSES_LOSS_KERNEL_H
#define TRAINYARD_NN_LOSSES_LOSS_KERNEL_H

#include "nn/losses/loss.h"
#include "nn/ops/row.h"

struct loss_coef { /* a loss's arguments as float32 */
    float smoothing, delta, alpha, gamma;
    bool balancing;     /* binary focal: apply_class_balancing */
    bool binary_labels; /* hinge: the batch's labels are 0 and 1, to be read as -1 and 1 */
};

/* Value of a row. t: labels [cols], or NULL and `label` for a sparse loss. p: predictions [cols], in the
 * forms called _logits the input of softmax or sigmoid; these write the probabilities to y unless NULL (y may
 * equal p). d (unless NULL) = scale * gradient to p; may equal p when y does not. */
typedef double loss_row_fn(const struct loss_coef *k, const float *t, int32_t label, const float *p, size_t cols,
                           float scale, float *y, float *d);

loss_row_fn mse_row, mae_row, mape_row, msle_row, huber_row, log_cosh_row, poisson_row, hinge_row, squared_hinge_row,
    kl_row, cosine_row, categorical_hinge_row, bce_row, bce_logits_row, focal_row, focal_logits_row, cce_row,
    cce_logits_row, scce_row, scce_logits_row, categorical_focal_row, categorical_focal_logits_row;

/* ---- for loss_kernel.c and loss_row.c ---- */

#define LOSS_EPSILON 1e-7F /* keras.config.epsilon() */

#define LOSS_ROW(name)                                                                                                 \
    double name(UNUSED const struct loss_coef *k, UNUSED const float *labels, UNUSED int32_t label, const float *pred, \
                size_t cols, float scale, UNUSED float *probs, float *d)
/* f(k, t, p) of one element */
#define ELEMENT(name) static inline float name(UNUSED const struct loss_coef *k, UNUSED float t, UNUSED float p)

static inline float clip(float x, float low, float high)
{
    return x < low ? low : x > high ? high : x;
}

static inline bool clipped(float p, float high)
{
    return p < LOSS_EPSILON || p > high;
}

#endif
