/* tensor_element - one element of a tensor as text, and as a number for statistics. */
#ifndef TRAINYARD_CLI_TENSOR_ELEMENT_H
#define TRAINYARD_CLI_TENSOR_ELEMENT_H

#include "base/buf.h"
#include "tensor/tensor.h"

/* Element i of little-endian bytes. Complex numbers: the real part. NaN for unknown types. */
double tensor_element_number(enum dtype dtype, const void *data, size_t i);
/* Integers in full, floats with the fewest digits that distinguish them, "(1+2j)", "true". */
void tensor_element_text(enum dtype dtype, const void *data, size_t i, struct buf *out);
/* "a\x00b": printable ASCII unchanged, all other bytes escaped, cut at `limit` bytes. */
void tensor_element_string(const char *bytes, size_t n, size_t limit, struct buf *out);

#endif
