/* Growth is by half of the capacity, so that appending n bytes costs O(n). The byte after the last one is always
 * NUL, also in the shared empty buffer, which is never written to. */
#include "base/buf.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

char buf_empty[1];

void buf_fini(struct buf *b)
{
    if (b->data != buf_empty)
        free(b->data);
    *b = (struct buf)BUF_INIT;
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->data != buf_empty)
        b->data[0] = '\0';
}

void buf_reserve(struct buf *b, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(b->len, more, &need) || need >= PTRDIFF_MAX)
        need = SIZE_MAX - 1; /* cannot be had: xrealloc aborts with its message */
    if (need < b->cap)
        return;

    size_t cap = MAX(need + 1, MAX(b->cap + b->cap / 2, 64));
    bool fresh = b->data == buf_empty;
    b->data = xrealloc(fresh ? NULL : b->data, cap);
    if (fresh)
        b->data[0] = '\0';
    b->cap = cap;
}

void buf_add(struct buf *b, const void *data, size_t n)
{
    if (n == 0)
        return;
    buf_reserve(b, n);
    memcpy(b->data + b->len, data, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void buf_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_char(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

void buf_shown(struct buf *b, const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s, *end = p + n;
    for (size_t len; p < end; p += len) {
        char instead = utf8_shown(p, (size_t)(end - p), &len);
        if (instead == '\0' || *p == '\t')
            buf_add(b, p, len);
        else
            buf_char(b, instead);
    }
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(b, fmt, ap);
    va_end(ap);
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    buf_reserve(b, 64);
    int n = vsnprintf(b->data + b->len, b->cap - b->len, fmt, ap);
    if (n > 0 && (size_t)n >= b->cap - b->len) {
        buf_reserve(b, (size_t)n);
        n = vsnprintf(b->data + b->len, b->cap - b->len, fmt, again);
    }
    va_end(again);
    if (n > 0)
        b->len += (size_t)n;
    b->data[b->len] = '\0';
}

static void add_le(struct buf *b, uint64_t v, size_t bytes)
{
    unsigned char raw[8];
    for (size_t i = 0; i < bytes; i++)
        raw[i] = (unsigned char)(v >> (8 * i));
    buf_add(b, raw, bytes);
}

void buf_u16le(struct buf *b, uint16_t v)
{
    add_le(b, v, 2);
}

void buf_u32le(struct buf *b, uint32_t v)
{
    add_le(b, v, 4);
}

void buf_u64le(struct buf *b, uint64_t v)
{
    add_le(b, v, 8);
}

char *buf_detach(struct buf *b)
{
    if (b->data == buf_empty)
        return xstrdup("");
    char *data = b->data;
    *b = (struct buf)BUF_INIT;
    return data;
}

struct reader reader_of(const void *data, size_t n)
{
    const unsigned char *p = data;
    return (struct reader){ .p = p, .end = n > 0 ? p + n : p };
}

size_t reader_left(const struct reader *r)
{
    return (size_t)(r->end - r->p);
}

int reader_bytes(struct reader *r, size_t n, const void **ret)
{
    if (n > reader_left(r))
        return -1;
    *ret = r->p;
    if (n > 0)
        r->p += n;
    return 0;
}

int reader_u8(struct reader *r, uint8_t *ret)
{
    if (reader_left(r) < 1)
        return -1;
    *ret = *r->p++;
    return 0;
}

static int take_le(struct reader *r, size_t bytes, uint64_t *ret)
{
    if (reader_left(r) < bytes)
        return -1;
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)r->p[i] << (8 * i);
    r->p += bytes;
    *ret = v;
    return 0;
}

int reader_u32le(struct reader *r, uint32_t *ret)
{
    uint64_t v;
    if (take_le(r, 4, &v) < 0)
        return -1;
    *ret = (uint32_t)v;
    return 0;
}

int reader_u64le(struct reader *r, uint64_t *ret)
{
    return take_le(r, 8, ret);
}

int reader_u32be(struct reader *r, uint32_t *ret)
{
    uint64_t v;
    if (take_le(r, 4, &v) < 0)
        return -1;
    *ret = __builtin_bswap32((uint32_t)v);
    return 0;
}

int reader_varint(struct reader *r, uint64_t *ret)
{
    uint64_t v = 0;
    for (size_t i = 0; i < 10 && i < reader_left(r); i++) {
        uint64_t byte = r->p[i];
        if (i == 9 && byte > 1) /* would not fit in 64 bits */
            return -1;
        v |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            r->p += i + 1;
            *ret = v;
            return 0;
        }
    }
    return -1;
}
