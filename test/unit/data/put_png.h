/* put_png - writes PNG files for tests of lib/data: gray, 8 bits, all pixels of one value. */
#ifndef TRAINYARD_TEST_PUT_PNG_H
#define TRAINYARD_TEST_PUT_PNG_H

#include "data_help.h"

static inline void png_chunk(struct buf *out, const char *type, const void *data, size_t n)
{
    AUTO_FINI(buf) chunk = BUF_INIT;
    buf_str(&chunk, type);
    buf_add(&chunk, data, n);
    put_u32be(out, (uint32_t)n);
    buf_add(out, chunk.data, chunk.len);
    put_u32be(out, (uint32_t)crc32(0, (const unsigned char *)chunk.data, (unsigned)chunk.len));
}

static inline void make_png(struct buf *out, uint32_t width, uint32_t height, uint8_t value)
{
    AUTO_FINI(buf) header = BUF_INIT;
    AUTO_FINI(buf) pixels = BUF_INIT;
    put_u32be(&header, width);
    put_u32be(&header, height);
    buf_add(&header, "\x08\0\0\0\0", 5);
    for (uint32_t row = 0; row < height; row++) {
        buf_char(&pixels, 0); /* no filter */
        for (uint32_t i = 0; i < width; i++)
            buf_char(&pixels, (char)value);
    }
    uLongf size = compressBound(pixels.len);
    auto_free unsigned char *packed = xmalloc(size);
    ck_assert_int_eq(compress(packed, &size, (const unsigned char *)pixels.data, pixels.len), Z_OK);
    buf_add(out, "\x89PNG\r\n\x1a\n", 8);
    png_chunk(out, "IHDR", header.data, header.len);
    png_chunk(out, "IDAT", packed, size);
    png_chunk(out, "IEND", "", 0);
}

/* Makes the directories of `name`, too. */
static inline void put_png(const struct folder *f, const char *name, uint32_t width, uint32_t height, uint8_t value)
{
    AUTO_FINI(buf) out = BUF_INIT;
    struct err e;
    auto_free char *path = path_join(f->path, name);
    auto_free char *directory = path_dir(path);
    make_png(&out, width, height, value);
    ck_ok_e(dir_make(directory, &e));
    ck_ok_e(file_write(path, out.data, out.len, &e));
}

#endif
