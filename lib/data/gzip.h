/* gzip - compressed bytes, unpacked in one pass: gzip (RFC 1952, any number of members), zlib (RFC 1950) and the bare
 * deflate (RFC 1951) that zip archives hold. */
#ifndef TRAINYARD_DATA_GZIP_H
#define TRAINYARD_DATA_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum packing { PACKED_GZIP, PACKED_ZLIB, PACKED_DEFLATE };
const char *packing_name(enum packing how);

bool gzip_is(const void *data, size_t n); /* begins like one */
bool zlib_is(const void *data,
             size_t n); /* its first two bytes are a valid header; those of many other files are, too */

/* Passes the content to the sink in pieces. Checks the lengths and checksums that the format has; ERR_INPUT names
 * `name` and the offset in the packed bytes. An error of the sink ends it and is returned. */
typedef int decompress_sink(void *user, const void *data, size_t n, struct err *e);
MUST_USE int decompress_pieces(enum packing how, const void *data, size_t n, const char *name, decompress_sink *sink,
                               void *user, struct err *e);
uint32_t crc32_update(uint32_t crc, const void *data, size_t n); /* CRC-32 so far (0: of nothing), with n bytes more */

#endif
