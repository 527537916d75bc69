/* coordinator_service - a coordinator as gRPC methods, and the translation between the messages of
 * lib/rpc/coordinator.proto and the structs of coord/coordinator_client.h, which client and server share. */
#ifndef TRAINYARD_COORD_COORDINATOR_SERVICE_H
#define TRAINYARD_COORD_COORDINATOR_SERVICE_H

#include "coord/coordinator.h"
#include "rpc/rpc.h"

enum coordinator_method {
    COORDINATOR_REGISTER,
    COORDINATOR_HEARTBEAT,
    COORDINATOR_LEASE,
    COORDINATOR_LEAVE,
    COORDINATOR_REPORT_EVALUATION,
    COORDINATOR_REQUEST_STOP,
    COORDINATOR_METHODS
};

/* For rpc_server_start(); c outlives the server. */
void coordinator_service_methods(struct coordinator *c, struct rpc_method ret[COORDINATOR_METHODS]);

const char *coordinator_method_path(enum coordinator_method m);
/* Each appends the packed message. */
void coordinator_pack_register(const struct register_request *q, struct buf *out);
void coordinator_pack_heartbeat(const struct heartbeat_request *q, struct buf *out);
void coordinator_pack_lease(const struct lease_request *q, struct buf *out);
void coordinator_pack_leave(const struct leave_request *q, struct buf *out);
void coordinator_pack_report_evaluation(const struct evaluation_request *q, struct buf *out);
MUST_USE int coordinator_unpack_reply(const void *data, size_t n, struct coordinator_reply *ret, struct err *e);

#endif
