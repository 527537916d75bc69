/* parameters_codec - pieces of the parameter messages (lib/rpc) that the client and the service of a ps share. */
#ifndef TRAINYARD_PARAMS_PARAMETERS_CODEC_H
#define TRAINYARD_PARAMS_PARAMETERS_CODEC_H

#include "codec/protobuf.h"
#include "params/slot_server.h"
#include "rpc/parameters.pb-c.h"
#include "rpc/rpc.h"
#include "shard/shard.h"

/* A message carries at most one segment with its slots, or parts of the same size. */
enum { PARAMETERS_PAYLOAD_MAX = SEGMENT_MAX * (1 + OPTIMIZER_MAX_SLOTS) };

/* Replaces what is in out. */
void codec_pack(const ProtobufCMessage *m, struct buf *out);
/* The head of a received message; PROTOBUF_AUTO frees it. ERR_INPUT when malformed. */
MUST_USE int codec_unpack(const ProtobufCMessageDescriptor *kind, const struct rpc_message *m, ProtobufCMessage **ret,
                          struct err *e);

/* Fills *ret, whose ranges then belong to *ret_ranges (free() them). */
void codec_ordinals(const struct ordinal_set *a, Trainyard__V1__OrdinalSet *ret, int64_t **ret_ranges);
/* NULL is the empty set. */
MUST_USE int codec_ordinal_set(const Trainyard__V1__OrdinalSet *m, struct ordinal_set *ret, struct err *e);

void codec_segment(const struct segment_spec *s, Trainyard__V1__Segment *ret);
void codec_groups(const struct groups *g, Trainyard__V1__Groups *ret);
/* Not checked; NULL: of size 0. */
struct groups codec_groups_of(const Trainyard__V1__Groups *m);
/* What a caller offers, without the size and capacity of its slots, which are the protocol's. It borrows from both. */
struct slot_offer codec_offer(const Trainyard__V1__AttachRequest *q, const struct rpc_caller *caller);

/* The payload of a message as struct bytes_in; walk points at memory of the caller. */
struct payload_walk {
    const struct rpc_message *message;
    size_t pos;
};
struct bytes_in codec_payload(const struct rpc_message *m, struct payload_walk *walk);
/* Copies all in->size bytes. False: they end too soon. */
MUST_USE bool codec_copy(const struct bytes_in *in, void *out);

/* Method names, in the order of the service. */
enum ps_method {
    PS_DESCRIBE,
    PS_INIT,
    PS_RESTORE,
    PS_PULL,
    PS_PUSH,
    PS_SNAPSHOT,
    PS_FINISH,
    PS_ATTACH,
    PS_REDUCE,
    PS_METHODS
};
const char *ps_method_path(enum ps_method m);

#endif
