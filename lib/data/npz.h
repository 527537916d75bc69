/* npz - one array of an archive of arrays, as numpy.savez and numpy.savez_compressed write it. Inside of lib/data. */
#ifndef TRAINYARD_DATA_NPZ_H
#define TRAINYARD_DATA_NPZ_H

#include "data/files.h"

/* The NPY bytes of the array that spec key `key` ("features", "labels") names, in the archive that spec.files names.
 * They are in ret's map. For stored members that is the map of the archive. For deflated ones it is the map of a
 * file in the cache folder, which is made once and is bounded like any other. ret->path names archive and array. */
MUST_USE int npz_open(const struct data_place *at, const char *key, const char *array, struct data_file *ret,
                      const void **ret_bytes, size_t *ret_n, struct err *e);

#endif
