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

struct array_part { /* an array whose rows are a part of the examples' */
    char *name;     /* of the input or output; NULL: it is the only part */
    struct data_file file;
    struct array a;
    dtype_to_floats *floats;
    size_t at;     /* its first element in the row of an example */
    size_t count;  /* elements an example */
    size_t stride; /* bytes an example */
};

struct array_side { /* the features, or the labels */
    struct array_part *part;
    size_t n, count; /* count: elements an example, of all parts */
};

struct arrays {
    struct records records;
    struct array_side x, y;
    struct array_part w;
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

static void side_fini(struct array_side *s)
{
    for (size_t i = 0; i < s->n; i++) {
        data_file_fini(&s->part[i].file);
        free(s->part[i].name);
    }
    free(s->part);
}

static void arrays_free(struct records *r)
{
    struct arrays *a = (struct arrays *)r;
    side_fini(&a->x);
    side_fini(&a->y);
    data_file_fini(&a->w.file);
    free(a);
}

/* Rows are anywhere in memory: their cache lines are prefetched some rows ahead. */
static inline void prefetch_row(const unsigned char *row, size_t bytes)
{
    for (size_t i = 0; i < bytes && i < 4096; i += CACHE_LINE)
        __builtin_prefetch(row + i);
}

/* Rows of `width` floats, of which p fills its part. */
static void read_part(const struct array_part *p, const int64_t *which, size_t n, float *rows, size_t width)
{
    if (p->a.fortran && p->count == width) {
        array_rows(&p->a, which, n, p->floats, rows);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        float *to = rows + i * width + p->at;
        if (p->a.fortran) {
            array_rows(&p->a, &which[i], 1, p->floats, to);
            continue;
        }
        if (i + ROWS_AHEAD < n)
            prefetch_row(p->a.data + (size_t)which[i + ROWS_AHEAD] * p->stride, p->stride);
        p->floats(p->a.data + (size_t)which[i] * p->stride, to, p->count);
    }
}

static void read_parts(const struct array_side *s, const int64_t *which, size_t n, float *rows)
{
    for (size_t i = 0; i < s->n; i++)
        read_part(&s->part[i], which, n, rows, s->count);
}

/* Class numbers, which are in C order. */
static void read_classes(const struct array_part *p, const int64_t *which, size_t n, int32_t *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (int32_t)dtype_to_int(p->a.dtype, p->a.swap, p->a.data + (size_t)which[i] * p->stride);
}

static void read_labels(const struct arrays *a, const int64_t *which, size_t n, void *y)
{
    if (a->records.integer_labels)
        read_classes(&a->y.part[0], which, n, y);
    else
        read_parts(&a->y, which, n, y);
}

/* Labels of 32 bits and more may not fit; those that were scanned at open are known to fit. */
static int check_labels(const struct arrays *a, const int64_t *which, size_t n, struct err *e)
{
    const struct array_part *p = &a->y.part[0];
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)which[i] * p->stride;
        int64_t v = dtype_to_int(p->a.dtype, p->a.swap, p->a.data + at);
        if (v < INT32_MIN || v > INT32_MAX)
            return err_set(e, ERR_INPUT, "%s: record %lld, byte %zu: label %lld does not fit 32 bits", p->file.path,
                           (long long)which[i], (size_t)(p->a.data - p->file.map->data) + at, (long long)v);
    }
    return 0;
}

static int read_weights(const struct arrays *a, const int64_t *which, size_t n, float *w, struct err *e)
{
    const struct array_part *p = &a->w;
    for (size_t i = 0; i < n; i++) {
        const unsigned char *src = p->a.data + (size_t)which[i] * p->stride;
        p->floats(src, w + i, 1);
        if (!(w[i] >= 0 && w[i] <= FLT_MAX))
            return err_set(e, ERR_INPUT, "%s: record %lld, byte %zu: a weight must be finite and 0 or more, not %g",
                           p->file.path, (long long)which[i], (size_t)(src - p->file.map->data), (double)w[i]);
    }
    return 0;
}

