/* one_output - a batch of a model with one output, added to an accumulator of metrics. */
#ifndef TRAINYARD_TEST_ONE_OUTPUT_H
#define TRAINYARD_TEST_ONE_OUTPUT_H

#include "nn/metrics/metrics.h"

/* p: n predictions; examples count the same. */
static inline void add_one_output(const struct model *m, double *acc, double loss_sum, const struct tensor *y,
                                  const float *p, size_t n)
{
    const struct output_values v = { .y_true = y, .y_pred = p, .loss_sum = loss_sum, .n = n };
    metrics_add_loss(acc, loss_sum, n);
    metrics_add_output(m, acc, 0, &v);
}

#endif
