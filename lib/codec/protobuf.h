/* protobuf - protobuf-c's messages to and from bytes, with bounded memory.
 *
 * Contracts of many messages are in .proto files (lib/rpc, lib/tfio); codec/pb.h is for formats of a few fields.
 */
#ifndef TRAINYARD_CODEC_PROTOBUF_H
#define TRAINYARD_CODEC_PROTOBUF_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"

/* Packing only reads, so unconst() gives messages the pointers to non-const that they need. */
void protobuf_append(const ProtobufCMessage *m, struct buf *out);

/* -1: malformed, or it needs far more memory than its bytes: large_times n beyond the first MiB. */
MUST_USE int protobuf_unpack(const ProtobufCMessageDescriptor *kind, const void *data, size_t n, size_t large_times,
                             ProtobufCMessage **ret);
static inline void protobuf_free_(ProtobufCMessage **m)
{
    if (*m != NULL)
        protobuf_c_message_free_unpacked(*m, NULL);
}
#define PROTOBUF_AUTO __attribute__((cleanup(protobuf_free_))) ProtobufCMessage

#endif
