/* Reads the examples of a data set in their order, a chunk at a time, and updates the statistics of its numbers and the
 * counts of its classes. Nothing of an example is kept, except of the first ones. */
#include "data/describe.h"

#include <math.h>

#include "data/dataset_internal.h"
#include "data/describe_internal.h"
#include "data/values.h"

enum { CHUNK_MAX = 256, CHUNK_BYTES = 4 << 20 };

void moments_add(struct moments *m, double v)
{
    double from = v - m->mean;
    m->min = m->n == 0 ? v : fmin(m->min, v);
    m->max = m->n == 0 ? v : fmax(m->max, v);
    m->n++;
    m->mean += from / (double)m->n;
    m->squares += from * (v - m->mean);
}

double moments_std(const struct moments *m)
{
    return sqrt(m->squares / (double)(m->n - 1));
}

void data_description_fini(struct data_description *d)
{
    for (size_t i = 0; i < d->n; i++) {
        for (size_t k = 0; k < d->columns[i].ntop; k++)
            free(d->columns[i].top[k].text);
        free(d->columns[i].name);
    }
    free(d->columns);
    free(d->classes);
    free(d->x);
    free(d->y);
    strlist_fini(&d->class_names);
    *d = (struct data_description){ .n = 0 };
}

/* ---- the pass ---- */

struct example_chunk {
    const struct records *r;
    struct read_team *team;
    size_t x_count, y_count;
    size_t rows, n; /* that fit, and that are read */
    void *x, *y, *w, *which;
};

static void example_chunk_fini(struct example_chunk *c)
{
    free(c->x);
    free(c->y);
    free(c->w);
    free(c->which);
}
DEFINE_AUTO_FINI(example_chunk, example_chunk_fini);

static int chunk_init(struct example_chunk *c, const struct dataset *d, struct err *e)
{
    const struct records *r = c->r = dataset_records(d);
    size_t bytes, y_bytes;
    c->team = dataset_team(d);
    c->x_count = shape_elements(&r->x);
    c->y_count = r->has_labels ? shape_elements(&r->y) : 0;
    c->rows = MIN(MAX(CHUNK_BYTES / (MAX(c->x_count + c->y_count, 1) * sizeof(float)), 1), CHUNK_MAX);
    if (size_mul(c->rows * dtype_size(r->x_type), c->x_count, &bytes, e) < 0 ||
        size_mul(c->rows * sizeof(float), c->y_count, &y_bytes, e) < 0)
        return -1;
    return mem_alloc(bytes, "examples", &c->x, e) < 0 || mem_alloc(y_bytes, "labels", &c->y, e) < 0 ||
                   mem_alloc(c->rows * sizeof(float), "weights", &c->w, e) < 0 ||
                   mem_alloc(c->rows * sizeof(int64_t), "a chunk", &c->which, e) < 0
               ? -1
               : 0;
}

/* The n records `which`. */
static int chunk_read(struct example_chunk *c, size_t n, struct err *e)
{
    const struct read_rows rows = {
        .which = c->which, .n = n, .x = c->x, .y = c->y_count > 0 ? c->y : NULL, .w = c->r->has_weights ? c->w : NULL
    };
    const struct label_range any = label_range_any();
    const struct value_ranges ranges = { .range = &any };
    c->n = n;
    int rc = c->team != NULL ? read_team_read(c->team, &rows, e)
                             : c->r->ops->read(c->r, rows.which, n, rows.x, rows.y, rows.w, e);
    if (rc < 0)
        return -1;
    return values_check(c->r, &ranges, rows.which, n, &(struct batch_values){ .x = rows.x, .y = rows.y }, e);
}

static double chunk_x(const struct example_chunk *c, size_t i)
{
    return c->r->x_type == DT_UINT8 ? (double)((const uint8_t *)c->x)[i] : (double)((const float *)c->x)[i];
}

static double chunk_y(const struct example_chunk *c, size_t i)
{
    return c->r->integer_labels ? (double)((const int32_t *)c->y)[i] : (double)((const float *)c->y)[i];
}

/* ---- columns of examples ---- */

static struct described_column *describe_add(struct data_description *ret, const char *role, const char *name,
                                             const char *type)
{
    struct described_column *c = &ret->columns[ret->n++];
    *c = (struct described_column){
        .name = xstrdup(name), .role = role, .type = type, .missing = -1, .has_numbers = true
    };
    return c;
}

/* A row for each part of the features and labels, and for the weights. */
static void describe_parts(const struct records *r, struct data_description *ret)
{
    const char *type = dtype_name(r->x_type), *y_type = r->integer_labels ? "int" : "float32";
    ret->columns = xcalloc(r->x_fields.n + r->y_fields.n + 3, sizeof(*ret->columns));
    for (size_t i = 0; i < r->x_fields.n; i++)
        describe_add(ret, "feature", r->x_fields.v[i].name, type);
    if (r->x_fields.n == 0)
        describe_add(ret, "feature", "features", type);
    for (size_t i = 0; i < r->y_fields.n; i++)
        describe_add(ret, "label", r->y_fields.v[i].name, y_type);
    if (r->has_labels && r->y_fields.n == 0)
        describe_add(ret, "label", "labels", y_type);
    if (r->has_weights)
        describe_add(ret, "weight", "weights", "float32");
}

static void describe_take(struct described_column *to, double v)
{
    moments_add(&to->numbers, v);
    to->count++;
}

