/* metrics - loss and metrics of a job as ONE additive vector of doubles a batch.
 *
 * Every metric keeps sums only (accuracy: correct, count; AUC: a histogram of thresholds; ...), so vectors of
 * batches are added in any order on any machine and the result of an epoch is a function of the sum.
 * Element layout is private to this module; width is fixed by the model.
 */
#ifndef TRAINYARD_NN_METRICS_METRICS_H
#define TRAINYARD_NN_METRICS_METRICS_H

#include "nn/model.h"

size_t metrics_width(const struct model *m); /* doubles in an accumulator */
/* Adds the loss of a batch of n examples: loss_sum is the sum over them, plus n * regularisation. */
void metrics_add_loss(double *acc, double loss_sum, size_t n);
/* Adds what an output of the model made of the batch. y_true: int32 for a sparse loss, else float (exec converts
 * integer labels); y_pred [n, output] after the last layer; weight: of the rows (nn/loss.h), or NULL: only
 * compile.weightedMetrics count by it; mask: of the rows, or NULL; loss_sum: the sum of this output's loss, without
 * regularisation. */
struct output_values {
    const struct tensor *y_true;
    const float *y_pred, *weight, *mask;
    double loss_sum;
    size_t n;
};
void metrics_add_output(const struct model *m, double *acc, size_t output, const struct output_values *v);
void metrics_merge(const struct model *m, double *acc, const double *other); /* acc += other */
/* result[i] of model_metric_name(i); NaN when there were no examples. */
void metrics_result(const struct model *m, const double *acc, double *ret);

#endif
