/* tensor - shapes, element types and typed views of memory. A tensor here never owns its bytes. */
#ifndef TRAINYARD_TENSOR_TENSOR_H
#define TRAINYARD_TENSOR_TENSOR_H

#include "base/mem.h"

/* X(enum, name, bytes an element, TensorFlow's DataType number) */
#define DTYPES(X)                                                                                                      \
    X(DT_FLOAT, "float32", 4, 1)                                                                                       \
    X(DT_DOUBLE, "float64", 8, 2)                                                                                      \
    X(DT_INT32, "int32", 4, 3)                                                                                         \
    X(DT_UINT8, "uint8", 1, 4)                                                                                         \
    X(DT_INT16, "int16", 2, 5)                                                                                         \
    X(DT_INT8, "int8", 1, 6)                                                                                           \
    X(DT_STRING, "string", 0, 7)                                                                                       \
    X(DT_COMPLEX64, "complex64", 8, 8)                                                                                 \
    X(DT_INT64, "int64", 8, 9)                                                                                         \
    X(DT_BOOL, "bool", 1, 10)                                                                                          \
    X(DT_BFLOAT16, "bfloat16", 2, 14)                                                                                  \
    X(DT_UINT16, "uint16", 2, 17)                                                                                      \
    X(DT_COMPLEX128, "complex128", 16, 18)                                                                             \
    X(DT_HALF, "float16", 2, 19)                                                                                       \
    X(DT_UINT32, "uint32", 4, 22)                                                                                      \
    X(DT_UINT64, "uint64", 8, 23)
enum dtype {
#define X(id, name, bytes, tf) id = tf,
    DTYPES(X)
#undef X
};
const char *dtype_name(enum dtype d); /* "float32"; "unknown type" for other numbers */
size_t dtype_size(enum dtype d);      /* 0 for strings and other numbers */

enum { SHAPE_MAX_RANK = 8 };
struct shape {
    int rank;
    int64_t dim[SHAPE_MAX_RANK];
};
struct shape shape_of(int rank, const int64_t *dim);
bool shape_eq(const struct shape *a, const struct shape *b);
/* Product of the dimensions, checked; 1 for a scalar. */
MUST_USE int shape_count(const struct shape *s, size_t *ret, struct err *e);
size_t shape_elements(const struct shape *s);                 /* same, for shapes already checked */
const char *shape_text(const struct shape *s, char out[128]); /* "(28, 28)", "()", "(3,)" as Python */

struct named_shape { /* of a part of one example: an input, an output, a column */
    const char *name;
    struct shape shape;
};

struct tensor { /* row-major */
    enum dtype dtype;
    struct shape shape;
    void *data;
};

#endif
