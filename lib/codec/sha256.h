/* sha256 - SHA-256 (FIPS 180-4) by OpenSSL, as text. Thread-safe. */
#ifndef TRAINYARD_CODEC_SHA256_H
#define TRAINYARD_CODEC_SHA256_H

#include <stddef.h>

#include "base/err.h"

enum { SHA256_TEXT = 65 }; /* 64 hexadecimal digits and the end */

struct sha256_range {
    const void *data;
    size_t size;
};
/* Of all ranges, one after the other. ERR_INTERNAL: OpenSSL has no SHA-256 here, or no memory. */
MUST_USE int sha256_ranges(const struct sha256_range *ranges, size_t n, char ret[SHA256_TEXT], struct err *e);
/* 64 lower-case hexadecimal digits. */
bool sha256_is_text(const char *s);

#endif
