/* Decodes tf.Example messages without a protobuf library, because decoding is the hot path of TFRecord training. Every
 * length is checked against the bytes of the record. */
#include "data/example.h"

#include <string.h>

#include "base/str.h"
#include "codec/pb.h"
#include "data/dtype_convert.h"

enum { FIELD_BYTES_LIST = 1, FIELD_FLOAT_LIST = 2, FIELD_INT64_LIST = 3 };

static const char *const LIST_NAMES[] = {
    [FIELD_BYTES_LIST] = "bytes",
    [FIELD_FLOAT_LIST] = "float",
    [FIELD_INT64_LIST] = "int64",
};
static const uint32_t LIST_OF[] = {
    [COLUMN_FLOAT] = FIELD_FLOAT_LIST,
    [COLUMN_INT] = FIELD_INT64_LIST,
    [COLUMN_BYTES] = FIELD_BYTES_LIST,
    [COLUMN_IMAGE] = FIELD_BYTES_LIST,
};

/* What the job declares, in a message. */
static const char *const DECLARED[] = {
    [COLUMN_FLOAT] = "float",
    [COLUMN_INT] = "int64",
    [COLUMN_BYTES] = "bytes",
    [COLUMN_IMAGE] = "image, a string with the bytes of a file",
};

static int malformed(struct err *e)
{
    return err_set(e, ERR_INPUT, "is not a tf.Example");
}

static int wrong_size(const struct data_column *c, size_t n, struct err *e)
{
    char shape[128];
    return err_set(e, ERR_INPUT, "feature '%s' holds %zu number%s, expected %zu (shape %s)", c->name, n,
                   n == 1 ? "" : "s", c->count, shape_text(&c->shape, shape));
}

/* Where the numbers of one feature go. */
struct target {
    const struct data_column *column;
    float *floats; /* column->count of them, or NULL: */
    int32_t *label;
    size_t n;       /* numbers seen; those beyond the count are only counted */
    size_t strings; /* strings seen, when it is bytes */
};

/* What a message says about a feature. */
enum presence { IS_ABSENT, HAS_NO_KIND, IS_EMPTY_LIST, HAS_VALUES };

static int put_int(struct target *t, int64_t v, struct err *e)
{
    size_t i = t->n++;
    if (i >= t->column->count)
        return 0;
    if (t->floats != NULL)
        t->floats[i] = (float)v;
    else if (v < INT32_MIN || v > INT32_MAX)
        return err_set(e, ERR_INPUT, "feature '%s': label %lld does not fit 32 bits", t->column->name, (long long)v);
    else
        *t->label = (int32_t)v;
    return 0;
}

static int take_int64_list(struct reader *r, struct target *t, struct err *e)
{
    struct pb_field f;
    int rc;
    while ((rc = pb_next(r, &f)) == 1) {
        if (f.number != 1)
            continue;
        if (f.type == PB_VARINT && put_int(t, (int64_t)f.u, e) < 0)
            return -1;
        if (f.type != PB_BYTES)
            continue;
        struct reader packed = reader_of(f.data, f.size);
        while (reader_left(&packed) > 0) {
            uint64_t v;
            if (reader_varint(&packed, &v) < 0)
                return malformed(e);
            if (put_int(t, (int64_t)v, e) < 0)
                return -1;
        }
    }
    return rc < 0 ? malformed(e) : 0;
}

static void put_floats(struct target *t, const void *data, size_t n)
{
    size_t space = t->n < t->column->count ? t->column->count - t->n : 0;
    if (space > 0 && n > 0)
        memcpy(t->floats + t->n, data, MIN(n, space) * sizeof(float));
    t->n += n;
}

static int take_float_list(struct reader *r, struct target *t, struct err *e)
{
    struct pb_field f;
    int rc;
    while ((rc = pb_next(r, &f)) == 1) {
        if (f.number != 1)
            continue;
        if (f.type == PB_FIXED32) {
            float v = pb_as_float(&f);
            put_floats(t, &v, 1);
        } else if (f.type == PB_BYTES && f.size % sizeof(float) == 0) {
            put_floats(t, f.data, f.size / sizeof(float));
        } else {
            return malformed(e);
        }
    }
    return rc < 0 ? malformed(e) : 0;
}

/* The format written by tf.io.encode_png and the like, by its first bytes; NULL: none of them. */
static const char *encoded_image(const void *data, size_t n)
{
    static const struct {
        const char *name, *magic;
        size_t n;
    } FORMATS[] = { { "PNG", "\x89PNG", 4 }, { "JPEG", "\xff\xd8\xff", 3 }, { "GIF", "GIF8", 4 } };
    for (size_t i = 0; i < COUNT_OF(FORMATS); i++)
        if (n >= FORMATS[i].n && memcmp(data, FORMATS[i].magic, FORMATS[i].n) == 0)
            return FORMATS[i].name;
    return NULL;
}

