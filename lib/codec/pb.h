/* pb - pieces of the protobuf wire format for files whose messages are few and fixed (checkpoints,
 * tf.Example). The RPC contracts and event files use protobuf-c instead (codec/protobuf.h).
 *
 * Writing appends to a buf; a nested message is written into its own buf and added with pb_put_bytes.
 * Zero values are written when asked for: callers leave out what proto3 would.
 */
#ifndef TRAINYARD_CODEC_PB_H
#define TRAINYARD_CODEC_PB_H

#include "base/buf.h"

void pb_put_varint(struct buf *b, uint32_t field, uint64_t v); /* int32, int64, bool, enum */
void pb_put_fixed32(struct buf *b, uint32_t field, uint32_t v);
void pb_put_float(struct buf *b, uint32_t field, float v);
void pb_put_bytes(struct buf *b, uint32_t field, const void *data, size_t n);
void pb_put_str(struct buf *b, uint32_t field, const char *s);
void pb_raw_varint(struct buf *b, uint64_t v);

/* One field taken off a message. Groups are refused. */
struct pb_field {
    uint32_t number;
    enum { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 } type;
    uint64_t u;       /* varint, fixed32, fixed64 as bits */
    const void *data; /* PB_BYTES: points into the message */
    size_t size;
};
/* 1: a field; 0: end of the message; -1: malformed. */
int pb_next(struct reader *r, struct pb_field *ret);
float pb_as_float(const struct pb_field *f); /* PB_FIXED32 */

#endif
