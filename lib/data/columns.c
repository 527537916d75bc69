#include "data/columns.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

void columns_fini(struct columns *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->c[i].name);
        strmap_free(c->c[i].vocabulary);
    }
    free(c->c);
    *c = (struct columns){ .c = NULL };
}

int64_t column_word(const struct column *c, const char *word)
{
    return (int64_t)(intptr_t)strmap_get(c->vocabulary, word) - 1;
}

/* A word of a vocabulary or a default: numbers and truth values are words as JSON writes them. */
static int word_of(const struct node *n, struct buf *ret, struct err *e)
{
    const char *s;
    buf_clear(ret);
    if (json_is_string(n->v)) {
        if (node_str(n, &s, e) < 0)
            return -1;
        buf_str(ret, s);
    } else if (json_is_integer(n->v) || json_is_real(n->v) || json_is_boolean(n->v)) {
        json_emit(n->v, ret);
    } else {
        return node_error(n, e, "must be a word, is %s", node_type(n));
    }
    if (ret->len > VOCABULARY_WORD_MAX)
        return node_error(n, e, "has %zu bytes, at most %d", ret->len, VOCABULARY_WORD_MAX);
    return 0;
}

static int read_vocabulary(const struct node *n, struct column *c, struct err *e)
{
    struct node words = node_get(n, "vocabulary");
    if (!node_present(&words) || node_size(&words) == 0)
        return node_error(n, e, "column '%s' is a category and needs its words: vocabulary: [...]", c->name);
    if (node_array(&words, e) < 0)
        return -1;

    AUTO_FINI(buf) word = BUF_INIT;
    c->vocabulary = strmap_new();
    for (size_t i = 0; i < node_size(&words); i++) {
        struct node item = node_item(&words, i);
        if (word_of(&item, &word, e) < 0)
            return -1;
        if (strmap_get(c->vocabulary, word.data) != NULL)
            return node_error(&item, e, "'%s' stands twice in the vocabulary", word.data);
        strmap_set(c->vocabulary, word.data, (void *)(intptr_t)(i + 1));
    }
    return 0;
}

static int read_default(const struct node *n, struct column *c, struct err *e)
{
    struct node value = node_get(n, "default");
    if (!node_present(&value))
        return 0;
    c->has_default = true;
    if (c->type == COLUMN_CATEGORY) {
        AUTO_FINI(buf) word = BUF_INIT;
        if (word_of(&value, &word, e) < 0)
            return -1;
        c->fallback = (double)column_word(c, word.data);
        return c->fallback < 0 ? node_error(&value, e, "'%s' is not in the vocabulary", word.data) : 0;
    }
    if (node_f64(&value, &c->fallback, e) < 0)
        return -1;
    if (c->type == COLUMN_INT && c->fallback != floor(c->fallback))
        return node_error(&value, e, "%g is no whole number, and column '%s' is int", c->fallback, c->name);
    return 0;
}

/* Type, words and default that the job gives a column. */
static int read_csv_column(const struct node *n, struct column *c, struct err *e)
{
    static const char *const KEYS[] = { "name", "type", "vocabulary", "default" };
    static const char *const TYPES[] = { "float", "int", "category" }; /* as enum column_type */
    size_t type = COLUMN_FLOAT;
    if (node_only(n, KEYS, COUNT_OF(KEYS), e) < 0)
        return -1;
    struct node type_node = node_get(n, "type"), words = node_get(n, "vocabulary");
    if (node_present(&type_node) && node_enum(&type_node, TYPES, COUNT_OF(TYPES), &type, e) < 0)
        return -1;
    c->type = (enum column_type)type;
    if (c->type == COLUMN_CATEGORY && read_vocabulary(n, c, e) < 0)
        return -1;
    if (c->type != COLUMN_CATEGORY && node_present(&words))
        return node_key_error(n, "vocabulary", e, "is for columns of type category");
    return read_default(n, c, e);
}

static int64_t find_column(const struct columns *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (str_eq(c->c[i].name, name))
            return (int64_t)i;
    return -1;
}

