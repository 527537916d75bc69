/* safetensors - reads the arrays of a safetensors file. Nothing in the file is trusted: every offset is checked. */
#ifndef TRAINYARD_DATA_SAFETENSORS_H
#define TRAINYARD_DATA_SAFETENSORS_H

#include "data/named_array.h"

/* https://github.com/huggingface/safetensors */
bool safetensors_is(const void *data, size_t n);
MUST_USE int safetensors_read(const void *data, size_t n, const char *label, struct named_arrays *ret, struct err *e);

#endif