static int several_strings(const struct target *t, struct err *e)
{
    if (t->column->type == COLUMN_IMAGE)
        return err_set(e, ERR_INPUT, "feature '%s' holds %zu strings; write one image", t->column->name, t->strings);
    return err_set(e, ERR_INPUT, "feature '%s' holds %zu strings; write one of %zu bytes", t->column->name, t->strings,
                   t->column->count);
}

/* What tf.io.decode_raw reads as uint8. */
static int put_raw(struct target *t, const void *data, size_t n, struct err *e)
{
    const char *image = n != t->column->count ? encoded_image(data, n) : NULL;
    t->n = n;
    if (image != NULL)
        return err_set(
            e, ERR_INPUT,
            "feature '%s' holds a %s image; declare it with type: image, and shape: [height, width, channels]",
            t->column->name, image);
    if (n != t->column->count)
        return 0;
    if (t->floats != NULL)
        dtype_float_converter(DT_UINT8, false)(data, t->floats, n);
    else
        *t->label = *(const unsigned char *)data;
    return 0;
}

static int put_image(struct target *t, const void *data, size_t n, struct err *e)
{
    t->n = t->column->count;
    if (image_read(data, n, &t->column->image, t->floats, e) == 0)
        return 0;
    return err_is(e, ERR_INPUT) ? err_set(e, ERR_INPUT, "feature '%s' %s", t->column->name, e->msg)
                                : err_wrap(e, "feature '%s'", t->column->name);
}

/* One value: the numbers themselves, or the bytes of an image. */
static int take_bytes_list(struct reader *r, struct target *t, struct err *e)
{
    struct pb_field f, string = { .number = 0 };
    int rc;
    while ((rc = pb_next(r, &f)) == 1) {
        if (f.number != 1 || f.type != PB_BYTES)
            continue;
        t->strings++;
        string = f;
    }
    if (rc < 0)
        return malformed(e);
    if (t->strings != 1)
        return t->strings > 1 ? several_strings(t, e) : 0;
    return t->column->type == COLUMN_IMAGE ? put_image(t, string.data, string.size, e)
                                           : put_raw(t, string.data, string.size, e);
}

static int take_feature(const void *data, size_t n, struct target *t, enum presence *ret, struct err *e)
{
    static int (*const TAKE_LIST[])(struct reader *, struct target *, struct err *) = {
        [FIELD_BYTES_LIST] = take_bytes_list,
        [FIELD_FLOAT_LIST] = take_float_list,
        [FIELD_INT64_LIST] = take_int64_list,
    };
    struct reader r = reader_of(data, n);
    struct pb_field f;
    uint32_t want = LIST_OF[t->column->type], found = 0;
    int rc;
    while ((rc = pb_next(&r, &f)) == 1) {
        if (f.number < FIELD_BYTES_LIST || f.number > FIELD_INT64_LIST || f.type != PB_BYTES)
            continue;
        found = f.number;
        t->n = t->strings = 0; /* of a oneof the last one counts */
        struct reader list = reader_of(f.data, f.size);
        if (found == want && TAKE_LIST[want](&list, t, e) < 0)
            return -1;
    }
    if (rc < 0)
        return malformed(e);
    if (found != 0 && found != want)
        return err_set(e, ERR_INPUT, "feature '%s' is %s, but the job declares %s", t->column->name, LIST_NAMES[found],
                       DECLARED[t->column->type]);
    *ret = found == 0 ? HAS_NO_KIND : t->n + t->strings == 0 ? IS_EMPTY_LIST : HAS_VALUES;
    return *ret == HAS_VALUES && t->n != t->column->count ? wrong_size(t->column, t->n, e) : 0;
}

enum { OTHERS = 4, OTHER_BYTES = 60, OTHERS_TEXT = OTHERS * (OTHER_BYTES + 4) + 5 };

struct decoding {
    const struct example_plan *plan;
    float *x, *w;
    void *y;
    size_t next; /* the column that probably comes next: files repeat their order */
    size_t n_others;
    struct pb_field others[OTHERS];               /* names of features that are no columns, for a message */
    unsigned char presence[EXAMPLE_FEATURES_MAX]; /* of each column, an enum presence */
};

static struct target target_of(const struct decoding *d, size_t column)
{
    const struct example_plan *plan = d->plan;
    struct target t = { .column = &plan->columns->c[column] };
    if (t.column->is_label && plan->integer_label)
        t.label = d->y;
    else if (t.column->is_weight)
        t.floats = d->w;
    else
        t.floats = (t.column->is_label ? (float *)d->y : d->x) + t.column->place;
    return t;
}