/* Bytes are copied as they are: exec converts and scales them in one pass. */
static void read_bytes(const struct array_part *p, const int64_t *which, size_t n, uint8_t *x)
{
    if (p->a.fortran) {
        array_rows(&p->a, which, n, NULL, x);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (i + ROWS_AHEAD < n)
            prefetch_row(p->a.data + (size_t)which[i + ROWS_AHEAD] * p->stride, p->stride);
        memcpy(x + i * p->stride, p->a.data + (size_t)which[i] * p->stride, p->stride);
    }
}

static void read_features(const struct arrays *a, const int64_t *which, size_t n, void *x)
{
    if (a->records.x_type == DT_UINT8)
        read_bytes(&a->x.part[0], which, n, x);
    else
        read_parts(&a->x, which, n, x);
}

static int arrays_read(const struct records *r, const int64_t *which, size_t n, void *x, void *y, float *w,
                       struct err *e)
{
    const struct arrays *a = (const struct arrays *)r;
    bool unseen = r->integer_labels && r->labels.n == 0 && dtype_size(a->y.part[0].a.dtype) >= 4;

    if (unseen && check_labels(a, which, n, e) < 0)
        return -1;
    read_features(a, which, n, x);
    if (r->has_labels)
        read_labels(a, which, n, y);
    return r->has_weights ? read_weights(a, which, n, w, e) : 0;
}

/* The part that number *i of a row is in; *i becomes its number there. */
static const struct array_part *find_part(const struct array_side *s, size_t *i)
{
    const struct array_part *p = s->part;
    while (p < s->part + s->n - 1 && *i >= p->at + p->count)
        p++;
    *i -= p->at;
    return p;
}

