/* loss - Keras's losses by name: values and gradients of one batch (keras/src/losses/losses.py).
 *
 * Data is rows x cols: cols is the last axis of the model's output, rows = examples times the axes between
 * (Keras reduces the last axis to one loss a row). y_true is int32 [rows] for sparse losses, else float
 * [rows, cols]. Probabilities are clipped to [1e-7, 1 - 1e-7] as Keras does. Immutable, thread-safe, never
 * allocates after parse.
 */
#ifndef TRAINYARD_NN_LOSSES_LOSS_H
#define TRAINYARD_NN_LOSSES_LOSS_H

#include "codec/node.h"
#include "nn/activation.h"
#include "tensor/tensor.h"

struct loss;

/* A name (snake_case, class name, Keras's short forms mse, mae, ...) or any map node_named() accepts
 * (from_logits, label_smoothing, delta, ...). reduction: only sum_over_batch_size (and null/"auto"), else
 * refused. */
MUST_USE int loss_parse(const struct node *n, struct loss **ret, struct err *e);
void loss_free(struct loss *l);
DEFINE_AUTO(loss, loss_free);

const char *loss_name(const struct loss *l); /* "sparse_categorical_crossentropy" */
bool loss_sparse(const struct loss *l);      /* labels are class numbers */
bool loss_has_classes(const struct loss *l); /* labels name a class: by its number, or by one number per class */
/* What an output says about classes. */
enum class_output {
    CLASS_NONE,   /* nothing: a regression, scores, or several labels at once */
    CLASS_BINARY, /* one number: the probability of class 1 */
    CLASS_EACH    /* the probability of each class */
};
/* ret_logits: they are to be made probabilities first, with sigmoid or softmax. */
enum class_output loss_class_output(const struct loss *l, const struct shape *output, bool *ret_logits);
json_t *loss_json(const struct loss *l); /* as in Keras's compile_config; new reference */
/* The labels of which the loss can be computed, for an output with so many classes. */
struct label_range {
    double min, max;
    bool classes; /* they are class numbers */
    bool ignores; /* `ignored` may stand in the place of a class number */
    int32_t ignored;
    const char *loss; /* its name, for messages */
};
struct label_range label_range_any(void); /* all finite numbers */
struct label_range loss_label_range(const struct loss *l, int64_t classes);
/* Whether it accepts an output of this shape (without the batch axis): sparse and categorical losses need at least 2
 * classes. Message without place. */
MUST_USE int loss_check(const struct loss *l, const struct shape *output, struct err *e);

struct loss_batch {
    const void *y_true;
    const float *weight; /* of each row; NULL: 1 */
    const float *mask;   /* of each row; 0: it is padding. NULL: no row is */
    size_t rows, cols;
};
/* Sum over rows of weight[i] * loss_i. Rows of padding and of an ignored class do not count, and the others count as
 * all rows together. With d_pred not NULL also d_pred = d(scale * that sum) / d y_pred. A label out of [0, cols) of a
 * sparse loss makes the row's loss NaN. */
double loss_eval(const struct loss *l, const struct loss_batch *b, const float *y_pred, float scale, float *d_pred);
/* The sum for a mean over several batches, as Keras's metrics make it: a row counts by its weight alone. *ret_count:
 * the sum of the weights of the rows that count. An ignored class counts as 0 where there is neither weight nor mask.
 */
double loss_sum(const struct loss *l, const struct loss_batch *b, const float *y_pred, double *ret_count);

/* Fast and exact path for softmax + (sparse) categorical crossentropy and sigmoid + binary crossentropy (as Keras,
 * which uses the logits before the activation): */
bool loss_fuses(const struct loss *l, const struct activation *last);
/* As loss_eval, but from the input of the last activation: writes y_pred = last(logits) (may be the same
 * memory), and d_logits = d(scale * sum) / d logits when not NULL. */
double loss_eval_fused(const struct loss *l, const struct activation *last, const struct loss_batch *b,
                       const float *logits, float *y_pred, float scale, float *d_logits);

#endif
