/* message - part of rpc.h: messages as gRPC's byte buffers. */
#ifndef TRAINYARD_RPC_MESSAGE_H
#define TRAINYARD_RPC_MESSAGE_H

#include <grpc/grpc.h>

#include "rpc/rpc.h"

/* Takes ownership of the buffer (also on failure). NULL: no message arrived, ERR_INPUT. */
MUST_USE int rpc_message_take(grpc_byte_buffer *bytes, struct rpc_message **ret, struct err *e);

/* Frees the memory of the payload, which is empty then. */
void rpc_message_drop_payload(struct rpc_message *m);

/* Messages are at most this long (gRPC's length field has 32 bits). */
#define RPC_MESSAGE_MAX ((size_t)UINT32_MAX)
/* head, then the payload field over the pieces. A piece without done calls `fallback(user)` when its bytes are no
 * longer needed (fallback may be NULL). Every piece's done is called once, also on failure: ERR_INPUT, too large. */
MUST_USE int rpc_bytes_of(const void *head, size_t head_size, const struct rpc_piece *pieces, size_t npieces,
                          void (*fallback)(void *user), void *user, grpc_byte_buffer **ret, struct err *e);

#endif
