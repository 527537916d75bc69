/* gzip - gzip files (RFC 1952, any number of members), unpacked in one pass. gzip.c is the only user of zlib. */
#ifndef TRAINYARD_DATA_GZIP_H
#define TRAINYARD_DATA_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

bool gzip_is(const void *data, size_t n); /* begins like one */

/* Hands the content over in pieces. Checks lengths and CRCs; ERR_INPUT names `name` and the offset in the packed
 * file. A failing sink ends it with the sink's error. */
typedef int gzip_sink(void *user, const void *data, size_t n, struct err *e);
MUST_USE int gzip_unpack(const void *data, size_t n, const char *name, gzip_sink *sink, void *user, struct err *e);

#endif
