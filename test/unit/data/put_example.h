/* put_example - a TFRecord file of tf.Example messages, written record by record. For tests and benchmarks. */
#ifndef TRAINYARD_TEST_PUT_EXAMPLE_H
#define TRAINYARD_TEST_PUT_EXAMPLE_H

#include "base/buf.h"
#include "codec/crc32c.h"
#include "codec/pb.h"

static inline void put_record(struct buf *b, const void *data, size_t n)
{
    uint64_t length = n;
    buf_u64le(b, length);
    buf_u32le(b, crc32c_mask(crc32c(0, &length, sizeof(length))));
    buf_add(b, data, n);
    buf_u32le(b, crc32c_mask(crc32c(0, data, n)));
}

static inline void put_feature(struct buf *features, const char *name, uint32_t kind, const struct buf *list)
{
    AUTO_FINI(buf) entry = BUF_INIT;
    AUTO_FINI(buf) feature = BUF_INIT;
    pb_put_bytes(&feature, kind, list->data, list->len);
    pb_put_str(&entry, 1, name);
    pb_put_bytes(&entry, 2, feature.data, feature.len);
    pb_put_bytes(features, 1, entry.data, entry.len);
}

static inline void put_example(struct buf *b, const struct buf *features)
{
    AUTO_FINI(buf) message = BUF_INIT;
    pb_put_bytes(&message, 1, features->data, features->len);
    put_record(b, message.data, message.len);
}

#endif
