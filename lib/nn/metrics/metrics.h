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
/* Adds one batch: loss_sum is the sum over examples of their losses plus n * regularisation. y_true: int32
 * for a sparse loss, else float (exec converts integer labels); y_pred [n, output] after the last layer. acc
 * has metrics_width doubles. weight: of the rows (nn/loss.h), or NULL; only compile.weightedMetrics count by it. */
void metrics_add(const struct model *m, double *acc, double loss_sum, const struct tensor *y_true, const float *y_pred,
                 const float *weight, size_t n);
void metrics_merge(const struct model *m, double *acc, const double *other); /* acc += other */
/* result[i] of model_metric_name(i); NaN when there were no examples. */
void metrics_result(const struct model *m, const double *acc, double *ret);

#endif
