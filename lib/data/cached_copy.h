/* cached_copy - inside of data/files.h: what is made from a file of the user, such as its unpacked content, once in the
 * cache folder. */
#ifndef TRAINYARD_DATA_CACHED_COPY_H
#define TRAINYARD_DATA_CACHED_COPY_H

#include "data/files.h"

struct cached_copy {
    const char *name; /* with key: its name in the cache. Equal keys of one name stand for equal content */
    uint64_t key;
    const char *path;       /* of the user's file; for messages */
    const char *what, *how; /* "gzip" and "decompress"; for messages */
};

/* Writes the content. The file is committed afterwards. */
typedef int cached_copy_writer(void *user, struct file_out *out, struct err *e);

/* Maps the copy, which is written first when there is none. Any number of processes may do so at once: one writes, the
 * others wait for it. Without a cache folder ERR_INPUT. */
MUST_USE int cached_copy_open(const struct data_place *at, const struct cached_copy *c, cached_copy_writer *write,
                              void *user, struct file_map **ret, struct err *e);
bool cached_copy_exists(const struct data_place *at, const struct cached_copy *c);

#endif
