/* put_zip - zip archives as numpy.savez and numpy.savez_compressed write them, apart from the order of the bytes. */
#ifndef TRAINYARD_TEST_PUT_ZIP_H
#define TRAINYARD_TEST_PUT_ZIP_H

#include <string.h>
#include <zlib.h>

#include "base/buf.h"

struct zip_out {
    struct buf *out;
    struct buf directory;
    uint16_t count;
};

static inline void put_zip_deflated(struct buf *ret, const void *data, size_t n)
{
    z_stream s = { .next_in = (unsigned char *)(uintptr_t)data, .avail_in = (uInt)n };
    auto_free unsigned char *out = NULL;
    (void)!deflateInit2(&s, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    s.avail_out = (uInt)deflateBound(&s, n);
    s.next_out = out = xmalloc(s.avail_out);
    (void)!deflate(&s, Z_FINISH);
    buf_add(ret, out, s.total_out);
    deflateEnd(&s);
}

/* Version, flags, method, time, date, CRC-32, both sizes, the name's length: what both headers of a member hold. */
static inline void put_zip_common(struct buf *b, bool deflated, const char *name, uint32_t crc, size_t packed, size_t n)
{
    buf_u16le(b, 20);
    buf_u16le(b, 0);
    buf_u16le(b, deflated ? 8 : 0);
    buf_u32le(b, 0);
    buf_u32le(b, crc);
    buf_u32le(b, (uint32_t)packed);
    buf_u32le(b, (uint32_t)n);
    buf_u16le(b, (uint16_t)strlen(name));
    buf_u16le(b, 0);
}

static inline void put_zip_member(struct zip_out *z, const char *name, const void *data, size_t n, bool deflated)
{
    AUTO_FINI(buf) packed = BUF_INIT;
    uint32_t crc = (uint32_t)crc32_z(0, data, n), local = (uint32_t)z->out->len;
    if (deflated)
        put_zip_deflated(&packed, data, n);
    else
        buf_add(&packed, data, n);
    buf_str(z->out, "PK\3\4");
    put_zip_common(z->out, deflated, name, crc, packed.len, n);
    buf_str(z->out, name);
    buf_add(z->out, packed.data, packed.len);

    buf_str(&z->directory, "PK\1\2");
    buf_u16le(&z->directory, 20);
    put_zip_common(&z->directory, deflated, name, crc, packed.len, n);
    buf_u16le(&z->directory, 0);
    buf_u32le(&z->directory, 0);
    buf_u32le(&z->directory, 0);
    buf_u32le(&z->directory, local);
    buf_str(&z->directory, name);
    z->count++;
}

static inline void put_zip_end(struct zip_out *z)
{
    uint32_t at = (uint32_t)z->out->len;
    buf_add(z->out, z->directory.data, z->directory.len);
    buf_str(z->out, "PK\5\6");
    buf_u32le(z->out, 0);
    buf_u16le(z->out, z->count);
    buf_u16le(z->out, z->count);
    buf_u32le(z->out, (uint32_t)z->directory.len);
    buf_u32le(z->out, at);
    buf_u16le(z->out, 0);
    buf_fini(&z->directory);
}

#endif
