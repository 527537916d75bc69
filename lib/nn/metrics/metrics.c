/* Adds a batch to the sums of all metrics of a model, and computes their values. */
#include "nn/metrics/metrics.h"

#include <math.h>

#include "nn/metrics/metric_impl.h"
#include "nn/model_impl.h"

enum { LOSS_SUM, EXAMPLES, OWN }; /* what an accumulator begins with */

size_t metrics_width(const struct model *m)
{
    return OWN + (m->metrics != NULL ? m->metrics->width : 0);
}

void metrics_add(const struct model *m, double *acc, double loss_sum, const struct tensor *y_true, const float *y_pred,
                 const float *weight, size_t n)
{
    acc[LOSS_SUM] += loss_sum;
    acc[EXAMPLES] += (double)n;
    if (m->metrics == NULL || y_true->data == NULL)
        return;
    const size_t cols = m->output.rank > 0 ? (size_t)m->output.dim[m->output.rank - 1] : 1;
    const bool sparse = loss_sparse(m->loss);
    const struct metric_batch b = {
        .label = sparse ? y_true->data : NULL,
        .t = sparse ? NULL : y_true->data,
        .p = y_pred,
        .w = weight,
        .rows = n * (shape_elements(&m->output) / cols),
        .cols = cols,
    };
    metric_list_add(m->metrics, acc + OWN, &b);
}

void metrics_merge(const struct model *m, double *acc, const double *other)
{
    for (size_t i = 0; i < metrics_width(m); i++)
        acc[i] += other[i];
}

void metrics_result(const struct model *m, const double *acc, double *ret)
{
    const bool none = acc[EXAMPLES] == 0;
    ret[0] = none ? (double)NAN : acc[LOSS_SUM] / acc[EXAMPLES];
    if (m->metrics == NULL)
        return;
    metric_list_result(m->metrics, acc + OWN, ret + 1);
    for (size_t i = 0; none && i < m->metrics->n; i++)
        ret[1 + i] = (double)NAN;
}
