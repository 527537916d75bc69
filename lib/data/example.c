/* Decodes tf.Example and tf.SequenceExample messages without a protobuf library, because decoding is the hot path of
 * TFRecord training. Every length is checked against the bytes of the record. */
#include "data/example.h"

#include <string.h>

#include "base/str.h"
#include "codec/pb.h"
#include "data/dtype_convert.h"

enum { FIELD_FEATURES = 1, FIELD_FEATURE_LISTS = 2 }; /* of a message; in a SequenceExample the first is its context */
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
    return err_set(e, ERR_INPUT, "feature '%s' holds %zu number%s, expected %zu (shape %s)%s", c->name, n,
                   n == 1 ? "" : "s", c->count, shape_text(&c->shape, shape),
                   c->is_label || c->is_weight ? "" : "; lists of different lengths need outputSequenceLength");
}

/* Where the numbers of one feature go. */
struct target {
    const struct data_column *column;
    float *floats; /* `space` of them, or NULL: */
    int32_t *label;
    size_t space;   /* the column's count; of a step what is left of it */
    size_t n;       /* numbers seen; those beyond the space are only counted */
    size_t strings; /* strings seen, when it is bytes */
    size_t steps;   /* of a column with a length: that are before these */
};

/* What a message says about a feature. */
enum presence { IS_ABSENT, HAS_NO_KIND, IS_EMPTY_LIST, HAS_VALUES, IS_FEATURE_LIST };

/* A step of a list, the first of those in `t` being t->steps. */
static int wrong_step(const struct target *t, size_t i, size_t n, struct err *e)
{
    char text[128];
    const struct data_column *c = t->column;
    const struct shape step = shape_of(c->shape.rank - 1, c->shape.dim + 1);
    return err_set(e, ERR_INPUT, "feature '%s', step %zu holds %zu number%s, expected %zu (a step has the shape %s)",
                   c->name, t->steps + i, n, n == 1 ? "" : "s", c->step, shape_text(&step, text));
}

