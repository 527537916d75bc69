/* NPY (numpy/lib/format.py): 93 "NUMPY" major minor, length of the header (u16, from version 2 on u32), a Python
 * dict literal {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, spaces and a newline, the elements. */
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "data/arrays.h"
#include "data/file_kind.h"

enum { HEADER_MAX = 1 << 20, DESCR_MAX = 64 };

/* A walk over the dict literal. */
struct dict {
    const char *p, *end;
    char descr[DESCR_MAX];
    bool fortran, has_descr, has_order, has_shape;
    struct shape shape;
};

static char peek(struct dict *d) /* next character other than a space; 0 at the end */
{
    while (d->p < d->end && (*d->p == ' ' || *d->p == '\n' || *d->p == '\t'))
        d->p++;
    return d->p < d->end ? *d->p : '\0';
}

static bool take(struct dict *d, char c)
{
    if (peek(d) != c)
        return false;
    d->p++;
    return true;
}

static bool take_word(struct dict *d, const char *word)
{
    size_t n = strlen(word);
    peek(d);
    if ((size_t)(d->end - d->p) < n || memcmp(d->p, word, n) != 0)
        return false;
    d->p += n;
    return true;
}

static bool take_string(struct dict *d, char *out, size_t out_size)
{
    char quote = peek(d);
    if (quote != '\'' && quote != '"')
        return false;
    const char *start = ++d->p, *close = memchr(start, quote, (size_t)(d->end - start));
    if (close == NULL || (size_t)(close - start) >= out_size)
        return false;
    memcpy(out, start, (size_t)(close - start));
    out[close - start] = '\0';
    d->p = close + 1;
    return true;
}

static bool take_dimension(struct dict *d, int64_t *ret)
{
    int64_t v = 0;
    if (peek(d) < '0' || *d->p > '9')
        return false;
    for (; d->p < d->end && *d->p >= '0' && *d->p <= '9'; d->p++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *d->p - '0', &v))
            return false;
    take(d, 'L'); /* Python 2 wrote long integers */
    *ret = v;
    return true;
}

static bool take_shape(struct dict *d)
{
    if (!take(d, '('))
        return false;
    while (!take(d, ')')) {
        if (d->shape.rank == SHAPE_MAX_RANK || !take_dimension(d, &d->shape.dim[d->shape.rank++]))
            return false;
        if (!take(d, ',') && peek(d) != ')')
            return false;
    }
    return true;
}

static bool take_item(struct dict *d)
{
    char key[DESCR_MAX];
    if (!take_string(d, key, sizeof(key)) || !take(d, ':'))
        return false;
    if (str_eq(key, "descr"))
        return d->has_descr = take_string(d, d->descr, sizeof(d->descr));
    if (str_eq(key, "fortran_order")) {
        d->fortran = take_word(d, "True");
        return d->has_order = d->fortran || take_word(d, "False");
    }
    return str_eq(key, "shape") && !d->has_shape && (d->has_shape = take_shape(d));
}

static bool take_dict(struct dict *d)
{
    if (!take(d, '{'))
        return false;
    while (!take(d, '}'))
        if (!take_item(d) || (!take(d, ',') && peek(d) != '}'))
            return false;
    return d->has_descr && d->has_order && d->has_shape;
}

/* '<f4': byte order, kind, bytes. */
static const struct {
    const char *name;
    enum dtype dtype;
} NPY_TYPES[] = {
    { "b1", DT_BOOL },   { "i1", DT_INT8 },  { "i2", DT_INT16 },  { "i4", DT_INT32 },
    { "i8", DT_INT64 },  { "u1", DT_UINT8 }, { "u2", DT_UINT16 }, { "u4", DT_UINT32 },
    { "u8", DT_UINT64 }, { "f2", DT_HALF },  { "f4", DT_FLOAT },  { "f8", DT_DOUBLE },
};

static int parse_type(const char *descr, const char *name, struct array *a, struct err *e)
{
    for (size_t i = 0; i < COUNT_OF(NPY_TYPES); i++) {
        if (descr[0] == '\0' || strchr("<>|=", descr[0]) == NULL || !str_eq(descr + 1, NPY_TYPES[i].name))
            continue;
        a->dtype = NPY_TYPES[i].dtype;
        a->swap = descr[0] == '>' && dtype_size(a->dtype) > 1;
        return 0;
    }
    return err_set(e, ERR_INPUT, "%s: elements of type '%s' cannot be read; save numbers: array.astype('float32')",
                   name, descr);
}

static int take_header(struct reader *r, const char *name, struct dict *ret, struct err *e)
{
    static const unsigned char MAGIC[6] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };
    const void *magic, *text;
    uint8_t major, minor, low, high;
    uint32_t length;
    if (reader_bytes(r, sizeof(MAGIC), &magic) < 0 || memcmp(magic, MAGIC, sizeof(MAGIC)) != 0)
        return err_set(e, ERR_INPUT, "%s: does not begin like an NPY file (93 NUMPY)", name);
    if (reader_u8(r, &major) < 0 || reader_u8(r, &minor) < 0)
        return err_set(e, ERR_INPUT, "%s: ends within its header", name);
    if (major < 1 || major > 3)
        return err_set(e, ERR_INPUT, "%s: NPY version %d.%d, 1 to 3 can be read", name, major, minor);
    if (major == 1) {
        if (reader_u8(r, &low) < 0 || reader_u8(r, &high) < 0)
            return err_set(e, ERR_INPUT, "%s: ends within its header", name);
        length = (uint32_t)low | (uint32_t)high << 8;
    } else if (reader_u32le(r, &length) < 0) {
        return err_set(e, ERR_INPUT, "%s: ends within its header", name);
    }
    if (length > HEADER_MAX || reader_bytes(r, length, &text) < 0)
        return err_set(e, ERR_INPUT, "%s: ends within its header of %u bytes", name, length);
    *ret = (struct dict){ .p = text, .end = (const char *)text + length };
    return 0;
}

/* C order and Fortran order differ where two dimensions have more than one index, unless there are no elements. */
static bool orders_differ(const struct shape *s)
{
    int longer = 0;
    for (int axis = 0; axis < s->rank; axis++) {
        if (s->dim[axis] == 0)
            return false;
        longer += s->dim[axis] > 1;
    }
    return longer > 1;
}

int npy_parse(const void *data, size_t n, const char *name, struct array *ret, struct err *e)
{
    struct reader r = reader_of(data, n);
    struct dict d;
    struct array a = { .data = NULL };

    if (file_kind_check(data, n, name, "npy", e) < 0 || take_header(&r, name, &d, e) < 0)
        return -1;
    if (!take_dict(&d))
        return err_set(e, ERR_INPUT,
                       "%s: its header cannot be read from byte %td on (structured types and more than "
                       "%d dimensions cannot be read)",
                       name, d.p - (const char *)data, SHAPE_MAX_RANK);
    if (parse_type(d.descr, name, &a, e) < 0)
        return -1;
    if (d.shape.rank == 0)
        return err_set(e, ERR_INPUT, "%s: is a single number; the first dimension must count examples", name);
    a.shape = d.shape;
    a.fortran = d.fortran && orders_differ(&d.shape);
    a.data = r.p;
    if (array_check_size(&a, n - reader_left(&r), n, name, e) < 0)
        return -1;
    *ret = a;
    return 0;
}
