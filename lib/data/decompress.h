/* decompress - inside of data/files.h: compressed files and members in the cache folder. */
#ifndef TRAINYARD_DATA_DECOMPRESS_H
#define TRAINYARD_DATA_DECOMPRESS_H

#include "data/files.h"
#include "data/gzip.h"

struct packed {
    enum packing how;
    const void *data;
    size_t n;
    const char *path; /* for messages */
    const char *what; /* "gzip": for messages */
    const char *name; /* with key: the name of its content in the cache */
    uint64_t key;
    bool sized; /* the size and checksum of the content are known: */
    uint64_t size;
    uint32_t crc;
};

/* Maps the unpacked content. Any number of processes may do so at once: one unpacks, the others wait for it. The
 * unpacked size is bounded by spec.maxUnpackedBytes, else by the packed size. */
MUST_USE int decompress_cached(const struct data_place *at, const struct packed *p, struct file_map **ret,
                               struct err *e);

#endif
