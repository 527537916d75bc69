/* optimizer_kernel - the element-wise updates of optimizer.c; private to lib/nn.
 *
 * Every kernel reads n gradients and updates n weights and their slots, element by element, so that the result does not
 * depend on how a vector is cut. Products are not contracted (-ffp-contract=off), so the vector body, the scalar tail
 * and every CPU give the same bits.
 */
#ifndef TRAINYARD_NN_OPTIMIZERS_OPTIMIZER_KERNEL_H
#define TRAINYARD_NN_OPTIMIZERS_OPTIMIZER_KERNEL_H

#include "nn/optimizers/optimizer.h"
#include "tensor/kernel.h"

struct opt_coef { /* an optimizer's arguments as float32, by Keras's names; 0 where it has none */
    float beta_1, beta_2, keep_1, keep_2; /* keep: 1 - beta, computed in double */
    float rho, keep_rho;
    float momentum, epsilon;
    float l1, shrinkage, power;
};

/* s0, s1, s2: the slots, NULL where the optimizer has fewer. */
typedef void opt_kernel(const struct opt_coef *c, const struct opt_step *step, float *restrict w, float *restrict s0,
                        float *restrict s1, float *restrict s2, const wire_float *restrict g, size_t n);

opt_kernel opt_count, opt_sgd, opt_momentum, opt_nesterov, opt_adam, opt_amsgrad, opt_nadam, opt_adamax, opt_lion,
    opt_rmsprop, opt_rmsprop_momentum, opt_rmsprop_centered, opt_rmsprop_centered_momentum, opt_adagrad, opt_adadelta,
    opt_ftrl, opt_ftrl_power;

/* w -= w * rate: Keras's decoupled weight decay, before the step. */
void opt_decay(float *w, float rate, size_t n);
/* g = clip(g, -limit, limit); NaN stays. */
void opt_clip_value(float *g, float limit, size_t n);

#endif
