/* coordinator_service - a coordinator as gRPC methods (lib/rpc/coordinator.proto), and the translation between the
 * messages and struct coord_request / coord_reply that server and client share. */
#ifndef TRAINYARD_COORD_COORDINATOR_SERVICE_H
#define TRAINYARD_COORD_COORDINATOR_SERVICE_H

#include "coord/coordinator.h"
#include "rpc/rpc.h"

/* Fills ret with COORD_KINDS methods for rpc_server_start(); c outlives the server. */
void coordinator_service_methods(struct coordinator *c, struct rpc_method ret[COORD_KINDS]);

const char *coord_method_path(enum coord_kind kind);
void coord_pack_request(const struct coord_request *q, struct buf *out);
MUST_USE int coord_unpack_reply(const void *data, size_t n, struct coord_reply *ret, struct err *e);

#endif
