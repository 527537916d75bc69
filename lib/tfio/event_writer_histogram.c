/* Histograms of event files, with the bucket limits of TensorFlow (core/lib/histogram/histogram.cc
 * InitDefaultBuckets): edges grow by a tenth, so that TensorBoard shows them like TensorFlow's. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tfio/event_writer_internal.h"

/* The first bucket whose right edge is above v. */
static size_t find_bucket(const struct histogram_buckets *b, double v)
{
    size_t low = 0, high = b->n - 1;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (b->limits[mid] > v)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

static void init_limits(struct histogram_buckets *b)
{
    size_t n = 0;
    for (double v = 1.0e-12; v < 1.0e20; v *= 1.1)
        n++;
    b->n = 2 * n + 3;
    b->limits = xmalloc(b->n * sizeof(*b->limits));
    double *middle = b->limits + n + 1, v = 1.0e-12;
    middle[0] = 0;
    for (size_t i = 1; i <= n; i++, v *= 1.1) {
        middle[i] = v;
        *(middle - i) = -v;
    }
    middle[n + 1] = DBL_MAX;
    b->limits[0] = -DBL_MAX;
}

enum { KEY_SHIFT = 20, KEYS = 1 << (32 - KEY_SHIFT) };

static void init_first(struct histogram_buckets *b)
{
    b->first = xmalloc(KEYS * sizeof(*b->first));
    for (uint32_t key = 0; key < KEYS; key++) {
        bool negative = key >= KEYS / 2; /* the largest magnitude is the smallest */
        uint32_t bits = key << KEY_SHIFT | (negative ? (1U << KEY_SHIFT) - 1 : 0);
        float v;
        memcpy(&v, &bits, sizeof(v));
        b->first[key] = isnan(v) ? 0 : (uint16_t)find_bucket(b, (double)v);
    }
}

void histogram_buckets_init(struct histogram_buckets *b)
{
    init_limits(b);
    init_first(b);
}

void histogram_buckets_fini(struct histogram_buckets *b)
{
    free(b->limits);
    free(b->first);
}

/* find_bucket for floats: a key spans an eighth of an octave, which is at most three buckets. */
static size_t bucket_of_float(const struct histogram_buckets *b, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    size_t i = b->first[bits >> KEY_SHIFT];
    double v = (double)value;
    while (i + 1 < b->n && !(b->limits[i] > v))
        i++;
    return i;
}

/* Runs of empty buckets become one, as in TensorFlow's EncodeToProto. */
static void merge_empty(const struct histogram_buckets *b, const double *counts, double *ends, double *kept,
                        size_t *ret_n)
{
    size_t m = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (i > 0 && counts[i] <= 0 && kept[m - 1] <= 0)
            m--;
        ends[m] = b->limits[i];
        kept[m++] = counts[i];
    }
    *ret_n = m;
}

void histogram_buckets_count(const struct histogram_buckets *b, const float *values, size_t n,
                             Tensorflow__HistogramProto *ret, double **ret_lists)
{
    auto_free double *counts = xcalloc(b->n, sizeof(*counts));
    auto_free double *lists = xmalloc(2 * b->n * sizeof(*lists));

    for (size_t i = 0; i < n; i++) {
        double v = (double)values[i];
        if (!isfinite(v))
            continue;
        ret->min = ret->num > 0 ? MIN(ret->min, v) : v;
        ret->max = ret->num > 0 ? MAX(ret->max, v) : v;
        ret->num++;
        ret->sum += v;
        ret->sum_squares += v * v;
        counts[bucket_of_float(b, values[i])]++;
    }
    ret->bucket_limit = lists;
    ret->bucket = lists + b->n;
    merge_empty(b, counts, ret->bucket_limit, ret->bucket, &ret->n_bucket);
    ret->n_bucket_limit = ret->n_bucket;
    *ret_lists = TAKE(lists);
}
