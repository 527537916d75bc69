/* AUC: acc = positives, then negatives, by the highest threshold they pass.
 * Thresholds as Keras's: -epsilon, 1/(n-1), ..., (n-2)/(n-1), 1 + epsilon. */
#include <math.h>

#include "nn/metrics/metric_impl.h"
#include "tensor/kernel.h"

static size_t thresholds(const struct model_metric *m)
{
    return (size_t)metric_arg(m, "num_thresholds", 200);
}

size_t auc_width(const struct model_metric *m)
{
    return 2 * thresholds(m);
}

/* Greatest i with p > threshold i; what is not in [0, 1] counts as the nearer end. */
static size_t bucket(float p, size_t n)
{
    const double at = ceil((double)p * (double)(n - 1)) - 1;
    return at >= 0 ? MIN((size_t)MIN(at, 1e9), n - 2) : 0;
}

void add_auc(const struct model_metric *m, double *acc, const struct metric_batch *b)
{
    const size_t n = thresholds(m);
    const bool logits = metric_arg(m, "from_logits", 0) != 0;
    for (size_t i = 0; i < b->rows; i++) {
        for (size_t j = i * b->cols; j < (i + 1) * b->cols; j++) {
            const size_t at = bucket(logits ? sigmoid32(b->p[j]) : b->p[j], n);
            acc[at] += metric_weight(b, i) * (double)b->t[j];
            acc[n + at] += metric_weight(b, i) * (1 - (double)b->t[j]);
        }
    }
}

struct curve_point { /* counts at a threshold */
    double tp, fp, positives, negatives;
};

/* Davis & Goadrich '06: precision interpolates linearly in counts, not in precision (Keras interpolate_pr_auc). */
static double interpolated_pr(struct curve_point low, struct curve_point high)
{
    double p_low = low.tp + low.fp, p_high = high.tp + high.fp;
    double slope = ratio(low.tp - high.tp, MAX(p_low - p_high, 0)), intercept = high.tp - slope * p_high;
    double step = p_low > 0 && p_high > 0 ? log(p_low / p_high) : 0;
    return ratio(slope * (low.tp - high.tp + intercept * step), high.positives);
}

enum summation { BY_MEAN, BY_MIN, BY_MAX }; /* interpolation, minoring, majoring */

static double curve_height(enum summation by, double a, double b)
{
    return by == BY_MEAN ? (a + b) / 2 : by == BY_MIN ? MIN(a, b) : MAX(a, b);
}

/* The area between two neighbouring thresholds. */
static double auc_piece(const struct model_metric *m, struct curve_point low, struct curve_point high)
{
    const bool pr = metric_arg(m, "curve", 0) != 0;
    const enum summation method = (enum summation)metric_arg(m, "summation_method", 0);
    const double recall_low = ratio(low.tp, low.positives), recall_high = ratio(high.tp, high.positives);
    if (pr && method == BY_MEAN)
        return interpolated_pr(low, high);
    if (pr)
        return (recall_low - recall_high) *
               curve_height(method, ratio(low.tp, low.tp + low.fp), ratio(high.tp, high.tp + high.fp));
    return (ratio(low.fp, low.negatives) - ratio(high.fp, high.negatives)) *
           curve_height(method, recall_low, recall_high);
}

double auc_result(const struct model_metric *m, const double *acc)
{
    const size_t n = thresholds(m);
    struct curve_point high = { 0 }, low;
    double area = 0;
    for (size_t i = 0; i < n; i++) {
        high.positives += acc[i];
        high.negatives += acc[n + i];
    }
    for (size_t i = n; i-- > 0; high = low) {
        low = high;
        low.tp += acc[i];
        low.fp += acc[n + i];
        if (i < n - 1)
            area += auc_piece(m, low, high);
    }
    return area;
}
