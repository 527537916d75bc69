/* Adds a batch to the sums of all metrics of a model, and computes their values. */
#include "nn/metrics/metrics.h"

#include <math.h>

#include "nn/metrics/metric_impl.h"
#include "nn/model_impl.h"

enum { LOSS_SUM, EXAMPLES, OWN }; /* what an accumulator begins with */

/* The sums of the losses of several outputs, then of the metrics. */
static size_t head_losses(const struct model *m)
{
    return m->nheads > 1 ? m->nheads : 0;
}

static size_t head_width(const struct model_head *h)
{
    return h->metrics != NULL ? h->metrics->width : 0;
}

size_t metrics_width(const struct model *m)
{
    size_t width = OWN + head_losses(m);
    for (size_t i = 0; i < m->nheads; i++)
        width += head_width(&m->heads[i]);
    return width;
}

void metrics_add_loss(double *acc, double loss_sum, size_t n)
{
    acc[LOSS_SUM] += loss_sum;
    acc[EXAMPLES] += (double)n;
}

void metrics_add_output(const struct model *m, double *acc, size_t output, const struct output_values *v)
{
    const struct model_head *h = &m->heads[output];
    double *own = acc + OWN + head_losses(m);
    if (m->nheads > 1)
        acc[OWN + output] += v->loss_sum;
    if (h->metrics == NULL || v->y_true->data == NULL)
        return;
    for (size_t i = 0; i < output; i++)
        own += head_width(&m->heads[i]);
    const struct shape *out = &h->out.shape;
    const size_t cols = out->rank > 0 ? (size_t)out->dim[out->rank - 1] : 1;
    const bool sparse = loss_sparse(h->loss);
    const struct metric_batch b = {
        .label = sparse ? v->y_true->data : NULL,
        .t = sparse ? NULL : v->y_true->data,
        .p = v->y_pred,
        .w = v->weight,
        .mask = v->mask,
        .rows = v->n * (shape_elements(out) / cols),
        .cols = cols,
    };
    metric_list_add(h->metrics, own, &b);
}

void metrics_merge(const struct model *m, double *acc, const double *other)
{
    for (size_t i = 0; i < metrics_width(m); i++)
        acc[i] += other[i];
}

void metrics_result(const struct model *m, const double *acc, double *ret)
{
    const bool none = acc[EXAMPLES] == 0;
    const double *own = acc + OWN + head_losses(m);
    size_t at = 0;
    ret[at++] = acc[LOSS_SUM] / acc[EXAMPLES];
    for (size_t i = 0; i < head_losses(m); i++)
        ret[at++] = acc[OWN + i] / acc[EXAMPLES];
    for (size_t i = 0; i < m->nheads; i++) {
        const struct model_head *h = &m->heads[i];
        if (h->metrics == NULL)
            continue;
        metric_list_result(h->metrics, own, ret + at);
        own += h->metrics->width;
        at += h->metrics->n;
    }
    for (size_t i = 0; none && i < at; i++)
        ret[i] = (double)NAN;
}
