/* Data sets of arrays: idx, npy and npz. Files are memory-mapped, and any record is found by its index. uint8 features
 * stay uint8; all other types become float. Records of an array in Fortran order are gathered (array_order.h); labels
 * and weights that are one number for each record are in C order, as npy_parse() says. */
#include "data/arrays.h"

#include <float.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "data/array_order.h"
#include "data/dtype_convert.h"
#include "data/npz.h"
#include "data/values.h"

enum { CHEAP_PASS_MAX = 64 << 20 }; /* bytes that are cheap to scan at open */
enum { CACHE_LINE = 64, ROWS_AHEAD = 2 };

struct arrays {
    struct records records;
    struct data_file x_file, y_file, w_file;
    struct array x, y, w;
    dtype_to_floats *x_floats, *y_floats, *w_floats;
    size_t x_count, y_count;   /* elements an example */
    size_t x_stride, y_stride; /* bytes an example */
};

int array_check_size(const struct array *a, size_t header_bytes, size_t n, const char *name, struct err *e)
{
    size_t count, bytes, whole;
    char shape[128];
    shape_text(&a->shape, shape);
    if (shape_count(&a->shape, &count, e) < 0 || size_mul(count, dtype_size(a->dtype), &bytes, e) < 0 ||
        size_add(bytes, header_bytes, &whole, e) < 0)
        return err_wrap(e, "%s: shape %s", name, shape);
    if (whole != n)
        return err_set(e, ERR_INPUT, "%s: has %zu bytes, but its header (%s of shape %s) needs %zu: %s", name, n,
                       dtype_name(a->dtype), shape, whole,
                       n < whole ? "the file is truncated, copy it again" : "there is data after the array");
    return 0;
}

int array_floats(const struct array *a, float *ret, struct err *e)
{
    dtype_to_floats *convert = dtype_float_converter(a->dtype, a->swap);
    if (convert == NULL)
        return err_set(e, ERR_INPUT, "its elements are of type %s; they must be real numbers", dtype_name(a->dtype));
    if (a->fortran)
        array_rows(a, NULL, (size_t)a->shape.dim[0], convert, ret);
    else
        convert(a->data, ret, shape_elements(&a->shape));
    return 0;
}

static void arrays_free(struct records *r)
{
    struct arrays *a = (struct arrays *)r;
    data_file_fini(&a->x_file);
    data_file_fini(&a->y_file);
    data_file_fini(&a->w_file);
    free(a);
}

/* Rows are anywhere in memory: their cache lines are prefetched some rows ahead. */
static inline void prefetch_row(const unsigned char *row, size_t bytes)
{
    for (size_t i = 0; i < bytes && i < 4096; i += CACHE_LINE)
        __builtin_prefetch(row + i);
}

static void read_labels(const struct arrays *a, const int64_t *which, size_t n, void *y)
{
    if (a->y.fortran) {
        array_rows(&a->y, which, n, a->y_floats, y);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const unsigned char *src = a->y.data + (size_t)which[i] * a->y_stride;
        if (a->records.integer_labels)
            ((int32_t *)y)[i] = (int32_t)dtype_to_int(a->y.dtype, a->y.swap, src);
        else
            a->y_floats(src, (float *)y + i * a->y_count, a->y_count);
    }
}

/* Labels of 32 bits and more may not fit; those that were scanned at open are known to fit. */
static int check_labels(const struct arrays *a, const int64_t *which, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)which[i] * a->y_stride;
        int64_t v = dtype_to_int(a->y.dtype, a->y.swap, a->y.data + at);
        if (v < INT32_MIN || v > INT32_MAX)
            return err_set(e, ERR_INPUT, "%s: record %lld, byte %zu: label %lld does not fit 32 bits", a->y_file.path,
                           (long long)which[i], (size_t)(a->y.data - a->y_file.map->data) + at, (long long)v);
    }
    return 0;
}

static int read_weights(const struct arrays *a, const int64_t *which, size_t n, float *w, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char *src = a->w.data + (size_t)which[i] * dtype_size(a->w.dtype);
        a->w_floats(src, w + i, 1);
        if (!(w[i] >= 0 && w[i] <= FLT_MAX))
            return err_set(e, ERR_INPUT, "%s: record %lld, byte %zu: a weight must be finite and 0 or more, not %g",
                           a->w_file.path, (long long)which[i], (size_t)(src - a->w_file.map->data), (double)w[i]);
    }
    return 0;
}

/* Bytes are copied as they are: exec converts and scales them in one pass. */
static void read_row(const struct arrays *a, int64_t record, void *x, size_t row)
{
    const unsigned char *src = a->x.data + (size_t)record * a->x_stride;
    if (a->records.x_type == DT_UINT8)
        memcpy((uint8_t *)x + row * a->x_stride, src, a->x_stride);
    else
        a->x_floats(src, (float *)x + row * a->x_count, a->x_count);
}