/* "; did you mean 'age'?" */
static const char *nearest_column(const struct columns *c, const char *name, char *out, size_t out_size)
{
    const char **names = xcalloc(c->n, sizeof(*names));
    for (size_t i = 0; i < c->n; i++)
        names[i] = c->c[i].name;
    str_did_you_mean(name, names, c->n, out, out_size);
    free(names);
    return out;
}

/* A name, else an index; from -1 on it counts from the end. */
static int find_label(const struct data_place *at, struct columns *c, struct err *e)
{
    const char *label = at->spec->label;
    char hint[128];
    int64_t index;
    c->label = -1;
    if (label == NULL || label[0] == '\0')
        return 0;
    c->label = find_column(c, label);
    if (c->label >= 0)
        return 0;
    if (str_i64(label, INT32_MIN, INT32_MAX, &index, NULL) < 0)
        return data_error(at, "label", e, "no column is named '%s'%s", label,
                          nearest_column(c, label, hint, sizeof(hint)));
    c->label = index < 0 ? index + (int64_t)c->n : index;
    if (c->label < 0 || c->label >= (int64_t)c->n)
        return data_error(at, "label", e, "there is no column %s, the data has %zu (0 is the first, -1 the last)",
                          label, c->n);
    return 0;
}

/* The column becomes a feature, behind those before it. */
static int add_feature(struct columns *c, struct column *column, struct err *e)
{
    column->used = true;
    column->place = c->features;
    return size_add(c->features, column->count, &c->features, e);
}

static int some_features(const struct data_place *at, const struct columns *c, struct err *e)
{
    return c->features > 0 ? 0 : data_error(at, "columns", e, "no column is left for the features");
}

/* One of spec.columns. */
static int describe_column(const struct node *n, struct columns *c, struct err *e)
{
    struct node name_node = node_get(n, "name");
    const char *name;
    char hint[128];
    if (node_object(n, e) < 0 || node_str(&name_node, &name, e) < 0)
        return -1;
    int64_t which = find_column(c, name);
    if (which < 0)
        return node_error(&name_node, e, "the data has no column '%s'%s", name,
                          nearest_column(c, name, hint, sizeof(hint)));
    struct column *column = &c->c[which];
    if (column->described)
        return node_error(&name_node, e, "column '%s' is described twice", name);
    column->described = true;
    if (read_csv_column(n, column, e) < 0)
        return -1;
    return which != c->label ? add_feature(c, column, e) : 0;
}

static int choose_columns(const struct data_place *at, struct columns *c, struct err *e)
{
    const struct node *columns = &at->spec->columns;
    if (find_label(at, c, e) < 0 || (node_present(columns) && node_array(columns, e) < 0))
        return -1;
    for (size_t i = 0; i < node_size(columns); i++) {
        struct node item = node_item(columns, i);
        if (describe_column(&item, c, e) < 0)
            return -1;
    }
    bool all = c->features == 0;
    for (size_t i = 0; all && i < c->n; i++)
        if ((int64_t)i != c->label && add_feature(c, &c->c[i], e) < 0)
            return -1;
    if (c->label >= 0)
        c->c[c->label].used = true;
    return some_features(at, c, e);
}

int columns_of_names(const struct data_place *at, const struct strlist *names, struct columns *ret, struct err *e)
{
    AUTO_FINI(columns) c = { .c = xcalloc(MAX(names->n, 1), sizeof(*c.c)), .n = names->n };
    for (size_t i = 0; i < names->n; i++) {
        c.c[i].name = xstrdup(names->items[i]);
        c.c[i].count = 1;
    }
    if (choose_columns(at, &c, e) < 0)
        return -1;
    *ret = c;
    c = (struct columns){ .c = NULL };
    return 0;
}

