/* Judges the numbers of data sets, and names the place of a wrong one. */
#include "data/values.h"

#include <inttypes.h>
#include <math.h>

#include "base/buf.h"
#include "tensor/kernel.h"

/* ---- warnings ---- */

void values_warn_rounded(const struct records *r, int64_t record, size_t i, double v, struct strlist *ret)
{
    AUTO_FINI(buf) text = BUF_INIT;
    r->ops->place(r, record, RECORD_FEATURES, i, &text);
    buf_printf(&text, ": %.0f is read as %.0f, because features are 32-bit floats", v, (double)(float)v);
    strlist_add(ret, text.data);
}

void values_warn_equal(const struct records *r, const char *so, struct strlist *ret)
{
    const struct label_span *s = &r->labels;
    AUTO_FINI(buf) text = BUF_INIT;
    if (s->n < 2 || !(s->min == s->max))
        return;
    r->ops->place(r, 0, RECORD_LABELS, 0, &text);
    buf_printf(&text, ": the label of all %" PRId64 " examples is %.9g, so %s", s->n, s->min, so);
    strlist_add(ret, text.data);
}

/* Of examples that are spread evenly over first .. first + n. false: they differ, or one cannot be read. */
static bool have_one_label(const struct records *r, int64_t first, int64_t n, int64_t looked_at, double *ret)
{
    enum { AT_ONCE = 16 }; /* most parts have two labels among their first ones */
    int64_t which[AT_ONCE];
    size_t row = shape_elements(&r->x) * dtype_size(r->x_type), count = 1;
    auto_free void *x = NULL;
    float labels[AT_ONCE], weights[AT_ONCE];
    int32_t classes[AT_ONCE];
    struct err ignored;
    if (mem_alloc_plain(row * AT_ONCE, "examples", &x, &ignored) < 0)
        return false;
    for (int64_t at = 0; at < looked_at; at += (int64_t)count) {
        count = (size_t)MIN(looked_at - at, (int64_t)AT_ONCE);
        for (size_t i = 0; i < count; i++)
            which[i] = first + (int64_t)((double)(at + (int64_t)i) * ((double)n / (double)looked_at));
        if (r->ops->read(r, which, count, x, r->integer_labels ? (void *)classes : labels, weights, &ignored) < 0)
            return false;
        for (size_t i = 0; i < count; i++) {
            double label = r->integer_labels ? classes[i] : (double)labels[i];
            if (at == 0 && i == 0)
                *ret = label;
            else if (label != *ret)
                return false;
        }
    }
    return true;
}

void values_warn_part(const struct records *r, int64_t first, int64_t n, const char *so, struct strlist *ret)
{
    enum { LOOKED_AT = 1000 };
    AUTO_FINI(buf) text = BUF_INIT;
    double label = 0;
    const struct label_span *s = &r->labels;
    if (s->n < 2 || s->min == s->max || n < 2 || !have_one_label(r, first, n, MIN(n, (int64_t)LOOKED_AT), &label))
        return;
    r->ops->place(r, first, RECORD_LABELS, 0, &text);
    buf_printf(&text, ": the label of ");
    if (n > LOOKED_AT)
        buf_printf(&text, "%d examples that are spread evenly over ", LOOKED_AT);
    buf_printf(&text, "%s %" PRId64 " examples is %.9g, so %s; put the examples into a random order",
               first == 0 ? "the first" : "the last", n, label, so);
    strlist_add(ret, text.data);
}

/* ---- one wrong number ---- */

static bool accepts(const struct label_range *range, double v)
{
    return (v >= range->min && v <= range->max) || (range->ignores && v == range->ignored);
}

static int bad_feature(const struct records *r, int64_t record, size_t i, double v, struct err *e)
{
    AUTO_FINI(buf) place = BUF_INIT;
    r->ops->place(r, record, RECORD_FEATURES, i, &place);
    return err_set(e, ERR_INPUT, "%s: %g is not a finite number; put a number in its place, or leave the example out",
                   place.data, v);
}

/* What probably led to a class number outside of the range. */
static const char *class_cure(const struct records *r, const struct label_range *range, double v)
{
    if (v < 0)
        return range->ignores ? "" : "; if it stands for 'unknown', set the loss's ignore_class";
    return r->labels.n > 0 && r->labels.min == 1 ? "; classes are counted from 0, and the least label is 1" : "";
}

