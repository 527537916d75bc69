/* named_array - the arrays that a file of weights holds, by name. The elements lie in the file's bytes. */
#ifndef TRAINYARD_DATA_NAMED_ARRAY_H
#define TRAINYARD_DATA_NAMED_ARRAY_H

#include "data/arrays.h"

struct named_array {
    char *name;         /* "dense/kernel"; in HDF5 the path, "layers/dense/vars/0" */
    char *owner;        /* HDF5: the attribute `name` of its group, Keras's name of the layer; NULL: none */
    const char *unread; /* why it cannot be read; NULL: `array` is valid */
    struct array array;
};
struct named_arrays {
    struct named_array *items;
    size_t n, cap;
};

/* Takes both strings. */
struct named_array *named_arrays_add(struct named_arrays *l, char *name, char *owner);
void named_arrays_fini(struct named_arrays *l);
DEFINE_AUTO_FINI(named_arrays, named_arrays_fini);

/* https://github.com/huggingface/safetensors */
bool safetensors_is(const void *data, size_t n);
MUST_USE int safetensors_read(const void *data, size_t n, const char *label, struct named_arrays *ret, struct err *e);

/* HDF5 as h5py and Keras write it: superblock 0 or 1, groups as symbol tables, contiguous or compact datasets. Newer
 * parts of the format (chunks, filters, object headers of version 2) are refused by name, or make an array unread.
 * Bounds: depth, objects, names, and every address against the file's bytes; a file that points at itself ends at these
 * bounds. */
bool h5_is(const void *data, size_t n);
MUST_USE int h5_read(const void *data, size_t n, const char *label, struct named_arrays *ret, struct err *e);

#endif
