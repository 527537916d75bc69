/* transcode - the encoding of a text, and its conversion to UTF-8. Inside of lib/data. Pure.
 *
 * UTF-8 and UTF-16 are those of chapter 3 of the Unicode Standard 15 (base/utf8.h). Windows-1252 is the index of the
 * WHATWG Encoding Standard: what browsers, and Excel, mean by Latin-1. It differs from ISO 8859-1 in the bytes 80 to
 * 9F, which are characters such as the euro sign. Five of them are not assigned and are the controls U+0081, U+008D,
 * U+008F, U+0090 and U+009D.
 */
#ifndef TRAINYARD_DATA_TRANSCODE_H
#define TRAINYARD_DATA_TRANSCODE_H

#include <stddef.h>

#include "base/err.h"

enum text_encoding { TEXT_UTF8, TEXT_UTF16LE, TEXT_UTF16BE, TEXT_WINDOWS_1252 };

/* Whether the text begins like UTF-16: with a byte order mark, or because of its first 4096 bytes at least 90 % of one
 * half, that of the even or that of the odd places, are 0, and at most 10 % of the other half. Else TEXT_UTF8. */
enum text_encoding transcode_guess(const unsigned char *p, size_t n);

/* The bytes before the first that is not ASCII, or not UTF-8; n when there is none. */
size_t transcode_ascii(const unsigned char *p, size_t n);
size_t transcode_utf8(const unsigned char *p, size_t n);

struct encoded_text {
    enum text_encoding encoding; /* not TEXT_UTF8 */
    const unsigned char *p;
    size_t n;
    const char *path; /* for messages */
};

/* Passes the text as UTF-8 to the sink, in pieces of whole characters, without the byte order mark of UTF-16. An odd
 * number of bytes of UTF-16, and a surrogate that is not part of a pair, are ERR_INPUT with the offset. Every byte of
 * Windows-1252 is valid. An error of the sink ends it and is returned. Output: at most 3 bytes for each character of
 * one or two bytes. */
typedef int transcode_sink(void *user, const void *data, size_t n, struct err *e);
MUST_USE int transcode_pieces(const struct encoded_text *t, transcode_sink *sink, void *user, struct err *e);

#endif