/* The column of that name, or their number. */
static size_t find_column(const struct decoding *d, const struct pb_field *name)
{
    const struct data_columns *c = d->plan->columns;
    for (size_t i = 0; i < c->n; i++) {
        size_t at = (d->next + i) % c->n;
        const char *other = c->c[at].name;
        if (strlen(other) == name->size && (name->size == 0 || memcmp(other, name->data, name->size) == 0))
            return at;
    }
    return c->n;
}

/* A name that may be a part of a message. */
static bool is_text(const struct pb_field *name)
{
    const unsigned char *p = name->data;
    for (size_t i = 0; i < name->size; i++)
        if (p[i] < ' ' || p[i] == 127)
            return false;
    return name->size > 0 && name->size <= OTHER_BYTES;
}

/* An entry of the map: key = 1, value = 2. */
static int take_entry(struct decoding *d, const void *data, size_t n, struct err *e)
{
    struct reader r = reader_of(data, n);
    struct pb_field f, key = { .number = 0 }, value = { .number = 0 };
    int rc;
    while ((rc = pb_next(&r, &f)) == 1) {
        if (f.number == 1 && f.type == PB_BYTES)
            key = f;
        if (f.number == 2 && f.type == PB_BYTES)
            value = f;
    }
    if (rc < 0)
        return malformed(e);
    size_t column = find_column(d, &key);
    if (column == d->plan->columns->n) {
        if (d->n_others < OTHERS && is_text(&key))
            d->others[d->n_others++] = key;
        return 0;
    }
    struct target t = target_of(d, column);
    enum presence presence;
    if (take_feature(value.data, value.size, &t, &presence, e) < 0)
        return -1;
    d->presence[column] = (unsigned char)presence;
    d->next = column + 1;
    return 0;
}

static int take_features(struct decoding *d, const void *data, size_t n, struct err *e)
{
    struct reader r = reader_of(data, n);
    struct pb_field f;
    int rc;
    while ((rc = pb_next(&r, &f)) == 1)
        if (f.number == 1 && f.type == PB_BYTES && take_entry(d, f.data, f.size, e) < 0)
            return -1;
    return rc < 0 ? malformed(e) : 0;
}

/* ", but 'a', 'b'", or nothing: the name of the column may be mistyped. */
static const char *others_text(const struct decoding *d, char out[OTHERS_TEXT])
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < d->n_others; i++, used = strlen(out))
        str_fmt(out + used, OTHERS_TEXT - used, "%s'%.*s'", i == 0 ? ", but " : ", ", (int)d->others[i].size,
                (const char *)d->others[i].data);
    return out;
}

static int no_values(const struct decoding *d, const struct data_column *c, enum presence presence, struct err *e)
{
    char others[OTHERS_TEXT];
    static const struct {
        const char *before, *after; /* the name */
    } FACTS[] = {
        [IS_ABSENT] = { "has no feature", "" },
        [HAS_NO_KIND] = { "feature", " has no kind, which is how Spark and Beam write null" },
        [IS_EMPTY_LIST] = { "feature", " is an empty list" },
    };
    const char *cure = c->is_label ? "the label is missing, and an example without a label cannot be trained on"
                       : c->type == COLUMN_IMAGE
                           ? "an image has no default: leave such examples out when you write the file"
                           : "set its 'default' in columns to allow that";
    return err_set(e, ERR_INPUT, "%s '%s'%s%s; %s", FACTS[presence].before, c->name, FACTS[presence].after,
                   presence == IS_ABSENT ? others_text(d, others) : "", cure);
}

/* Features of which the message has no values take their default. */
static int fill_missing(struct decoding *d, struct err *e)
{
    const struct data_columns *c = d->plan->columns;
    for (size_t i = 0; i < c->n; i++) {
        if (d->presence[i] == HAS_VALUES)
            continue;
        if (!c->c[i].has_default)
            return no_values(d, &c->c[i], d->presence[i], e);
        struct target t = target_of(d, i);
        for (size_t j = 0; j < c->c[i].count; j++) {
            if (t.floats != NULL)
                t.floats[j] = (float)c->c[i].fallback;
            else
                *t.label = (int32_t)c->c[i].fallback;
        }
    }
    return 0;
}

int example_decode(const struct example_plan *plan, const void *data, size_t n, float *x, void *y, float *w,
                   struct err *e)
{
    struct decoding d;
    struct reader r = reader_of(data, n);
    struct pb_field f;
    int rc;
    d.plan = plan;
    d.x = x;
    d.y = y;
    d.w = w;
    d.next = d.n_others = 0;
    memset(d.presence, IS_ABSENT, plan->columns->n);
    while ((rc = pb_next(&r, &f)) == 1)
        if (f.number == 1 && f.type == PB_BYTES && take_features(&d, f.data, f.size, e) < 0)
            return -1;
    if (rc < 0)
        return malformed(e);
    return fill_missing(&d, e);
}
