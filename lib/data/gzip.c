/* Inflates gzip, zlib and raw deflate data in pieces. Truncated, damaged and trailing data are errors with the offset
 * in the compressed bytes. */
#include "data/gzip.h"

#include <limits.h>
#include <zlib.h>

#include "base/mem.h"

enum { PIECE = 256 << 10 };

static const struct {
    const char *name;
    int window; /* zlib's: 15 is the largest; 16 more: a gzip header; below 0: no header */
} PACKINGS[] = {
    [PACKED_GZIP] = { "gzip", MAX_WBITS + 16 },
    [PACKED_ZLIB] = { "zlib", MAX_WBITS },
    [PACKED_DEFLATE] = { "deflate", -MAX_WBITS },
};

const char *packing_name(enum packing how)
{
    return PACKINGS[how].name;
}

bool gzip_is(const void *data, size_t n)
{
    const unsigned char *p = data;
    return n >= 3 && p[0] == 0x1f && p[1] == 0x8b && p[2] == 8; /* 8: deflate, the only method there is */
}

bool zlib_is(const void *data, size_t n)
{
    const unsigned char *p = data;
    return n >= 2 && (p[0] & 15) == 8 && p[0] >> 4 <= 7 && (p[1] & 32) == 0 && (p[0] << 8 | p[1]) % 31 == 0;
}

struct unpack {
    enum packing how;
    z_stream z;
    const unsigned char *data;
    size_t n, fed; /* bytes given to zlib */
    const char *name;
    unsigned char *piece;
};

static size_t taken(const struct unpack *u)
{
    return u->fed - u->z.avail_in;
}

static int damaged(const struct unpack *u, struct err *e)
{
    return err_set(e, ERR_INPUT, "%s: damaged %s data near byte %zu: %s", u->name, packing_name(u->how), taken(u),
                   u->z.msg != NULL ? u->z.msg : "no valid header");
}

static void feed(struct unpack *u)
{
    size_t n = MIN(u->n - u->fed, (size_t)UINT_MAX);
    u->z.next_in = (Bytef *)(uintptr_t)(u->data + u->fed); /* zlib's field is not const, but it only reads */
    u->z.avail_in = (uInt)n;
    u->fed += n;
}

/* One member, up to its checked end. */
static int unpack_member(struct unpack *u, decompress_sink *sink, void *user, struct err *e)
{
    for (;;) {
        if (u->z.avail_in == 0)
            feed(u);
        u->z.next_out = u->piece;
        u->z.avail_out = PIECE;
        int rc = inflate(&u->z, Z_NO_FLUSH);
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return damaged(u, e);
        size_t got = PIECE - u->z.avail_out;
        if (got > 0 && sink(user, u->piece, got, e) < 0)
            return -1;
        if (rc == Z_STREAM_END)
            return 0;
        if (got == 0 && u->z.avail_in == 0 && u->fed == u->n)
            return err_set(e, ERR_INPUT, "%s: the %s data ends too early, at byte %zu: copy the file again", u->name,
                           packing_name(u->how), u->n);
    }
}

static int unpack_all(struct unpack *u, decompress_sink *sink, void *user, struct err *e)
{
    do {
        if (u->how == PACKED_GZIP && !gzip_is(u->data + taken(u), u->n - taken(u)))
            return err_set(e, ERR_INPUT, "%s: byte %zu is not the start of gzip data", u->name, taken(u));
        if (unpack_member(u, sink, user, e) < 0)
            return -1;
        inflateReset(&u->z);
    } while (u->how == PACKED_GZIP && taken(u) < u->n);
    if (taken(u) < u->n)
        return err_set(e, ERR_INPUT, "%s: the %s data ends at byte %zu, and other data follows", u->name,
                       packing_name(u->how), taken(u));
    return 0;
}

int decompress_pieces(enum packing how, const void *data, size_t n, const char *name, decompress_sink *sink, void *user,
                      struct err *e)
{
    auto_free unsigned char *piece = xmalloc(PIECE);
    struct unpack u = { .how = how, .data = data, .n = n, .name = name, .piece = piece };

    if (inflateInit2(&u.z, PACKINGS[how].window) != Z_OK)
        return err_set(e, ERR_NOMEM, "%s: out of memory while decompressing", name);
    int rc = unpack_all(&u, sink, user, e);
    inflateEnd(&u.z);
    return rc;
}

uint32_t crc32_update(uint32_t crc, const void *data, size_t n)
{
    return (uint32_t)crc32_z(crc, data, n);
}
