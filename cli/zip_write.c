/* Writes a zip archive with stored members: npz and .keras files. No ZIP64; larger content is an error. */
#include "zip_write.h"

#include <string.h>

enum { ROOM = 1 << 20 }; /* for headers and the directory, below 4 GiB */

/* CRC-32 of ISO 3309, reflected polynomial EDB88320, a nibble at a time. */
static uint32_t crc32_of(uint32_t crc, const void *data, size_t n)
{
    static const uint32_t TABLE[16] = { 0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
                                        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
                                        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c };
    const unsigned char *p = data;
    crc = ~crc;
    for (size_t i = 0; i < n; i++) {
        crc = TABLE[(crc ^ p[i]) & 15] ^ (crc >> 4);
        crc = TABLE[(crc ^ (uint32_t)(p[i] >> 4)) & 15] ^ (crc >> 4);
    }
    return ~crc;
}

/* Fields that a member's own header and its entry in the directory share. */
static void zip_common(struct buf *out, uint32_t crc, uint32_t size, size_t name_len)
{
    buf_u16le(out, 20); /* version needed: 2.0 */
    buf_u16le(out, 0);  /* flags */
    buf_u16le(out, 0);  /* stored */
    buf_u16le(out, 0);  /* time 00:00 */
    buf_u16le(out, 33); /* date 1980-01-01: the same input gives the same bytes */
    buf_u32le(out, crc);
    buf_u32le(out, size);
    buf_u32le(out, size);
    buf_u16le(out, (uint16_t)name_len);
    buf_u16le(out, 0); /* extra */
}

void zip_writer_fini(struct zip_writer *z)
{
    buf_fini(&z->directory);
}

int zip_add(struct zip_writer *z, const char *name, const struct buf *head, const void *body, size_t body_len,
            struct err *e)
{
    AUTO_FINI(buf) out = BUF_INIT;

    if (z->members >= 65534)
        return err_set(e, ERR_INPUT, "more than 65534 members do not fit into a zip archive");
    if (body_len > UINT32_MAX - ROOM || head->len > ROOM ||
        z->offset + body_len + z->directory.len > UINT32_MAX - 2 * ROOM)
        return err_set(e, ERR_INPUT, "more than 4 GiB do not fit into a zip archive");
    uint32_t crc = crc32_of(crc32_of(0, head->data, head->len), body, body_len);
    uint32_t size = (uint32_t)(head->len + body_len);
    buf_add(&out, "PK\3\4", 4);
    zip_common(&out, crc, size, strlen(name));
    buf_str(&out, name);
    buf_add(&out, head->data, head->len);
    if (z->sink->write(z->sink->user, out.data, out.len, e) < 0 || z->sink->write(z->sink->user, body, body_len, e) < 0)
        return -1;

    buf_add(&z->directory, "PK\1\2", 4);
    buf_u16le(&z->directory, 20); /* made by */
    zip_common(&z->directory, crc, size, strlen(name));
    buf_u16le(&z->directory, 0); /* comment */
    buf_u16le(&z->directory, 0); /* disk */
    buf_u16le(&z->directory, 0); /* internal attributes */
    buf_u32le(&z->directory, 0); /* external attributes */
    buf_u32le(&z->directory, (uint32_t)z->offset);
    buf_str(&z->directory, name);
    z->offset += out.len + body_len;
    z->members++;
    return 0;
}

int zip_finish(struct zip_writer *z, struct err *e)
{
    struct buf *directory = &z->directory;
    uint32_t size = (uint32_t)directory->len;

    buf_add(directory, "PK\5\6\0\0\0\0", 8);
    buf_u16le(directory, (uint16_t)z->members);
    buf_u16le(directory, (uint16_t)z->members);
    buf_u32le(directory, size);
    buf_u32le(directory, (uint32_t)z->offset);
    buf_u16le(directory, 0); /* comment */
    return z->sink->write(z->sink->user, directory->data, directory->len, e);
}
