/* Any bytes as an NPY file: an array that was accepted is wholly within them. */
#include <stdlib.h>

#include "data/arrays.h"
#include "data/dtype_convert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
    convert(a.data, x, n);
    free(x);
    return 0;
}
