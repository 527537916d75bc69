/* Any bytes as an NPY file: an accepted array is wholly within them, and its last record alone is the same. */
#include <stdlib.h>
#include <string.h>

#include "data/array_order.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The last record alone, against all of them. */
static void compare_last(const struct array *a, dtype_to_floats *convert, const float *all)
{
    int64_t last = a->shape.dim[0] - 1;
    size_t count = shape_elements(&a->shape) / (size_t)a->shape.dim[0];
    float *row = xmalloc(count * sizeof(*row));
    if (a->fortran)
        array_rows(a, &last, 1, convert, row);
    else
        convert(a->data + (size_t)last * count * dtype_size(a->dtype), row, count);
    if (memcmp(row, all + (size_t)last * count, count * sizeof(*row)) != 0)
        abort();
    free(row);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e = { .code = ERR_NONE };
    struct array a;
    if (npy_parse(data, size, "fuzz", &a, &e) < 0) {
        if (e.code != ERR_INPUT || e.msg[0] == '\0')
            abort();
        return 0;
    }
    size_t n = shape_elements(&a.shape), bytes = dtype_size(a.dtype);
    if (a.shape.rank < 1 || a.data < data || a.data + n * bytes != data + size)
        abort();
    dtype_to_floats *convert = dtype_float_converter(a.dtype, a.swap);
    float *x = xmalloc(n * sizeof(*x) + 1);
    if (array_floats(&a, x, &e) < 0)
        abort();
    if (n > 0)
        compare_last(&a, convert, x);
    free(x);
    return 0;
}