static int bad_label(const struct records *r, const struct label_range *range, int64_t record, size_t i, double v,
                     struct err *e)
{
    AUTO_FINI(buf) place = BUF_INIT;
    r->ops->place(r, record, RECORD_LABELS, i, &place);
    if (!isfinite(v))
        return err_set(e, ERR_INPUT, "%s: the label is %g, not a finite number", place.data, v);
    if (!range->classes)
        return err_set(e, ERR_INPUT, "%s: label %.9g, but labels of %s are from %g to %g", place.data, v, range->loss,
                       range->min, range->max);
    if (v != floor(v))
        return err_set(e, ERR_INPUT, "%s: label %.9g, but %s wants class numbers, which are whole", place.data, v,
                       range->loss);
    int64_t classes = (int64_t)range->max + 1;
    return err_set(e, ERR_INPUT, "%s: label %.0f, but the model's output has %" PRId64 " classes (0 to %" PRId64 ")%s",
                   place.data, v, classes, classes - 1, class_cure(r, range, v));
}

static int bad_index(const struct records *r, const struct index_range *range, int64_t record, size_t i, double v,
                     struct err *e)
{
    AUTO_FINI(buf) place = BUF_INIT;
    r->ops->place(r, record, RECORD_FEATURES, i, &place);
    if (v != floor(v))
        return err_set(e, ERR_INPUT, "%s: %.9g, but %s '%s' takes whole numbers", place.data, v, range->class_name,
                       range->layer);
    return err_set(e, ERR_INPUT, "%s: %.0f, but %s '%s' takes numbers from 0 to %" PRId64 ", its %s - 1", place.data, v,
                   range->class_name, range->layer, range->rows - 1, range->argument);
}

/* ---- a batch ---- */

static int check_indices(const struct records *r, const struct index_range *ranges, const int64_t *which, size_t n,
                         const void *x, struct err *e)
{
    const uint8_t *bytes = x;
    const float *floats = x;
    size_t count = shape_elements(&r->x);
    for (size_t i = 0; i < n * count; i++) {
        const struct index_range *range = &ranges[i % count];
        float v = r->x_type == DT_UINT8 ? (float)bytes[i] : floats[i];
        if (range->rows > 0 && !(v >= 0 && v < (float)range->rows && v == floorf(v)))
            return bad_index(r, range, which[i / count], i % count, (double)v, e);
    }
    return 0;
}

static int check_features(const struct records *r, const int64_t *which, size_t n, const float *x, struct err *e)
{
    size_t count = shape_elements(&r->x);
    if (kernel_all_finite(x, n * count))
        return 0;
    size_t i = 0;
    while (i < n * count && isfinite(x[i]))
        i++;
    return bad_feature(r, which[i / count], i % count, (double)x[i], e);
}

static int check_classes(const struct records *r, const struct label_range *range, const int64_t *which, size_t n,
                         const int32_t *y, struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (!accepts(range, y[i]))
            return bad_label(r, range, which[i], 0, y[i], e);
    return 0;
}

static int check_numbers(const struct records *r, const struct value_ranges *labels, const int64_t *which, size_t n,
                         const float *y, struct err *e)
{
    size_t count = shape_elements(&r->y);
    for (size_t i = 0; i < n * count; i++) {
        const struct label_range *range = &labels->range[labels->of != NULL ? labels->of[i % count] : 0];
        if (!accepts(range, (double)y[i]) || (range->classes && y[i] != floorf(y[i])))
            return bad_label(r, range, which[i / count], i % count, (double)y[i], e);
    }
    return 0;
}

int values_check(const struct records *r, const struct value_ranges *ranges, const int64_t *which, size_t n,
                 const struct batch_values *v, struct err *e)
{
    if (r->x_type == DT_FLOAT && check_features(r, which, n, v->x, e) < 0)
        return -1;
    if (ranges->indices != NULL && check_indices(r, ranges->indices, which, n, v->x, e) < 0)
        return -1;
    if (!r->has_labels)
        return 0;
    return r->integer_labels ? check_classes(r, ranges->range, which, n, v->y, e)
                             : check_numbers(r, ranges, which, n, v->y, e);
}

/* ---- what was noted at open ---- */

int values_check_class_size(const struct records *r, const struct label_range *labels, struct err *e)
{
    const struct label_span *s = &r->labels;
    AUTO_FINI(buf) place = BUF_INIT;
    bool large = s->max > INT32_MAX;
    if (!labels->classes || r->integer_labels || s->n == 0 || !s->whole || (!large && s->min >= INT32_MIN))
        return 0;
    r->ops->place(r, large ? s->max_at : s->min_at, RECORD_LABELS, 0, &place);
    return err_set(e, ERR_INPUT, "%s: label %.0f does not fit 32 bits, and %s wants class numbers", place.data,
                   large ? s->max : s->min, labels->loss);
}

int values_check_noted(const struct records *r, const struct label_range *labels, struct err *e)
{
    const struct label_span *s = &r->labels;
    if (s->n == 0)
        return 0;
    if (!accepts(labels, s->min))
        return bad_label(r, labels, s->min_at, 0, s->min, e);
    return accepts(labels, s->max) ? 0 : bad_label(r, labels, s->max_at, 0, s->max, e);
}
