/* Collects the labels of a data set. */
#include "data/label_span.h"

#include <math.h>

void label_span_add(struct label_span *s, double v, int64_t record)
{
    bool first = s->n++ == 0;
    s->whole = (first || s->whole) && v == floor(v);
    if (first || v < s->min || (isnan(v) && !isnan(s->min))) {
        s->min = v;
        s->min_at = record;
    }
    if (first || v > s->max) {
        s->max = v;
        s->max_at = record;
    }
}

void label_span_join(struct label_span *s, const struct label_span *next, int64_t first)
{
    if (next->n == 0)
        return;
    struct label_span sum = *s;
    label_span_add(&sum, next->min, first + next->min_at);
    label_span_add(&sum, next->max, first + next->max_at);
    sum.n = s->n + next->n;
    sum.whole = sum.whole && next->whole;
    *s = sum;
}
