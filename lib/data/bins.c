/* Discretization: finds a value's range, and learns boundaries from a summary of the values. The summary is computed
 * with Keras's mixture of float32 and float64, so that boundaries have the same bits as its own. */
#include "data/bins.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

#define EPSILON 0.01 /* Keras's default */
enum { CHUNK_FIRST = 256 };

size_t bins_place(const double *boundaries, size_t n, double v)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((float)v < (float)boundaries[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void bins_fini(struct bins_learner *l)
{
    free(l->values);
    *l = (struct bins_learner){ .values = NULL };
}

/* ---- summaries ---- */

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* Values at equal distances; each stands for the values since the one before. */
static void summarize(float *values, size_t n, struct bins_summary *ret)
{
    qsort(values, n, sizeof(*values), by_value);
    double step = MAX((double)n / (1.0 / EPSILON), 1.0);
    ret->n = 0;
    for (size_t i = (size_t)(step - 1); i < n; i += (size_t)step) {
        ret->value[ret->n] = values[i];
        ret->weight[ret->n++] = (float)step;
    }
}

/* numpy.interp: the line through the points (x, y) at `at`, constant beyond its ends. */
static double interpolate(double at, const float *x, const float *y, size_t n)
{
    size_t after = 0; /* the first point beyond */
    while (after < n && !((double)x[after] > at))
        after++;
    if (after == 0)
        return (double)y[0];
    size_t i = after - 1;
    if (after == n || (double)x[i] == at)
        return (double)y[i];
    double slope = ((double)y[after] - (double)y[i]) / ((double)x[after] - (double)x[i]);
    return slope * (at - (double)x[i]) + (double)y[i];
}

/* To about 1 / epsilon values, at equal shares of the weight; fewer stay as they are. */
static size_t compress(const struct bins_summary *s, double epsilon, float *value, float *weight)
{
    float sums[BINS_SUMMARY_MAX], shares[BINS_SUMMARY_MAX], sum = 0;
    if ((double)s->n * epsilon < 1) {
        memcpy(value, s->value, s->n * sizeof(*value));
        memcpy(weight, s->weight, s->n * sizeof(*weight));
        return s->n;
    }
    for (size_t i = 0; i < s->n; i++)
        sums[i] = sum += s->weight[i];
    for (size_t i = 0; i < s->n; i++)
        shares[i] = sums[i] / sum;
    size_t n = (size_t)ceil(1.0 / epsilon);
    double before = 0;
    for (size_t i = 0; i < n; i++) {
        double share = epsilon + (double)i * epsilon, upto = interpolate(share, shares, sums, s->n);
        value[i] = (float)interpolate(share, shares, s->value, s->n);
        weight[i] = (float)(upto - before);
        before = upto;
    }
    return n;
}

/* Of equal values those of `a` are first. */
static void merge(const struct bins_summary *a, const struct bins_summary *b, struct bins_summary *ret)
{
    size_t i = 0, j = 0;
    for (ret->n = 0; ret->n < a->n + b->n; ret->n++) {
        bool from_a = j == b->n || (i < a->n && a->value[i] <= b->value[j]);
        ret->value[ret->n] = from_a ? a->value[i] : b->value[j];
        ret->weight[ret->n] = from_a ? a->weight[i] : b->weight[j];
        i += from_a;
        j += !from_a;
    }
}

/* The values so far become a part of the summary. */
static void take_chunk(struct bins_learner *l)
{
    struct bins_summary chunk, merged;
    summarize(l->values, l->n, &chunk);
    merge(&chunk, &l->summary, &merged);
    l->summary.n = compress(&merged, EPSILON, l->summary.value, l->summary.weight);
    l->n = 0;
}

void bins_add(struct bins_learner *l, double v)
{
    if (l->n == l->room) {
        l->room = l->room == 0 ? CHUNK_FIRST : l->room * 2;
        l->values = xrealloc(l->values, l->room * sizeof(*l->values));
    }
    l->values[l->n++] = (float)v;
    if (l->n == BINS_CHUNK)
        take_chunk(l);
}

size_t bins_finish(struct bins_learner *l, size_t num_bins, double **ret)
{
    if (l->n > 0)
        take_chunk(l);
    size_t room = MAX(num_bins + 1, l->summary.n);
    auto_free float *value = xcalloc(room, sizeof(*value)), *weight = xcalloc(room, sizeof(*weight));
    size_t n = compress(&l->summary, 1.0 / (double)num_bins, value, weight) - 1;
    *ret = xcalloc(n + 1, sizeof(**ret));
    for (size_t i = 0; i < n; i++)
        (*ret)[i] = str_float_decimal(value[i]);
    return n;
}
