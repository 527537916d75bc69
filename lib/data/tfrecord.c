/* TFRecord files of tf.Example and tf.SequenceExample: u64le length, u32le masked CRC-32C of it, the message, u32le
 * masked CRC-32C of that (tensorflow/core/lib/io/record_writer.h). The index pass hops from length to length; the CRC
 * of a message is checked whenever it is read. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "codec/crc32c.h"
#include "data/example.h"
#include "data/file_kind.h"
#include "data/indexed.h"

enum { RECORD_HEAD = 12, RECORD_TAIL = 4 };
enum { EXAMPLE_SMALL = 1 << 16 }; /* numbers */

struct tfrecord {
    struct records records;
    struct data_columns columns;
    struct example_plan plan;
    struct indexed indexed;
    size_t label_count;
};

static void tfrecord_free(struct records *r)
{
    struct tfrecord *t = (struct tfrecord *)r;
    indexed_fini(&t->indexed);
    columns_fini(&t->columns);
    free(t);
}

static int error_at(const struct data_file *f, int64_t record, const unsigned char *p, struct err *e, const char *what)
{
    return err_set(e, ERR_INPUT, "%s: record %lld at byte %td: %s", f->path, (long long)record, p - f->map->data, what);
}

static uint32_t load_u32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

bool tfrecord_is(const void *data, size_t n)
{
    const unsigned char *p = data;
    return n >= RECORD_HEAD && crc32c_mask(crc32c(0, p, sizeof(uint64_t))) == load_u32(p + sizeof(uint64_t));
}

/* The message of the record at *p, its CRC is not verified yet. */
static int take_record(const struct data_file *f, int64_t record, const unsigned char **p, const unsigned char **ret,
                       size_t *ret_size, struct err *e)
{
    size_t left = (size_t)(f->map->data + f->map->size - *p);
    uint64_t length;
    if (left < RECORD_HEAD)
        return error_at(f, record, *p, e, "the file ends within the record, copy it again");
    memcpy(&length, *p, sizeof(length));
    if (!tfrecord_is(*p, left))
        return error_at(f, record, *p, e,
                        "its length is damaged (the CRC-32C differs), or this is not a TFRecord file");
    left -= RECORD_HEAD;
    if (left < RECORD_TAIL || length > left - RECORD_TAIL)
        return error_at(f, record, *p, e, "the file ends within the record, copy it again");
    *ret = *p + RECORD_HEAD;
    *ret_size = (size_t)length;
    *p += RECORD_HEAD + (size_t)length + RECORD_TAIL;
    return 0;
}

static int tfrecord_begin(void *user UNUSED, const struct data_file *f, const unsigned char **ret, struct err *e)
{
    *ret = f->map->data;
    return file_kind_check(f->map->data, f->map->size, f->path, "tfrecord", e);
}

static int tfrecord_skip(const void *user UNUSED, const struct data_file *f, int64_t record, const unsigned char **p,
                         struct err *e)
{
    const unsigned char *message;
    size_t size;
    return take_record(f, record, p, &message, &size, e);
}

static int tfrecord_survey(void *user, const struct data_file *f, int64_t record, const unsigned char **p,
                           struct index_notes *notes UNUSED, struct err *e)
{
    if (*p == f->map->data + f->map->size)
        return 0;
    return tfrecord_skip(user, f, record, p, e) < 0 ? -1 : 1;
}

static int tfrecord_decode(const void *user, const struct data_file *f, int64_t record, const unsigned char **p,
                           float *x, void *y, float *w, struct err *e)
{
    const struct tfrecord *t = user;
    const unsigned char *start = *p, *message;
    size_t size;
    if (take_record(f, record, p, &message, &size, e) < 0)
        return -1;
    if (crc32c_mask(crc32c(0, message, size)) != load_u32(message + size))
        return error_at(f, record, start, e, "its content is damaged (the CRC-32C differs)");
    if (example_decode(&t->plan, message, size, x, y, w, e) < 0)
        return err_wrap(e, "%s: record %lld at byte %td", f->path, (long long)record, start - f->map->data);
    if (t->columns.weighted && !(*w >= 0 && *w <= FLT_MAX))
        return err_set(e, ERR_INPUT, "%s: record %lld at byte %td: its weight must be finite and 0 or more, not %g",
                       f->path, (long long)record, start - f->map->data, (double)*w);
    return 0;
}

static int tfrecord_read(const struct records *r, const int64_t *which, size_t n, void *x, void *y, float *w,
                         struct err *e)
{
    const struct tfrecord *t = (const struct tfrecord *)r;
    return indexed_read(&t->indexed, which, n, x, t->columns.features, y, t->label_count, w, e);
}

static void tfrecord_place(const struct records *r, int64_t record, enum record_part part, size_t i, struct buf *out)
{
    const struct tfrecord *t = (const struct tfrecord *)r;
    const struct data_column *c = columns_find(&t->columns, part == RECORD_LABELS, i);
    const struct indexed_file *f;
    const unsigned char *start;
    struct err ignored;
    if (indexed_find(&t->indexed, record, &f, &start, &ignored) == 0)
        buf_printf(out, "%s: record %lld at byte %td", f->file.path, (long long)(record - f->first),
                   start - f->file.map->data);
    if (c != NULL)
        buf_printf(out, ": feature '%s'", c->name);
    if (c != NULL && c->count > 1)
        buf_printf(out, ", number %zu", i - c->place);
}

static const struct records_ops TFRECORD_OPS = { .free = tfrecord_free,
                                                 .read = tfrecord_read,
                                                 .place = tfrecord_place };
