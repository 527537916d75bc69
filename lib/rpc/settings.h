/* settings - part of rpc.h: the arguments of every channel and server, and their credentials. */
#ifndef TRAINYARD_RPC_SETTINGS_H
#define TRAINYARD_RPC_SETTINGS_H

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "rpc/rpc.h"

enum { RPC_CHANNEL_ARGS_MAX = 32, RPC_SERVER_ARGS_MAX = 32 };
/* Bytes of a message whose payload has at most payload_max. */
size_t rpc_receive_max(size_t payload_max);
/* Fills args, which must live as long as the result. */
grpc_channel_args rpc_channel_args(size_t receive_max, enum rpc_security security, grpc_arg args[RPC_CHANNEL_ARGS_MAX]);
grpc_channel_args rpc_server_args(size_t receive_max, enum rpc_security security, grpc_arg args[RPC_SERVER_ARGS_MAX]);

/* gRPC's form of the credentials; the caller releases them. */
grpc_channel_credentials *rpc_channel_credentials(const struct rpc_credentials *c, const char *peer);
grpc_server_credentials *rpc_server_credentials(const struct rpc_credentials *c);

#endif
