/* array_order - arrays in Fortran order (the first index is the fastest), read in C order (the last one is). Inside of
 * lib/data. Pure.
 *
 * A record, one index of the first dimension, has its elements all over such an array. They are gathered from there:
 * the array may be larger than memory. Records of one call share cache lines when they are near each other.
 */
#ifndef TRAINYARD_DATA_ARRAY_ORDER_H
#define TRAINYARD_DATA_ARRAY_ORDER_H

#include "data/arrays.h"
#include "data/dtype_convert.h"

/* Records which[0..n) of an array with a->fortran, one after the other, each in C order. which NULL: all records from 0
 * on. With convert (dtype_float_converter) ret is float, with NULL the elements stay as they are in the file. Elements
 * have 1, 2, 4 or 8 bytes. Allocates nothing. */
void array_rows(const struct array *a, const int64_t *which, size_t n, dtype_to_floats *convert, void *ret);

#endif
