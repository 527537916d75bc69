/* unpack - inside of data/files.h: gzip files in the cache folder. */
#ifndef TRAINYARD_DATA_UNPACK_H
#define TRAINYARD_DATA_UNPACK_H

#include "data/files.h"

/* Maps the unpacked content of `packed`; `name` and `key` name it in the cache. Any number of processes may do so
 * at once: one unpacks, the others wait for it. */
MUST_USE int unpack_gzip(const struct data_place *at, const struct file_map *packed, const char *name, uint64_t key,
                         struct file_map **ret, struct err *e);

#endif
