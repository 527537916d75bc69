/* settings - inside of rpc.h: what every channel and server is told, and who they trust. */
#ifndef TRAINYARD_RPC_SETTINGS_H
#define TRAINYARD_RPC_SETTINGS_H

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

extern const grpc_channel_args RPC_CHANNEL_ARGS;
extern const grpc_channel_args RPC_SERVER_ARGS;

/* The one place where credentials come in. The caller releases them. */
grpc_channel_credentials *rpc_channel_credentials(void);
grpc_server_credentials *rpc_server_credentials(void);

#endif
