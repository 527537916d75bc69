/* metric_impl - the inside of metrics, for lib/nn only.
 *
 * A metric is a row of the table in metric_rows.c: how many doubles it sums, how it adds a batch to them,
 * what the sums mean. Formulas: keras/src/metrics. Labels and predictions are rows x cols as in nn/losses/loss.h.
 */
#ifndef TRAINYARD_NN_METRICS_METRIC_IMPL_H
#define TRAINYARD_NN_METRICS_METRIC_IMPL_H

#include "nn/catalog.h"
#include "nn/metrics/metric_list.h"

struct metric_batch {
    const int32_t *label; /* [rows]: integer labels; else NULL */
    const float *t;       /* [rows, cols]: other labels; else NULL */
    const float *p;       /* [rows, cols] */
    const float *w;       /* [rows] or NULL: all 1 */
    const float *mask;    /* [rows], 0: padding; or NULL: no row is */
    size_t rows, cols;
};

enum metric_labels { LABELS_DENSE, LABELS_SPARSE };

struct model_metric;
struct metric_row {
    struct kind k;
    enum metric_labels labels;
    bool classes; /* compares classes: at least two of them */
    bool masked;  /* leaves padding out, as Keras's MeanMetricWrapper does */
    enum better better;
    const char *loss; /* the mean of this loss over all rows; NULL: `add` */
    size_t (*width)(const struct model_metric *m);
    void (*add)(const struct model_metric *m, double *acc, const struct metric_batch *b);
    double (*result)(const struct model_metric *m, const double *acc);
};

struct model_metric {
    const struct metric_row *row;
    double arg[KIND_ARGS_MAX];
    char *name;
    bool bare;         /* written as a name alone */
    bool weighted;     /* examples count by their weight */
    bool renamed;      /* with "weighted_" before its own name */
    struct loss *loss; /* of row->loss */
    size_t cols;       /* of the output */
    size_t at, width;  /* its doubles in the accumulator */
};

struct metric_list {
    struct model_metric *items;
    size_t n, width;
};

/* a / b, 0 for b 0: Keras's divide_no_nan */
static inline double ratio(double a, double b)
{
    return b == 0 ? 0 : a / b;
}

static inline double metric_weight(const struct metric_batch *b, size_t row)
{
    if (b->mask != NULL && b->mask[row] == 0)
        return 0;
    return b->w != NULL ? (double)b->w[row] : 1;
}

/* metric_auc.c */
size_t auc_width(const struct model_metric *m);
void add_auc(const struct model_metric *m, double *acc, const struct metric_batch *b);
double auc_result(const struct model_metric *m, const double *acc);

double metric_arg(const struct model_metric *m, const char *name, double fallback);

/* Adds a batch to the doubles of all metrics of the list (acc has l->width): those that are not weighted ignore
 * b->w, and those that count padding b->mask. result[i] of metric i. */
void metric_list_add(const struct metric_list *l, double *acc, const struct metric_batch *b);
void metric_list_result(const struct metric_list *l, const double *acc, double *ret);

/* The loss of that name with the arguments of a metric's config (ARG tables of both agree). */
MUST_USE int loss_of(const char *name, const struct node *config, struct loss **ret, struct err *e);

#endif