static const struct indexed_ops TFRECORD_INDEXED = {
    .begin = tfrecord_begin, .survey = tfrecord_survey, .skip = tfrecord_skip, .decode = tfrecord_decode
};

static int describe_label(const struct data_place *at, struct tfrecord *t, struct err *e)
{
    struct records *r = &t->records;
    if (t->columns.label < 0)
        return 0;
    const struct data_column *c = &t->columns.c[t->columns.label];
    r->has_labels = true;
    bool integer = c->type == COLUMN_INT || c->type == COLUMN_BYTES;
    r->integer_labels = t->columns.n_labels == 1 && integer && c->count == 1 && c->length == 0;
    if (r->integer_labels)
        r->y = shape_of(0, NULL);
    else
        r->y = t->columns.n_labels == 1 && c->shape.rank > 0 ? c->shape
                                                             : shape_of(1, (int64_t[]){ (int64_t)t->columns.labels });
    t->label_count = t->columns.labels;
    t->plan.integer_label = r->integer_labels;
    if (r->integer_labels && c->has_default && (c->fallback < INT32_MIN || c->fallback > INT32_MAX))
        return data_error(at, "columns", e, "default %.0f of the label does not fit 32 bits", c->fallback);
    return 0;
}

static int check_columns(const struct data_place *at, const struct data_columns *c, struct err *e)
{
    if (c->labels > INT32_MAX) /* as for a layer's output */
        return data_error(at, "columns", e, "a label of %zu numbers is too large", c->labels);
    if (c->n > EXAMPLE_FEATURES_MAX)
        return data_error(at, "columns", e, "%zu features, at most %d", c->n, EXAMPLE_FEATURES_MAX);
    for (size_t i = 0; i < c->n; i++)
        if (c->c[i].has_default && !(fabs(c->c[i].fallback) <= (double)FLT_MAX))
            return data_error(at, "columns", e, "the default of '%s' is not a number", c->c[i].name);
    return 0;
}

/* Memory for a large example is allocated only when the first record can hold one: each number takes at least a byte,
 * except those of an image and of a list that is filled up. Of a small one the decoder finds what is missing. */
static int check_first_size(const struct data_place *at, const struct tfrecord *t, struct err *e)
{
    const struct data_file *f = NULL;
    for (size_t i = 0; f == NULL && i < t->indexed.n_files; i++)
        if (t->indexed.file[i].index.n > 0)
            f = &t->indexed.file[i].file;
    const unsigned char *p = f != NULL ? f->map->data : NULL, *message;
    size_t wanted = 0, size;
    for (size_t i = 0; i < t->columns.n; i++) {
        const struct data_column *c = &t->columns.c[i];
        if (!c->has_default && c->length == 0 && c->type != COLUMN_IMAGE &&
            size_add(wanted, c->count, &wanted, NULL) < 0)
            wanted = SIZE_MAX;
    }
    if (f == NULL || take_record(f, 0, &p, &message, &size, e) < 0)
        return f == NULL ? 0 : -1;
    if (wanted <= MAX(size, EXAMPLE_SMALL))
        return 0;
    return data_error(at, "columns", e, "their shapes need %zu numbers, but record 0 of %s has %zu bytes", wanted,
                      f->path, size);
}

/* The first record shows whether names, types and shapes are those of the files. */
static int try_first(const struct tfrecord *t, struct err *e)
{
    auto_free void *x = NULL;
    auto_free void *y = NULL;
    size_t x_bytes, y_bytes;
    if (size_mul(t->columns.features, sizeof(float), &x_bytes, e) < 0 || mem_alloc(x_bytes, "an example", &x, e) < 0 ||
        size_mul(t->label_count, sizeof(float), &y_bytes, e) < 0 || mem_alloc(y_bytes, "a label", &y, e) < 0)
        return -1;
    return tfrecord_read(&t->records, &(int64_t){ 0 }, 1, x, y, &(float){ 0 }, e);
}

static int open_files(const struct data_place *at, struct tfrecord *t, struct err *e)
{
    struct data_files files;
    if (data_files_open(at, &files, e) < 0)
        return -1;
    int rc = indexed_open(at, &TFRECORD_INDEXED, t, 0, &files, &t->indexed, e); /* the places depend on no option */
    data_files_fini(&files);
    if (rc < 0)
        return -1;
    t->records.n = t->indexed.n;
    t->records.fingerprint = hash64_mix(indexed_fingerprint(&t->indexed), columns_hash(&t->columns));
    return check_first_size(at, t, e) < 0 ? -1 : try_first(t, e);
}

int tfrecord_open(const struct data_place *at, struct records **ret, struct err *e)
{
    struct tfrecord *t = xcalloc(1, sizeof(*t));
    AUTO(records) *r = &t->records;
    r->ops = &TFRECORD_OPS;
    r->x_type = DT_FLOAT;

    if (columns_of_spec(at, &t->columns, e) < 0 || check_columns(at, &t->columns, e) < 0)
        return -1;
    t->plan.columns = &t->columns;
    r->cost = columns_have_images(&t->columns) ? READ_DECODES : READ_PARSES;
    r->has_weights = t->columns.weighted;
    r->x = columns_shape(&t->columns);
    r->x_fields = columns_fields(&t->columns, false);
    r->y_fields = columns_fields(&t->columns, true);
    if (describe_label(at, t, e) < 0 || open_files(at, t, e) < 0)
        return -1;
    *ret = TAKE(r);
    return 0;
}
