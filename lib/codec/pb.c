/* Fields of protobuf messages, one by one. Lengths are checked against what is left before anything is read. */
#include "codec/pb.h"

#include <string.h>

/* The layout of a wire is little endian; so is every machine this is built for. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a big-endian port must swap bytes here");

enum { FIELD_NUMBER_MAX = (1 << 29) - 1 };

void pb_raw_varint(struct buf *b, uint64_t v)
{
    unsigned char raw[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        raw[n++] = (unsigned char)(v | 0x80);
    raw[n++] = (unsigned char)v;
    buf_add(b, raw, n);
}

static void put_key(struct buf *b, uint32_t field, unsigned type)
{
    pb_raw_varint(b, (uint64_t)field << 3 | type);
}

void pb_put_varint(struct buf *b, uint32_t field, uint64_t v)
{
    put_key(b, field, PB_VARINT);
    pb_raw_varint(b, v);
}

void pb_put_fixed32(struct buf *b, uint32_t field, uint32_t v)
{
    put_key(b, field, PB_FIXED32);
    buf_u32le(b, v);
}

void pb_put_float(struct buf *b, uint32_t field, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    pb_put_fixed32(b, field, bits);
}

void pb_put_bytes(struct buf *b, uint32_t field, const void *data, size_t n)
{
    put_key(b, field, PB_BYTES);
    pb_raw_varint(b, n);
    buf_add(b, data, n);
}

void pb_put_str(struct buf *b, uint32_t field, const char *s)
{
    pb_put_bytes(b, field, s, strlen(s));
}

/* The value of a field whose key is read. */
static int take_value(struct reader *r, struct pb_field *f)
{
    uint32_t u32;

    switch (f->type) {
    case PB_VARINT:
        return reader_varint(r, &f->u);
    case PB_FIXED64:
        return reader_u64le(r, &f->u);
    case PB_FIXED32:
        if (reader_u32le(r, &u32) < 0)
            return -1;
        f->u = u32;
        return 0;
    case PB_BYTES:
        if (reader_varint(r, &f->u) < 0 || f->u > reader_left(r))
            return -1;
        f->size = (size_t)f->u;
        return reader_bytes(r, f->size, &f->data);
    }
    return -1; /* groups (3, 4) and what does not exist (6, 7) */
}

int pb_next(struct reader *r, struct pb_field *ret)
{
    struct reader at = *r;
    struct pb_field f = { .number = 0 };
    uint64_t key;

    if (reader_left(&at) == 0)
        return 0;
    if (reader_varint(&at, &key) < 0 || key >> 3 == 0 || key >> 3 > FIELD_NUMBER_MAX)
        return -1;
    f.number = (uint32_t)(key >> 3);
    f.type = (__typeof__(f.type))(key & 7);
    if (take_value(&at, &f) < 0)
        return -1;
    *r = at;
    *ret = f;
    return 1;
}

float pb_as_float(const struct pb_field *f)
{
    uint32_t bits = (uint32_t)f->u;
    float v;
    memcpy(&v, &bits, sizeof(v));
    return v;
}
