/* Gathers records of arrays in Fortran order. The places of a block of elements are computed once and hold for every
 * record, because element i of the next record is the next element in the file. */
#include "data/array_order.h"

#include <string.h>

enum { BLOCK = 64 }; /* elements of each record that are copied before the next ones: their cache lines fit the cache */

/* Goes through the elements of a record in C order. */
struct order_walk {
    size_t stride[SHAPE_MAX_RANK]; /* bytes from one index of a dimension to the next */
    int64_t index[SHAPE_MAX_RANK];
    size_t offset; /* bytes from the record's first element */
};

static struct order_walk walk_start(const struct array *a)
{
    struct order_walk w = { .stride = { dtype_size(a->dtype) } };
    for (int axis = 1; axis < a->shape.rank; axis++)
        w.stride[axis] = w.stride[axis - 1] * (size_t)a->shape.dim[axis - 1];
    return w;
}

static void walk_next(struct order_walk *w, const struct shape *shape)
{
    for (int axis = shape->rank - 1; axis > 0; axis--) {
        w->offset += w->stride[axis];
        if (++w->index[axis] < shape->dim[axis])
            return;
        w->offset -= w->stride[axis] * (size_t)shape->dim[axis];
        w->index[axis] = 0;
    }
}

typedef void gather_fn(const unsigned char *src, const size_t *offset, unsigned char *dst, size_t n);

#define GATHER(name, bytes)                                                                                            \
    static void name(const unsigned char *src, const size_t *offset, unsigned char *dst, size_t n)                     \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++)                                                                                 \
            memcpy(dst + i * (bytes), src + offset[i], bytes);                                                         \
    }
GATHER(gather_1, 1)
GATHER(gather_2, 2)
GATHER(gather_4, 4)
GATHER(gather_8, 8)
static gather_fn *const GATHERS[] = { [1] = gather_1, [2] = gather_2, [4] = gather_4, [8] = gather_8 };

void array_rows(const struct array *a, const int64_t *which, size_t n, dtype_to_floats *convert, void *ret)
{
    size_t bytes = dtype_size(a->dtype), count = shape_elements(&a->shape) / (size_t)a->shape.dim[0];
    size_t offset[BLOCK];
    unsigned char block[BLOCK * sizeof(uint64_t)];
    struct order_walk w = walk_start(a);

    for (size_t first = 0, part; first < count; first += part) {
        for (part = 0; part < BLOCK && first + part < count; part++) {
            offset[part] = w.offset;
            walk_next(&w, &a->shape);
        }
        for (size_t i = 0; i < n; i++) {
            const unsigned char *record = a->data + (which != NULL ? (size_t)which[i] : i) * bytes;
            size_t to = i * count + first;
            GATHERS[bytes](record, offset, convert != NULL ? block : (unsigned char *)ret + to * bytes, part);
            if (convert != NULL)
                convert(block, (float *)ret + to, part);
        }
    }
}