/* Example `row` of the chunk, its features or labels. `to`: the first of their columns. Returns the column behind. */
static struct described_column *describe_row(const struct example_chunk *c, size_t row, bool labels,
                                             struct described_column *to)
{
    double (*value)(const struct example_chunk *, size_t) = labels ? chunk_y : chunk_x;
    const struct record_fields *f = labels ? &c->r->y_fields : &c->r->x_fields;
    size_t count = labels ? c->y_count : c->x_count;
    for (size_t i = 0; f->n == 0 && i < count; i++)
        describe_take(to, value(c, row * count + i));
    for (size_t k = 0; k < f->n; k++)
        for (size_t i = 0, n = shape_elements(&f->v[k].shape); i < n; i++)
            describe_take(&to[k], value(c, row * count + f->v[k].at + i));
    return to + MAX(f->n, 1);
}

static void describe_take_chunk(const struct example_chunk *c, bool columns, int64_t *classes,
                                struct data_description *ret)
{
    for (size_t row = 0; row < c->n; row++) {
        struct described_column *to = columns ? describe_row(c, row, false, ret->columns) : NULL;
        if (columns && c->y_count > 0)
            to = describe_row(c, row, true, to);
        if (columns && c->r->has_weights)
            describe_take(to, (double)((const float *)c->w)[row]);
        if (!c->r->integer_labels)
            continue;
        int32_t label = ((const int32_t *)c->y)[row];
        if (label >= 0 && label < DESCRIBE_CLASSES_MAX)
            classes[label]++;
        else
            ret->other_classes++;
    }
}

static void describe_classes(const int64_t *counts, struct data_description *ret)
{
    ret->classes = xcalloc(DESCRIBE_CLASSES_MAX, sizeof(*ret->classes));
    for (int64_t i = 0; i < DESCRIBE_CLASSES_MAX; i++)
        if (counts[i] > 0)
            ret->classes[ret->nclasses++] = (struct described_class){ .value = i, .n = counts[i] };
}

/* The first records, or with `spread` those at equal distances. */
static int describe_examples(const struct dataset *d, struct example_chunk *c, bool columns,
                             struct data_description *ret, struct err *e)
{
    auto_free int64_t *classes = xcalloc(DESCRIBE_CLASSES_MAX, sizeof(*classes));
    double step = ret->spread ? (double)ret->examples / (double)ret->seen : 1;
    for (int64_t at = 0; at < ret->seen; at += (int64_t)c->n) {
        size_t n = (size_t)MIN((int64_t)c->rows, ret->seen - at);
        for (size_t i = 0; i < n; i++)
            ((int64_t *)c->which)[i] = dataset_first(d) + (int64_t)((double)(at + (int64_t)i) * step);
        if (chunk_read(c, n, e) < 0)
            return -1;
        describe_take_chunk(c, columns, classes, ret);
    }
    describe_classes(classes, ret);
    return 0;
}

static int describe_first(const struct dataset *d, struct example_chunk *c, struct data_description *ret, struct err *e)
{
    size_t bytes, y_bytes;
    void *x, *y;
    if (size_mul(ret->nfirst * sizeof(float), c->x_count, &bytes, e) < 0 ||
        size_mul(ret->nfirst * sizeof(float), c->y_count, &y_bytes, e) < 0 ||
        mem_alloc(bytes, "the first examples", &x, e) < 0)
        return -1;
    ret->x = x;
    if (mem_alloc(y_bytes, "the first labels", &y, e) < 0)
        return -1;
    ret->y = y;
    for (size_t at = 0; at < ret->nfirst; at += c->n) {
        size_t n = MIN(c->rows, ret->nfirst - at);
        for (size_t i = 0; i < n; i++)
            ((int64_t *)c->which)[i] = dataset_first(d) + (int64_t)(at + i);
        if (chunk_read(c, n, e) < 0)
            return -1;
        for (size_t i = 0; i < n * c->x_count; i++)
            ret->x[at * c->x_count + i] = (float)chunk_x(c, i);
        for (size_t i = 0; i < n * c->y_count; i++)
            ret->y[at * c->y_count + i] = (float)chunk_y(c, i);
    }
    return 0;
}

static void describe_sizes(const struct dataset *d, const struct example_chunk *c, const struct describe_options *o,
                           struct data_description *ret)
{
    int64_t limit = o->limit;
    if (limit == 0)
        limit = c->r->cost == READ_DECODES ? DESCRIBE_DECODED_MAX : INT64_MAX;
    ret->examples = dataset_size(d);
    ret->seen = MIN(ret->examples, limit);
    ret->spread = c->r->random_access && ret->seen < ret->examples;
    ret->nfirst = (size_t)MIN((int64_t)o->first, ret->examples);
    ret->x_count = c->x_count;
    ret->y_count = c->y_count;
    ret->is_uint8 = c->r->x_type == DT_UINT8;
    ret->has_labels = c->r->has_labels;
    ret->integer_labels = c->r->integer_labels;
    ret->y_shape = c->r->y;
    for (size_t i = 0; i < c->r->names.classes.n; i++)
        strlist_add(&ret->class_names, c->r->names.classes.items[i]);
}

int describe_dataset(const struct dataset *d, const struct describe_options *o, struct data_description *ret,
                     struct err *e)
{
    AUTO_FINI(example_chunk) c = { .r = NULL };
    bool has_fields = data_has_fields(o->spec->format);
    if (chunk_init(&c, d, e) < 0)
        return -1;
    describe_sizes(d, &c, o, ret);
    if (!has_fields)
        describe_parts(c.r, ret);
    else if (describe_csv(o, o->limit, ret, e) < 0)
        return -1;
    if ((!has_fields || ret->integer_labels) && describe_examples(d, &c, !has_fields, ret, e) < 0)
        return -1;
    return describe_first(d, &c, ret, e);
}
