/* exec - computes with a model: forward, loss, backward. One exec belongs to one thread; buffers for
 * max_batch examples are made once, in exec_new (page faults are expensive), and no step allocates. The model must
 * outlive it, and must have been built with compile for exec_train and exec_evaluate.
 */
#ifndef TRAINYARD_NN_EXEC_H
#define TRAINYARD_NN_EXEC_H

#include "nn/metrics/metrics.h"
#include "nn/model.h"
#include "tensor/batch.h"

struct exec;
MUST_USE int exec_new(const struct model *m, size_t max_batch, uint64_t seed, struct exec **ret, struct err *e);
void exec_free(struct exec *x);
DEFINE_AUTO(exec, exec_free);

/* b->n is at most max_batch in all of these calls. One training step. params: the parameter vector. Writes the whole
 * of grads (same layout): gradients of the loss (mean over the batch, plus regularisation) for VAR_TRAINABLE, the
 * batch statistic for VAR_MOVING, and zeros for VAR_CONST; gaps are left unchanged. Adds the batch to acc
 * (metrics_width doubles, NULL: skip). *ret_loss: the scalar Keras prints. Clipping is not applied. A NaN loss is
 * returned; it is not an error here. ready (may be NULL) is called during the step, once for each variable, from the
 * last to the first: the variable's part of grads is complete then and is not written any more. loss: of the batch.
 * Pixels (DT_UINT8) are converted to floats, in one pass with a Rescaling that is the first layer. Integer labels of
 * a loss that is not sparse become floats. */
typedef void exec_ready_fn(void *user, size_t variable, double loss);
void exec_train(struct exec *x, const float *params, const struct batch *b, float *grads, double *acc,
                exec_ready_fn *ready, void *user, double *ret_loss);

/* The same step in parts, for layers whose statistics are those of all batches of a group (BatchNormalization with
 * synchronized): each batch of the group has an exec of its own, in any process, with the same params. Gradients and
 * loss stay those of the batch: weighted by examples, their mean over the group is that of one joined batch. A
 * moving average takes the batches one after the other, but moves once in a step: the first one gives such a layer's
 * statistics of the group, and the others the average that the first one makes. */
struct exec_step { /* the arguments of exec_train */
    const float *params;
    const struct batch *batch;
    float *grads;
    double *acc;
    exec_ready_fn *ready;
    void *user;
    bool first; /* of its group, which is applied to moving averages first */
};
struct exec_sums {
    double *sum; /* in memory of the exec */
    size_t n;
};
/* Borrows all of the step until it is done; until then exec_begin and exec_advance alone may be called. Another
 * exec_begin gives the step up: what that has added to acc and told to ready is not taken back. */
void exec_begin(struct exec *x, const struct exec_step *step);
/* Computes until sums over the group are needed. False: *ret_sums are those of this batch, and the caller replaces
 * them by the sums of all batches of the group before the next call. All batches of a group stop at the same places.
 * True: the step is done, and *ret_loss is its loss. */
MUST_USE bool exec_advance(struct exec *x, struct exec_sums *ret_sums, double *ret_loss);

/* Forward in inference mode: b->n times the first output, valid until the next call. Labels are ignored. */
const float *exec_predict(struct exec *x, const float *params, const struct batch *b);
/* Each of the outputs that the last exec_predict() computed. */
const float *exec_output(const struct exec *x, size_t output);
/* Forward in inference mode and metrics. */
void exec_evaluate(struct exec *x, const float *params, const struct batch *b, double *acc);

/* Normalization.adapt: add all training features once (any batches), then write mean and variance of every VAR_CONST
 * variable into values. Sums are double. */
struct adapt;
struct adapt *adapt_new(const struct model *m);
void adapt_free(struct adapt *a);
DEFINE_AUTO(adapt, adapt_free);
void adapt_add(struct adapt *a, struct exec *x, const float *params, const struct batch *b);
void adapt_finish(struct adapt *a, float *values);

/* True when all n floats are finite (vectorised). */
bool all_finite(const float *v, size_t n);
/* What a worker sends of a variable: the gradient of a VAR_TRAINABLE, whose squares must be finite, too, because
 * optimizers keep them, or statistics of a batch. At any address. */
bool update_finite(enum variable_kind kind, const void *v, size_t n);

#endif
