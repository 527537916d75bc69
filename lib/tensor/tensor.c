/* Element types and shapes; the sizes of shapes are checked against overflow. */
#include "tensor/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

struct dtype_row {
    enum dtype id;
    const char *name;
    size_t size;
};
static const struct dtype_row TYPES[] = {
#define X(id, name, bytes, tf) { id, name, bytes },
    DTYPES(X)
#undef X
};

static const struct dtype_row *find_type(enum dtype d)
{
    for (size_t i = 0; i < COUNT_OF(TYPES); i++) {
        if (TYPES[i].id == d)
            return &TYPES[i];
    }
    return NULL;
}

const char *dtype_name(enum dtype d)
{
    const struct dtype_row *row = find_type(d);
    return row != NULL ? row->name : "unknown type";
}

size_t dtype_size(enum dtype d)
{
    const struct dtype_row *row = find_type(d);
    return row != NULL ? row->size : 0;
}

struct shape shape_of(int rank, const int64_t *dim)
{
    struct shape s = { .rank = MIN(rank, (int)SHAPE_MAX_RANK) };
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = dim[i];
    return s;
}

bool shape_eq(const struct shape *a, const struct shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i] != b->dim[i])
            return false;
    }
    return true;
}

int shape_count(const struct shape *s, size_t *ret, struct err *e)
{
    size_t count = 1;
    if (s->rank < 0 || s->rank > SHAPE_MAX_RANK)
        return err_set(e, ERR_INPUT, "a shape of %d axes; at most %d", s->rank, SHAPE_MAX_RANK);
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] < 0)
            return err_set(e, ERR_INPUT, "negative dimension %" PRId64, s->dim[i]);
        if (size_mul(count, (size_t)s->dim[i], &count, e) < 0)
            return -1;
    }
    *ret = count;
    return 0;
}

size_t shape_elements(const struct shape *s)
{
    size_t count = 1;
    for (int i = 0; i < s->rank; i++)
        count *= (size_t)s->dim[i];
    return count;
}

const char *shape_text(const struct shape *s, char out[128])
{
    struct buf text = BUF_INIT;
    buf_char(&text, '(');
    for (int i = 0; i < s->rank; i++)
        buf_printf(&text, "%s%" PRId64, i > 0 ? ", " : "", s->dim[i]);
    buf_str(&text, s->rank == 1 ? ",)" : ")");
    str_fmt(out, 128, "%s", text.data);
    buf_fini(&text);
    return out;
}
