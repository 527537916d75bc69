/* zip - reads zip archives (PKWARE APPNOTE, with ZIP64) from memory: npz and .keras files. Members are stored or
 * deflated.
 *
 * Nothing in the archive is trusted. Every offset and size is checked against the available bytes, and the content of a
 * member against its size and CRC-32.
 */
#ifndef TRAINYARD_DATA_ZIP_H
#define TRAINYARD_DATA_ZIP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

struct zip_member {
    char *name;
    uint64_t size;   /* of the content */
    uint64_t packed; /* bytes in the archive */
    uint64_t local;  /* offset of its header */
    uint32_t crc;
    uint16_t method, flags;
};
struct zip_archive {
    const unsigned char *data; /* borrowed */
    size_t n;
    char *label; /* for messages */
    struct zip_member *members;
    size_t count;
};

bool zip_is(const void *data, size_t n); /* begins like one */
MUST_USE int zip_open(const void *data, size_t n, const char *label, struct zip_archive *ret, struct err *e);
void zip_archive_fini(struct zip_archive *z);
DEFINE_AUTO_FINI(zip_archive, zip_archive_fini);
/* The place of a member; z->count: none. */
size_t zip_find(const struct zip_archive *z, const char *name);
/* The member's bytes as they are stored in the archive, packed when its method is 8 (deflate), else stored. Their
 * checksum is not verified. */
MUST_USE int zip_bytes(const struct zip_archive *z, size_t i, const unsigned char **ret, struct err *e);
/* The content: in *ret_owned (free() it) when it was deflated, else in the archive's bytes and *ret_owned is NULL. */
MUST_USE int zip_read(const struct zip_archive *z, size_t i, const void **ret, void **ret_owned, struct err *e);

#endif
