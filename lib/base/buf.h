/* buf - a growing byte buffer, and a checked reader over bytes.
 *
 * Invariant: data is never NULL and data[len] is 0, so a buf is also a C string. Growth aborts on out-of-memory.
 * Callers bound what they append when the size comes from outside.
 */
#ifndef TRAINYARD_BASE_BUF_H
#define TRAINYARD_BASE_BUF_H

#include <stdarg.h>

#include "base/mem.h"

struct buf {
    char *data;
    size_t len, cap;
};

extern char buf_empty[1]; /* what data points to before the first append; never written to */
#define BUF_INIT                                                                                                       \
    {                                                                                                                  \
        .data = buf_empty, .len = 0, .cap = 0                                                                          \
    }

void buf_fini(struct buf *b);
DEFINE_AUTO_FINI(buf, buf_fini);
void buf_clear(struct buf *b); /* len = 0, keeps the memory */
void buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *data, size_t n);
void buf_str(struct buf *b, const char *s);
void buf_char(struct buf *b, char c);
/* Text for a terminal or a log: control characters but tabs become spaces, and bytes that are not UTF-8 '?'. */
void buf_shown(struct buf *b, const char *s, size_t n);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
void buf_u16le(struct buf *b, uint16_t v);
void buf_u32le(struct buf *b, uint32_t v);
void buf_u64le(struct buf *b, uint64_t v);
/* Returns the bytes, which the caller frees; the buf is empty afterwards. */
char *buf_detach(struct buf *b);

/* reader - takes values off the front of a byte range. Every call checks what is left. A failed call returns -1 and
 * leaves the position unchanged. It fills no err, because the caller knows the file's name. */
struct reader {
    const unsigned char *p, *end;
};
struct reader reader_of(const void *data, size_t n);
size_t reader_left(const struct reader *r);
MUST_USE int reader_bytes(struct reader *r, size_t n, const void **ret);
MUST_USE int reader_u8(struct reader *r, uint8_t *ret);
MUST_USE int reader_u32le(struct reader *r, uint32_t *ret);
MUST_USE int reader_u64le(struct reader *r, uint64_t *ret);
MUST_USE int reader_u32be(struct reader *r, uint32_t *ret);
MUST_USE int reader_varint(struct reader *r, uint64_t *ret); /* LEB128, at most 10 bytes */

#endif
