/* arrays - one array in a file: idx.c and npy.c read its header, and arrays.c turns it into examples. */
#ifndef TRAINYARD_DATA_ARRAYS_H
#define TRAINYARD_DATA_ARRAYS_H

#include "tensor/tensor.h"

struct array {
    const unsigned char *data; /* points into the file's bytes */
    enum dtype dtype;
    bool swap;          /* elements have the other byte order */
    bool fortran;       /* the first index is the fastest; only npy. Else C order, as also where both are the same */
    struct shape shape; /* rank at least 1; the first dimension counts examples */
};

/* The array in the bytes of a whole file. `name` is for messages. Sizes are checked against the available bytes.
 * idx: http://yann.lecun.com/exdb/mnist; npy: numpy/lib/format.py, versions 1 to 3, C or Fortran order. */
MUST_USE int idx_parse(const void *data, size_t n, const char *name, struct array *ret, struct err *e);
MUST_USE int npy_parse(const void *data, size_t n, const char *name, struct array *ret, struct err *e);

/* All elements as floats in C order; ERR_INPUT for a type that is not a real number. */
MUST_USE int array_floats(const struct array *a, float *ret, struct err *e);

/* Checks that header_bytes and the array are exactly the n bytes of the file. */
MUST_USE int array_check_size(const struct array *a, size_t header_bytes, size_t n, const char *name, struct err *e);

#endif
