/* npz - one array of an archive of arrays, as numpy.savez and numpy.savez_compressed write it. Inside of lib/data. */
#ifndef TRAINYARD_DATA_NPZ_H
#define TRAINYARD_DATA_NPZ_H

#include "data/files.h"

/* The NPY bytes of the array that spec key `key` ("features", "labels") names, in the archive that spec.files names.
 * They lie in ret's map: of the archive where they are stored; of a file in the cache folder, made once and bounded
 * like any other, where they are deflated. ret->path names archive and array. */
MUST_USE int npz_open(const struct data_place *at, const char *key, const char *array, struct data_file *ret,
                      const void **ret_bytes, size_t *ret_n, struct err *e);

#endif
