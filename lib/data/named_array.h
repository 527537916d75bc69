/* named_array - the arrays that a file of weights holds, by name. The elements are in the file's bytes. */
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

#endif
