/* h5 - reads the arrays of an HDF5 file of weights. */
#ifndef TRAINYARD_DATA_H5_H
#define TRAINYARD_DATA_H5_H

#include "data/named_array.h"

/* HDF5 as h5py and Keras write it: superblock 0 or 1, groups as symbol tables, contiguous or compact datasets. Newer
 * parts of the format (chunks, filters, object headers of version 2) are refused by name, or make an array unread.
 * Bounds: depth, objects, names, and every address against the file's bytes; a file that refers to itself is stopped
 * by these bounds. */
bool h5_is(const void *data, size_t n);
MUST_USE int h5_read(const void *data, size_t n, const char *label, struct named_arrays *ret, struct err *e);

#endif
