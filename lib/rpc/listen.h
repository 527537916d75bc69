/* listen - the port of a server. */
#ifndef TRAINYARD_RPC_LISTEN_H
#define TRAINYARD_RPC_LISTEN_H

#include <grpc/grpc.h>

#include "rpc/rpc.h"

/* *ret_self: where this host reaches the server, "127.0.0.1:2222"; free(). A port in use is ERR_INPUT. */
MUST_USE int rpc_listen(grpc_server *server, const char *address, const struct rpc_credentials *credentials,
                        int *ret_port, char **ret_self, struct err *e);

#endif