static int put_int(struct target *t, int64_t v, struct err *e)
{
    size_t i = t->n++;
    if (i >= t->space)
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
    size_t space = t->n < t->space ? t->space - t->n : 0;
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

/* A string of another size than the column's: the error of an image, or none. */
static int check_raw(const struct target *t, const void *data, size_t n, struct err *e)
{
    const char *image = n != t->column->step ? encoded_image(data, n) : NULL;
    if (image != NULL)
        return err_set(
            e, ERR_INPUT,
            "feature '%s' holds a %s image; declare it with type: image, and shape: [height, width, channels]",
            t->column->name, image);
    return 0;
}

/* What tf.io.decode_raw reads as uint8. */
static int put_raw(struct target *t, const void *data, size_t n, struct err *e)
{
    t->n = n;
    if (check_raw(t, data, n, e) < 0)
        return -1;
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

/* The next step of a column with a length. */
static int put_raw_step(struct target *t, const void *data, size_t n, struct err *e)
{
    if (check_raw(t, data, n, e) < 0)
        return -1;
    if (n != t->column->step)
        return wrong_step(t, t->strings, n, e);
    if (t->n < t->space) /* a whole number of steps */
        dtype_float_converter(DT_UINT8, false)(data, t->floats + t->n, n);
    t->n += n;
    return 0;
}

/* One value: the numbers themselves, or the bytes of an image. With a length a value for each step. */
static int take_bytes_list(struct reader *r, struct target *t, struct err *e)
{
    struct pb_field f, string = { .number = 0 };
    int rc;
    while ((rc = pb_next(r, &f)) == 1) {
        if (f.number != 1 || f.type != PB_BYTES)
            continue;
        if (t->column->length > 0 && put_raw_step(t, f.data, f.size, e) < 0)
            return -1;
        t->strings++;
        string = f;
    }
    if (rc < 0)
        return malformed(e);
    if (t->column->length > 0)
        return 0;
    if (t->strings != 1)
        return t->strings > 1 ? several_strings(t, e) : 0;
    return t->column->type == COLUMN_IMAGE ? put_image(t, string.data, string.size, e)
                                           : put_raw(t, string.data, string.size, e);
}

/* The values of a feature, whose number is not checked. */
static int take_values(const void *data, size_t n, struct target *t, enum presence *ret, struct err *e)
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
    return 0;
}

/* A feature of a tf.Example, or of the context. */
static int take_feature(const void *data, size_t n, struct target *t, enum presence *ret, struct err *e)
{
    const struct data_column *c = t->column;
    if (take_values(data, n, t, ret, e) < 0)
        return -1;
    if (c->length == 0)
        return *ret == HAS_VALUES && t->n != c->count ? wrong_size(c, t->n, e) : 0;
    if (*ret == HAS_NO_KIND)
        return 0;
    if (t->n % c->step != 0)
        return wrong_step(t, t->n / c->step, t->n % c->step, e);
    *ret = HAS_VALUES;
    return 0;
}

/* A FeatureList: each of its features is a step. */
static int take_feature_list(const void *data, size_t n, struct target *t, enum presence *ret, struct err *e)
{
    struct reader r = reader_of(data, n);
    struct pb_field f;
    size_t step = t->column->step;
    int rc;
    while ((rc = pb_next(&r, &f)) == 1) {
        if (f.number != 1 || f.type != PB_BYTES)
            continue;
        size_t used = MIN(t->n, t->space);
        struct target one = { .column = t->column, .floats = t->floats + used, .space = MIN(t->space - used, step) };
        enum presence ignored;
        one.steps = t->steps;
        if (take_values(f.data, f.size, &one, &ignored, e) < 0)
            return -1;
        if (one.n != step)
            return wrong_step(t, 0, one.n, e);
        t->n += step;
        t->steps++;
    }
    if (rc < 0)
        return malformed(e);
    *ret = HAS_VALUES;
    return 0;
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
    size_t numbers[EXAMPLE_FEATURES_MAX];         /* of a column with values: how many */
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
    t.space = t.column->count;
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

/* The value of an entry. A column without a length is a feature list only if it is not a feature. */
static int take_column(struct decoding *d, size_t column, const struct pb_field *value, uint32_t field, struct err *e)
{
    struct target t = target_of(d, column);
    enum presence presence = d->presence[column];
    bool list = field == FIELD_FEATURE_LISTS;
    if (list && t.column->length == 0)
        presence = presence == IS_ABSENT ? IS_FEATURE_LIST : presence;
    else if ((list ? take_feature_list : take_feature)(value->data, value->size, &t, &presence, e) < 0)
        return -1;
    d->presence[column] = (unsigned char)presence;
    d->numbers[column] = t.n;
    d->next = column + 1;
    return 0;
}

/* An entry of the map in that field of the message: key = 1, value = 2. */
static int take_entry(struct decoding *d, const void *data, size_t n, uint32_t field, struct err *e)
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
    return take_column(d, column, &value, field, e);
}

static int take_map(struct decoding *d, const void *data, size_t n, uint32_t field, struct err *e)
{
    struct reader r = reader_of(data, n);
    struct pb_field f;
    int rc;
    while ((rc = pb_next(&r, &f)) == 1)
        if (f.number == 1 && f.type == PB_BYTES && take_entry(d, f.data, f.size, field, e) < 0)
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
    if (presence == IS_FEATURE_LIST)
        return err_set(e, ERR_INPUT,
                       "feature '%s' is a feature list of a tf.SequenceExample; set its 'outputSequenceLength' in "
                       "columns, to the steps that it is padded or cut to",
                       c->name);
    const char *cure = c->is_label ? "the label is missing, and an example without a label cannot be trained on"
                       : c->type == COLUMN_IMAGE
                           ? "an image has no default: leave such examples out when you write the file"
                           : "set its 'default' in columns to allow that";
    return err_set(e, ERR_INPUT, "%s '%s'%s%s; %s", FACTS[presence].before, c->name, FACTS[presence].after,
                   presence == IS_ABSENT ? others_text(d, others) : "", cure);
}

/* Features of which the message has no values take their default, and so does what follows the end of a list: once,
 * however often the message has it. */
static int fill_missing(struct decoding *d, struct err *e)
{
    const struct data_columns *c = d->plan->columns;
    for (size_t i = 0; i < c->n; i++) {
        bool found = d->presence[i] == HAS_VALUES;
        if (!found && (!c->c[i].has_default || d->presence[i] == IS_FEATURE_LIST))
            return no_values(d, &c->c[i], d->presence[i], e);
        struct target t = target_of(d, i);
        for (size_t j = found ? d->numbers[i] : 0; j < c->c[i].count; j++) {
            if (t.floats != NULL)
                t.floats[j] = (float)c->c[i].fallback;
            else
                *t.label = (int32_t)c->c[i].fallback;
        }
    }
    return 0;
}

/* The map in that field of the message. *ret_lists: there are feature lists. */
static int take_field(struct decoding *d, const void *data, size_t n, uint32_t field, bool *ret_lists, struct err *e)
{
    struct reader r = reader_of(data, n);
    struct pb_field f;
    int rc;
    while ((rc = pb_next(&r, &f)) == 1) {
        *ret_lists = *ret_lists || (f.number == FIELD_FEATURE_LISTS && f.type == PB_BYTES);
        if (f.number == field && f.type == PB_BYTES && take_map(d, f.data, f.size, field, e) < 0)
            return -1;
    }
    return rc < 0 ? malformed(e) : 0;
}

/* Some column may be one of the feature lists. */
static bool wants_lists(const struct decoding *d)
{
    const struct data_columns *c = d->plan->columns;
    for (size_t i = 0; i < c->n; i++)
        if (c->c[i].length > 0 || d->presence[i] == IS_ABSENT)
            return true;
    return false;
}

int example_decode(const struct example_plan *plan, const void *data, size_t n, float *x, void *y, float *w,
                   struct err *e)
{
    struct decoding d;
    bool lists = false;
    d.plan = plan;
    d.x = x;
    d.y = y;
    d.w = w;
    d.next = d.n_others = 0;
    memset(d.presence, IS_ABSENT, plan->columns->n);
    if (take_field(&d, data, n, FIELD_FEATURES, &lists, e) < 0 ||
        (lists && wants_lists(&d) && take_field(&d, data, n, FIELD_FEATURE_LISTS, &lists, e) < 0))
        return -1;
    return fill_missing(&d, e);
}
