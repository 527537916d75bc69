/* dtype_convert - from elements as they are stored in a file to the types used in training. Inside of lib/data. Pure.
 *
 * Sources need no alignment. Conversions are those of C (and numpy's astype): 64-bit numbers are rounded to the nearest
 * float; uint8 255 becomes 255.0.
 */
#ifndef TRAINYARD_DATA_DTYPE_CONVERT_H
#define TRAINYARD_DATA_DTYPE_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tensor/tensor.h"

/* n elements at src to dst. */
typedef void dtype_to_floats(const unsigned char *src, float *dst, size_t n);
/* The function for a type. swap: the file has the other byte order. NULL: the type is not supported. */
dtype_to_floats *dtype_float_converter(enum dtype dtype, bool swap);

bool dtype_is_integer(enum dtype dtype); /* bool counts as one */
/* One element of an integer type; values above INT64_MAX are cut to it. */
int64_t dtype_to_int(enum dtype dtype, bool swap, const unsigned char *src);

#endif