static void read_features(const struct arrays *a, const int64_t *which, size_t n, void *x)
{
    if (a->x.fortran) {
        array_rows(&a->x, which, n, a->records.x_type == DT_UINT8 ? NULL : a->x_floats, x);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (i + ROWS_AHEAD < n)
            prefetch_row(a->x.data + (size_t)which[i + ROWS_AHEAD] * a->x_stride, a->x_stride);
        read_row(a, which[i], x, i);
    }
}

static int arrays_read(const struct records *r, const int64_t *which, size_t n, void *x, void *y, float *w,
                       struct err *e)
{
    const struct arrays *a = (const struct arrays *)r;
    bool unseen = r->integer_labels && r->labels.n == 0 && dtype_size(a->y.dtype) >= 4;

    if (unseen && check_labels(a, which, n, e) < 0)
        return -1;
    read_features(a, which, n, x);
    if (r->has_labels)
        read_labels(a, which, n, y);
    return r->has_weights ? read_weights(a, which, n, w, e) : 0;
}

/* An example of one row has columns, another one the indexes of its axes. */
static void arrays_place(const struct records *r, int64_t record, enum record_part part, size_t i, struct buf *out)
{
    const struct arrays *a = (const struct arrays *)r;
    bool labels = part == RECORD_LABELS;
    const struct shape *all = labels ? &a->y.shape : &a->x.shape;
    size_t within = labels ? a->y_count : a->x_count, left = i;
    buf_printf(out, "%s: record %lld", labels ? a->y_file.path : a->x_file.path, (long long)record);
    if (all->rank == 2)
        buf_printf(out, ", column %zu", i);
    for (int axis = 1; all->rank > 2 && axis < all->rank; axis++) {
        within /= (size_t)all->dim[axis];
        buf_printf(out, "%s%zu", axis == 1 ? ", element (" : ", ", left / within);
        left %= within;
    }
    if (all->rank > 2)
        buf_char(out, ')');
}

/* Names the first integer of a row that a float cannot hold. */
static bool warn_rounded_row(const struct arrays *a, int64_t record, const unsigned char *row, struct strlist *ret)
{
    for (size_t i = 0; i < a->x_count; i++) {
        int64_t v = dtype_to_int(a->x.dtype, a->x.swap, row + i * dtype_size(a->x.dtype));
        if ((double)(float)v != (double)v) {
            values_warn_rounded(&a->records, record, i, (double)v, ret);
            return true;
        }
    }
    return false;
}

/* Integers that a float cannot hold: the first one is named, when a pass over them is cheap. */
static void warn_rounded(const struct arrays *a, struct strlist *ret)
{
    if (!dtype_is_integer(a->x.dtype) || dtype_size(a->x.dtype) < sizeof(float) ||
        (size_t)a->records.n * a->x_stride > CHEAP_PASS_MAX)
        return;
    auto_free unsigned char *gathered = a->x.fortran ? xmalloc(a->x_stride) : NULL;
    for (int64_t i = 0; i < a->records.n; i++) {
        if (a->x.fortran)
            array_rows(&a->x, &i, 1, NULL, gathered);
        if (warn_rounded_row(a, i, a->x.fortran ? gathered : a->x.data + (size_t)i * a->x_stride, ret))
            return;
    }
}

static void arrays_warn(const struct records *r, struct strlist *ret)
{
    warn_rounded((const struct arrays *)r, ret);
    values_warn_equal(r, "", ret);
}

static const struct records_ops ARRAYS_OPS = {
    .free = arrays_free, .read = arrays_read, .place = arrays_place, .warn = arrays_warn
};

/* One example's shape: without the first dimension; a column of numbers counts as examples of one. */
static struct shape example_shape(const struct array *a)
{
    return a->shape.rank > 1 ? shape_of(a->shape.rank - 1, a->shape.dim + 1) : shape_of(1, (int64_t[]){ 1 });
}

/* A file larger than this machine's memory is not read ahead, because rows are needed in random order. */
static void advise(const struct data_file *f)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0 && f->map->size / (size_t)page > (size_t)pages / 2)
        file_map_random(f->map);
}

static int open_array(const struct data_place *at, const char *key, const char *name, struct data_file *file,
                      struct array *ret, struct err *e)
{
    __typeof__(&idx_parse) parse = at->spec->format == DATA_IDX ? idx_parse : npy_parse;
    const void *bytes;
    size_t n;
    if (at->spec->format == DATA_NPZ) {
        if (npz_open(at, key, name, file, &bytes, &n, e) < 0)
            return -1;
    } else {
        if (data_file_open(at, key, name, file, e) < 0)
            return -1;
        bytes = file->map->data;
        n = file->map->size;
    }
    if (parse(bytes, n, file->path, ret, e) < 0)
        return -1;
    if (dtype_float_converter(ret->dtype, ret->swap) == NULL)
        return err_set(e, ERR_INPUT, "%s: %s elements are not supported", file->path, dtype_name(ret->dtype));
    advise(file);
    return 0;
}

