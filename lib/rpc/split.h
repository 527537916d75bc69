/* split - part of rpc.h: finds the payload field in a received message without parsing it.
 *
 * A message is protobuf: top-level fields in any order. The field 15 of wire type "bytes" is the payload; everything
 * else is the head. Only tags and lengths of the top level are read. Pure.
 */
#ifndef TRAINYARD_RPC_SPLIT_H
#define TRAINYARD_RPC_SPLIT_H

#include "base/err.h"

#include <stddef.h>

enum { RPC_HEAD_MAX = 16 << 20 }; /* a head is parsed into memory, so it is bounded; a payload is not */

struct rpc_span { /* a run of received bytes */
    const unsigned char *data;
    size_t size;
};

/* The place of the payload field, as offsets from the start of the message. */
struct rpc_split {
    size_t field;   /* of its tag: the head goes up to here ... */
    size_t payload; /* of its first byte */
    size_t end;     /* after its last byte: ... and continues here (fields that newer peers send after it) */
    size_t total;   /* of the message */
};
/* Without a payload field all but total are total, or: field == payload == end == total.
 * ERR_INPUT: cut off, wrong wire types, a second payload, or a head above RPC_HEAD_MAX. */
MUST_USE int rpc_split(const struct rpc_span *spans, size_t n, struct rpc_split *ret, struct err *e);

#endif
