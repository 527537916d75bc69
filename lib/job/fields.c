/* Reads a map of the manifest by its table: types, ranges, choices, defaults, required and unknown keys. Errors are
 * reported at the key's line and column. */
#include "job/fields.h"

#include <inttypes.h>
#include <string.h>

enum { KEYS_MAX = 32 }; /* of one table */

/* Writes v into the destination, an integer of 4 or 8 bytes. */
static void put_int(const struct field *f, void *base, int64_t v)
{
    int32_t narrow = (int32_t)v;

    if (f->size == sizeof(narrow))
        memcpy((char *)base + f->offset, &narrow, sizeof(narrow));
    else if (f->size == sizeof(v))
        memcpy((char *)base + f->offset, &v, sizeof(v));
}

static void put(const struct field *f, void *base, const void *v, size_t size)
{
    if (f->size == size)
        memcpy((char *)base + f->offset, v, size);
}

static int read_int(const struct field *f, const struct node *n, void *base, struct err *e)
{
    int64_t v;
    if (node_i64(n, f->min, f->max, &v, e) < 0)
        return -1;
    put_int(f, base, v);
    return 0;
}

static int read_number(const struct field *f, const struct node *n, void *base, struct err *e)
{
    double v, min = (double)f->min;
    if (node_f64(n, &v, e) < 0)
        return -1;
    if (f->above_min ? !(v > min) : !(v >= min))
        return node_error(n, e, "must be %s %g", f->above_min ? "more than" : "at least", min);
    if (f->max != INT64_MAX && (f->below_max ? !(v < (double)f->max) : v > (double)f->max))
        return node_error(n, e, "must be %s %g", f->below_max ? "less than" : "at most", (double)f->max);
    put(f, base, &v, sizeof(v));
    return 0;
}

static int read_bool(const struct field *f, const struct node *n, void *base, struct err *e)
{
    bool v;
    if (node_bool(n, &v, e) < 0)
        return -1;
    put(f, base, &v, sizeof(v));
    return 0;
}

static int read_string(const struct field *f, const struct node *n, void *base, struct err *e)
{
    const char *v;
    if (node_str(n, &v, e) < 0)
        return -1;
    if (*v == '\0')
        return node_error(n, e, "is empty");
    put(f, base, &v, sizeof(v));
    return 0;
}

static void list_names(const char *const names[], size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s%s", i == 0 ? "" : i + 1 == n ? " or " : ", ", names[i]);
}

static int read_choice(const struct field *f, const struct node *n, void *base, struct err *e)
{
    AUTO_FINI(buf) working = BUF_INIT;
    size_t i;

    if (node_enum(n, f->names, f->nnames, &i, e) < 0)
        return -1;
    if (i < f->nworking) {
        put_int(f, base, (int64_t)i);
        return 0;
    }
    list_names(f->names, f->nworking, &working);
    return node_error(n, e, "'%s' is not supported yet; supported: %s", f->names[i], working.data);
}

static int read_map(const struct field *f, const struct node *n, void *base, struct err *e)
{
    if (node_object(n, e) < 0)
        return -1;
    put(f, base, n, sizeof(*n));
    return 0;
}

static int read_list(const struct field *f, const struct node *n, void *base, struct err *e)
{
    if (node_array(n, e) < 0)
        return -1;
    if (f->max > 0 && node_size(n) > (size_t)f->max)
        return node_error(n, e, "has %zu items, at most %" PRId64, node_size(n), f->max);
    put(f, base, n, sizeof(*n));
    return 0;
}

static int read_any(const struct field *f, const struct node *n, void *base, struct err *e UNUSED)
{
    put(f, base, n, sizeof(*n));
    return 0;
}

static int read_table(const struct field *f, const struct node *n, void *base, struct err *e)
{
    return fields_read(f->table, n, (char *)base + f->offset, e);
}

static int read_own(const struct field *f UNUSED, const struct node *n UNUSED, void *base UNUSED, struct err *e UNUSED)
{
    return 0;
}

typedef int read_fn(const struct field *f, const struct node *n, void *base, struct err *e);
static read_fn *const READ[] = {
    [FIELD_INT] = read_int,       [FIELD_NUMBER] = read_number, [FIELD_BOOL] = read_bool, [FIELD_STRING] = read_string,
    [FIELD_CHOICE] = read_choice, [FIELD_MAP] = read_map,       [FIELD_LIST] = read_list, [FIELD_ANY] = read_any,
    [FIELD_TABLE] = read_table,   [FIELD_OWN] = read_own,
};

/* The default goes the way of a value in a manifest, so that both mean the same. Tables and unit tests hold only
 * valid ones. */
static int read_fallback(const struct field *f, const struct node *absent, void *base, struct err *e)
{
    json_auto_t *v = NULL;
    struct node n = *absent;
    bool text = f->kind == FIELD_STRING || f->kind == FIELD_CHOICE;

    if (f->fallback == NULL)
        return f->kind == FIELD_MAP || f->kind == FIELD_LIST || f->kind == FIELD_ANY ? read_any(f, absent, base, e) : 0;
    if (f->kind == FIELD_STRING) { /* lives as long as the table */
        put(f, base, &f->fallback, sizeof(f->fallback));
        return 0;
    }
    if (text)
        v = json_string(f->fallback);
    else if (json_parse(f->fallback, strlen(f->fallback), f->key, &v, e) < 0)
        return -1;
    n.v = v;
    return READ[f->kind](f, &n, base, e);
}

static int read_field(const struct field *f, const struct node *parent, void *base, struct err *e)
{
    struct node n = node_get(parent, f->key);

    if (json_is_null(n.v) && f->kind == FIELD_TABLE)
        return node_error(&n, e, "is empty; write '%s: {}', or leave it out", f->key);
    if (node_present(&n))
        return READ[f->kind](f, &n, base, e);
    if (f->required && parent->v != NULL)
        return node_error(parent, e, "'%s' is missing", f->key);
    n.v = NULL;
    if (f->kind == FIELD_TABLE)
        return f->alias ? 0 : read_table(f, &n, base, e);
    return read_fallback(f, &n, base, e);
}

int fields_read(const struct field_table *t, const struct node *n, void *base, struct err *e)
{
    const char *keys[KEYS_MAX] = { NULL };
    size_t nkeys = MIN(t->nrows, (size_t)KEYS_MAX);

    for (size_t i = 0; i < nkeys; i++)
        keys[i] = t->rows[i].key;
    if (n->v != NULL && node_object(n, e) < 0)
        return -1;
    bool failed = n->v != NULL && node_only(n, keys, nkeys, e) < 0;
    for (size_t i = 0; i < nkeys && (!failed || node_collects(n)); i++)
        failed |= read_field(&t->rows[i], n, base, e) < 0;
    if (failed)
        return -1;
    return n->v != NULL && t->check != NULL ? t->check(base, n, e) : 0;
}