static int open_features(const struct data_place *at, struct arrays *a, struct err *e)
{
    if (at->spec->features == NULL)
        return data_error(at, "features", e, "is missing: the %s with the examples",
                          at->spec->format == DATA_NPZ ? "array" : "file");
    if (open_array(at, "features", at->spec->features, &a->x_file, &a->x, e) < 0)
        return -1;
    if (a->x.shape.dim[0] < 1)
        return err_set(e, ERR_INPUT, "%s: holds no examples", a->x_file.path);

    struct records *r = &a->records;
    r->n = a->x.shape.dim[0];
    r->x = example_shape(&a->x);
    r->x_type = a->x.dtype == DT_UINT8 ? DT_UINT8 : DT_FLOAT;
    a->x_count = shape_elements(&r->x);
    a->x_stride = a->x_count * dtype_size(a->x.dtype);
    a->x_floats = dtype_float_converter(a->x.dtype, a->x.swap);
    if (a->x_count == 0)
        return err_set(e, ERR_INPUT, "%s: examples are empty (a dimension is 0)", a->x_file.path);
    return 0;
}

/* When a pass over the labels is cheap. Also finds those that int32 cannot hold. */
static int survey_labels(struct arrays *a, struct err *e)
{
    struct records *r = &a->records;
    struct label_span span = { .n = 0 };
    if (a->y_count != 1 || (size_t)r->n * a->y_stride > CHEAP_PASS_MAX)
        return 0;
    for (int64_t i = 0; i < r->n; i++) {
        float number = 0;
        int32_t class = 0;
        if (r->integer_labels && dtype_size(a->y.dtype) >= 4 && check_labels(a, &i, 1, e) < 0)
            return -1;
        read_labels(a, &i, 1, r->integer_labels ? (void *)&class : &number);
        label_span_add(&span, r->integer_labels ? class : (double)number, i);
    }
    r->labels = span;
    return 0;
}

static int open_labels(const struct data_place *at, struct arrays *a, struct err *e)
{
    struct records *r = &a->records;
    if (open_array(at, "labels", at->spec->labels, &a->y_file, &a->y, e) < 0)
        return -1;
    if (a->y.shape.dim[0] != r->n)
        return err_set(e, ERR_INPUT, "%s: %lld labels, but %s has %lld examples", a->y_file.path,
                       (long long)a->y.shape.dim[0], a->x_file.path, (long long)r->n);

    r->has_labels = true;
    r->y = example_shape(&a->y);
    a->y_count = shape_elements(&r->y);
    a->y_stride = a->y_count * dtype_size(a->y.dtype);
    a->y_floats = dtype_float_converter(a->y.dtype, a->y.swap);
    if (a->y_count == 0)
        return err_set(e, ERR_INPUT, "%s: labels are empty (a dimension is 0)", a->y_file.path);
    r->integer_labels = dtype_is_integer(a->y.dtype) && a->y_count == 1;
    if (r->integer_labels)
        r->y = shape_of(0, NULL);
    return survey_labels(a, e);
}

static int open_weights(const struct data_place *at, struct arrays *a, struct err *e)
{
    struct records *r = &a->records;
    char shape[128];
    if (open_array(at, "sampleWeight", at->spec->sample_weight, &a->w_file, &a->w, e) < 0)
        return -1;
    struct shape one = example_shape(&a->w);
    if (shape_elements(&one) != 1)
        return err_set(e, ERR_INPUT, "%s: has shape %s; weights are one number for each example", a->w_file.path,
                       shape_text(&a->w.shape, shape));
    if (a->w.shape.dim[0] != r->n)
        return err_set(e, ERR_INPUT, "%s: %lld weights, but %s has %lld examples", a->w_file.path,
                       (long long)a->w.shape.dim[0], a->x_file.path, (long long)r->n);
    r->has_weights = true;
    a->w_floats = dtype_float_converter(a->w.dtype, a->w.swap);
    bool cheap = (size_t)r->n * dtype_size(a->w.dtype) <= CHEAP_PASS_MAX; /* else they are checked when they are read */
    for (int64_t i = 0; cheap && i < r->n; i++)
        if (read_weights(a, &i, 1, &(float){ 0 }, e) < 0)
            return -1;
    return 0;
}

int arrays_open(const struct data_place *at, struct records **ret, struct err *e)
{
    struct arrays *a = xcalloc(1, sizeof(*a));
    AUTO(records) *r = &a->records;
    r->ops = &ARRAYS_OPS;
    r->random_access = true;

    if (open_features(at, a, e) < 0)
        return -1;
    if ((at->spec->labels != NULL && open_labels(at, a, e) < 0) ||
        (at->spec->sample_weight != NULL && open_weights(at, a, e) < 0))
        return -1;
    r->fingerprint = hash64_mix(a->x_file.fingerprint, r->has_labels ? a->y_file.fingerprint : 0);
    if (r->has_weights)
        r->fingerprint = hash64_mix(r->fingerprint, a->w_file.fingerprint);
    *ret = TAKE(r);
    return 0;
}
