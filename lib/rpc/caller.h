/* caller - part of rpc.h: establishes the caller of a method. */
#ifndef TRAINYARD_RPC_CALLER_H
#define TRAINYARD_RPC_CALLER_H

#include "rpc/rpc.h"

/* From the Header of a request (lib/rpc/common.proto), field 1 of each Trainyard message. A request without a header
 * has a caller without job and name; the handler decides whether it may have none. ERR_INPUT: the header is
 * malformed, or its texts are too long or not names. */
MUST_USE int rpc_caller_of(const struct rpc_message *request, struct rpc_caller *ret, struct err *e);

#endif
