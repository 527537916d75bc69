/* reply_pieces - memory of a handler that is sent without a copy: when it is given back. */
#ifndef TRAINYARD_RPC_REPLY_PIECES_H
#define TRAINYARD_RPC_REPLY_PIECES_H

#include <stdatomic.h>

#include "rpc/rpc.h"

/* The handler failed: all are given back at once. */
void reply_pieces_drop(struct rpc_reply *reply);
/* gRPC may hold a piece longer than its call, but not longer than the server: *borrowed is the number of pieces that
 * are not given back yet. */
void reply_pieces_lend(struct rpc_reply *reply, atomic_size_t *borrowed);

#endif