/* shape: [28, 28]; without one a single number. */
static int read_shape(const struct node *n, struct column *c, struct err *e)
{
    struct node dims = node_get(n, "shape");
    c->shape = shape_of(0, NULL);
    if (node_present(&dims)) {
        if (node_array(&dims, e) < 0)
            return -1;
        if (node_size(&dims) >= SHAPE_MAX_RANK)
            return node_error(&dims, e, "has %zu dimensions, at most %d", node_size(&dims), SHAPE_MAX_RANK - 1);
        for (size_t i = 0; i < node_size(&dims); i++) {
            struct node dim = node_item(&dims, i);
            if (node_i64(&dim, 1, INT32_MAX, &c->shape.dim[i], e) < 0)
                return -1;
            c->shape.rank++;
        }
    }
    if (shape_count(&c->shape, &c->count, NULL) < 0)
        return node_error(&dims, e, "is too large");
    return 0;
}

static int read_feature(const struct node *n, struct column *c, struct err *e)
{
    static const char *const KEYS[] = { "name", "type", "shape", "default" };
    static const char *const TYPES[] = { "float", "int64", "bytes" };
    static const enum column_type MEANING[] = { COLUMN_FLOAT, COLUMN_INT, COLUMN_BYTES };
    struct node name_node = node_get(n, "name"), type_node = node_get(n, "type");
    const char *name;
    size_t type;
    if (node_only(n, KEYS, COUNT_OF(KEYS), e) < 0 || node_str(&name_node, &name, e) < 0 ||
        node_enum(&type_node, TYPES, COUNT_OF(TYPES), &type, e) < 0)
        return -1;
    c->name = xstrdup(name);
    c->type = MEANING[type];
    return read_shape(n, c, e) < 0 ? -1 : read_default(n, c, e);
}

static int place_features(const struct data_place *at, struct columns *c, struct err *e)
{
    if (find_label(at, c, e) < 0)
        return -1;
    for (size_t i = 0; i < c->n; i++)
        if ((int64_t)i != c->label && add_feature(c, &c->c[i], e) < 0)
            return -1;
    return some_features(at, c, e);
}

int columns_of_spec(const struct data_place *at, struct columns *ret, struct err *e)
{
    const struct node *columns = &at->spec->columns;
    size_t n = node_size(columns);
    if (!node_present(columns) || n == 0)
        return data_error(at, "columns", e, "tfrecord needs the names and types of its features: "
                          "columns: [{name: image, type: float, shape: [28, 28]}, ...]");
    if (node_array(columns, e) < 0)
        return -1;

    AUTO_FINI(columns) c = { .c = xcalloc(n, sizeof(*c.c)) };
    for (size_t i = 0; i < n; i++) {
        struct node item = node_item(columns, i);
        c.n = i + 1;
        if (node_object(&item, e) < 0 || read_feature(&item, &c.c[i], e) < 0)
            return -1;
        c.n = i; /* find_column looks at those before it */
        bool twice = find_column(&c, c.c[i].name) >= 0;
        c.n = i + 1;
        if (twice)
            return node_error(&item, e, "feature '%s' is described twice", c.c[i].name);
    }
    if (place_features(at, &c, e) < 0)
        return -1;
    *ret = c;
    c = (struct columns){ .c = NULL };
    return 0;
}

static uint64_t column_hash(const struct column *c)
{
    uint64_t h = hash64(c->name, strlen(c->name), (uint64_t)c->type * 4 + (c->used ? 2 : 0) + c->has_default);
    h = hash64_mix(h, c->place);
    h = hash64_mix(h, hash64(&c->fallback, sizeof(c->fallback), 0));
    for (int i = 0; i < c->shape.rank; i++)
        h = hash64_mix(h, (uint64_t)c->shape.dim[i]);
    for (size_t i = 0; c->vocabulary != NULL && i < strmap_size(c->vocabulary); i++) {
        const char *word = strmap_key(c->vocabulary, i);
        h = hash64(word, strlen(word), h);
    }
    return h;
}

uint64_t columns_hash(const struct columns *c)
{
    uint64_t h = hash64_mix(c->n, (uint64_t)c->label);
    for (size_t i = 0; i < c->n; i++)
        h = hash64_mix(h, column_hash(&c->c[i]));
    return h;
}
