/* base64 - RFC 4648's usual alphabet, as in kubeconfig files and Secrets. Pure. */
#ifndef TRAINYARD_CODEC_BASE64_H
#define TRAINYARD_CODEC_BASE64_H

#include "base/buf.h"

/* Appends the bytes. Line ends are skipped; padding is needed, and nothing may follow it. ERR_INPUT names the place.
 * On failure *out is unchanged. */
MUST_USE int base64_decode(const char *text, size_t n, struct buf *out, struct err *e);
void base64_encode(const void *data, size_t n, struct buf *out); /* appends; no line ends */

#endif