/* An example of one row has columns, another one the indexes of its axes. */
static void arrays_place(const struct records *r, int64_t record, enum record_part part, size_t i, struct buf *out)
{
    const struct arrays *a = (const struct arrays *)r;
    const struct array_part *p = find_part(part == RECORD_LABELS ? &a->y : &a->x, &i);
    const struct shape *all = &p->a.shape;
    size_t within = p->count, left = i;
    buf_printf(out, "%s: record %lld", p->file.path, (long long)record);
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
static bool warn_rounded_row(const struct arrays *a, const struct array_part *p, int64_t record,
                             const unsigned char *row, struct strlist *ret)
{
    for (size_t i = 0; i < p->count; i++) {
        int64_t v = dtype_to_int(p->a.dtype, p->a.swap, row + i * dtype_size(p->a.dtype));
        if ((double)(float)v != (double)v) {
            values_warn_rounded(&a->records, record, p->at + i, (double)v, ret);
            return true;
        }
    }
    return false;
}

/* Integers that a float cannot hold: the first one is named, when a pass over them is cheap. */
static void warn_rounded(const struct arrays *a, const struct array_part *p, struct strlist *ret)
{
    if (!dtype_is_integer(p->a.dtype) || dtype_size(p->a.dtype) < sizeof(float) ||
        (size_t)a->records.n * p->stride > CHEAP_PASS_MAX)
        return;
    auto_free unsigned char *gathered = p->a.fortran ? xmalloc(p->stride) : NULL;
    for (int64_t i = 0; i < a->records.n; i++) {
        if (p->a.fortran)
            array_rows(&p->a, &i, 1, NULL, gathered);
        if (warn_rounded_row(a, p, i, p->a.fortran ? gathered : p->a.data + (size_t)i * p->stride, ret))
            return;
    }
}

static void arrays_warn(const struct records *r, struct strlist *ret)
{
    const struct arrays *a = (const struct arrays *)r;
    for (size_t i = 0; i < a->x.n; i++)
        warn_rounded(a, &a->x.part[i], ret);
    values_warn_equal(r, NOTHING_TO_LEARN, ret);
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

static int open_part(const struct data_place *at, const char *key, const char *name, struct array_part *p,
                     struct err *e)
{
    __typeof__(&idx_parse) parse = at->spec->format == DATA_IDX ? idx_parse : npy_parse;
    const void *bytes;
    size_t n;
    if (at->spec->format == DATA_NPZ) {
        if (npz_open(at, key, name, &p->file, &bytes, &n, e) < 0)
            return -1;
    } else {
        if (data_file_open(at, key, name, &p->file, e) < 0)
            return -1;
        bytes = p->file.map->data;
        n = p->file.map->size;
    }
    if (parse(bytes, n, p->file.path, &p->a, e) < 0)
        return -1;
    p->floats = dtype_float_converter(p->a.dtype, p->a.swap);
    if (p->floats == NULL)
        return err_set(e, ERR_INPUT, "%s: %s elements are not supported", p->file.path, dtype_name(p->a.dtype));
    struct shape one = example_shape(&p->a);
    p->count = shape_elements(&one);
    p->stride = p->count * dtype_size(p->a.dtype);
    advise(&p->file);
    return 0;
}

/* One array, or those of a map one after the other. what: "examples", "labels". */
static int open_side(const struct data_place *at, const char *key, const char *name, const struct data_parts *parts,
                     struct array_side *s, struct err *e)
{
    const char *what = str_eq(key, "labels") ? "labels" : "examples";
    size_t n = MAX(parts->n, 1);
    s->part = xcalloc(n, sizeof(s->part[0]));
    for (size_t i = 0; i < n; i++) {
        struct array_part *p = &s->part[i];
        s->n = i + 1;
        if (parts->n > 0)
            p->name = xstrdup(parts->v[i].name);
        if (open_part(at, key, parts->n > 0 ? parts->v[i].from.items[0] : name, p, e) < 0)
            return -1;
        if (p->count == 0)
            return err_set(e, ERR_INPUT, "%s: %s are empty (a dimension is 0)", p->file.path, what);
        if (p->a.shape.dim[0] != s->part[0].a.shape.dim[0])
            return err_set(e, ERR_INPUT, "%s: %lld %s, but %s has %lld", p->file.path, (long long)p->a.shape.dim[0],
                           what, s->part[0].file.path, (long long)s->part[0].a.shape.dim[0]);
        p->at = s->count;
        if (size_add(s->count, p->count, &s->count, e) < 0)
            return -1;
    }
    return 0;
}

static struct record_fields side_fields(const struct array_side *s)
{
    struct record_fields ret = { .v = xcalloc(s->n, sizeof(ret.v[0])) };
    for (size_t i = 0; i < s->n && s->part[i].name != NULL; i++)
        ret.v[ret.n++] =
            (struct record_field){ .name = s->part[i].name,
                                   .at = s->part[i].at,
                                   .shape = example_shape(&s->part[i].a),
                                   .integer = dtype_is_integer(s->part[i].a.dtype) && s->part[i].count == 1 };
    return ret;
}

static struct shape side_shape(const struct array_side *s)
{
    return s->n == 1 ? example_shape(&s->part[0].a) : shape_of(1, (int64_t[]){ (int64_t)s->count });
}

static int open_features(const struct data_place *at, struct arrays *a, struct err *e)
{
    const struct data_parts *parts = &at->spec->inputs;
    struct records *r = &a->records;
    if (at->spec->features == NULL && parts->n == 0)
        return data_error(at, "features", e, "is missing: the %s with the examples",
                          at->spec->format == DATA_NPZ ? "array" : "file");
    if (open_side(at, "features", at->spec->features, parts, &a->x, e) < 0)
        return -1;
    r->n = a->x.part[0].a.shape.dim[0];
    if (r->n < 1)
        return err_set(e, ERR_INPUT, "%s: holds no examples", a->x.part[0].file.path);
    r->x = side_shape(&a->x);
    r->x_type = a->x.n == 1 && a->x.part[0].a.dtype == DT_UINT8 ? DT_UINT8 : DT_FLOAT;
    r->x_fields = side_fields(&a->x);
    return 0;
}

/* When a pass over the labels is cheap. Also finds those that int32 cannot hold. */
static int survey_labels(struct arrays *a, struct err *e)
{
    struct records *r = &a->records;
    const struct array_part *p = &a->y.part[0];
    struct label_span span = { .n = 0 };
    if (a->y.count != 1 || (size_t)r->n * p->stride > CHEAP_PASS_MAX)
        return 0;
    for (int64_t i = 0; i < r->n; i++) {
        float number = 0;
        int32_t class = 0;
        if (r->integer_labels && dtype_size(p->a.dtype) >= 4 && check_labels(a, &i, 1, e) < 0)
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
    const struct data_parts *parts = &at->spec->outputs;
    if (at->spec->labels == NULL && parts->n == 0)
        return 0;
    if (open_side(at, "labels", at->spec->labels, parts, &a->y, e) < 0)
        return -1;
    const struct array_part *p = &a->y.part[0];
    if (p->a.shape.dim[0] != r->n)
        return err_set(e, ERR_INPUT, "%s: %lld labels, but %s has %lld examples", p->file.path,
                       (long long)p->a.shape.dim[0], a->x.part[0].file.path, (long long)r->n);

    r->has_labels = true;
    r->y = side_shape(&a->y);
    r->y_fields = side_fields(&a->y);
    r->integer_labels = dtype_is_integer(p->a.dtype) && a->y.count == 1;
    if (r->integer_labels)
        r->y = shape_of(0, NULL);
    return survey_labels(a, e);
}

static int open_weights(const struct data_place *at, struct arrays *a, struct err *e)
{
    struct records *r = &a->records;
    const struct array_part *p = &a->w;
    char shape[128];
    if (at->spec->sample_weight == NULL)
        return 0;
    if (open_part(at, "sampleWeight", at->spec->sample_weight, &a->w, e) < 0)
        return -1;
    if (p->count != 1)
        return err_set(e, ERR_INPUT, "%s: has shape %s; weights are one number for each example", p->file.path,
                       shape_text(&p->a.shape, shape));
    if (p->a.shape.dim[0] != r->n)
        return err_set(e, ERR_INPUT, "%s: %lld weights, but %s has %lld examples", p->file.path,
                       (long long)p->a.shape.dim[0], a->x.part[0].file.path, (long long)r->n);
    r->has_weights = true;
    bool cheap = (size_t)r->n * p->stride <= CHEAP_PASS_MAX; /* else they are checked when they are read */
    for (int64_t i = 0; cheap && i < r->n; i++)
        if (read_weights(a, &i, 1, &(float){ 0 }, e) < 0)
            return -1;
    return 0;
}

/* Of one array its own fingerprint, so that caches and runs stay valid. */
static uint64_t side_fingerprint(const struct array_side *s)
{
    uint64_t h = s->n > 0 ? s->part[0].file.fingerprint : 0;
    for (size_t i = 1; i < s->n; i++)
        h = hash64_mix(h, s->part[i].file.fingerprint);
    return h;
}

int arrays_open(const struct data_place *at, struct records **ret, struct err *e)
{
    struct arrays *a = xcalloc(1, sizeof(*a));
    AUTO(records) *r = &a->records;
    r->ops = &ARRAYS_OPS;
    r->random_access = true;

    if (open_features(at, a, e) < 0 || open_labels(at, a, e) < 0 || open_weights(at, a, e) < 0)
        return -1;
    r->fingerprint = hash64_mix(side_fingerprint(&a->x), side_fingerprint(&a->y));
    if (r->has_weights)
        r->fingerprint = hash64_mix(r->fingerprint, a->w.file.fingerprint);
    *ret = TAKE(r);
    return 0;
}
