/* tls - part of rpc.h: credentials of gRPC from the identity of this process. */
#ifndef TRAINYARD_RPC_TLS_H
#define TRAINYARD_RPC_TLS_H

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "rpc/rpc.h"

/* Before grpc_init: leaves only TLS 1.3. */
void tls_setup(void);
/* peer: the only member that is accepted, "ps-1"; NULL: any of the job. The caller releases them. */
grpc_channel_credentials *tls_channel_credentials(const struct rpc_tls *t, const char *peer);
grpc_server_credentials *tls_server_credentials(const struct rpc_tls *t);
/* The identity that the caller of a call has proved; false: none. */
bool tls_identity_of(grpc_call *call, struct identity *ret);
/* gRPC's log, of all levels: a line about a handshake that failed on a server becomes a warning of ours. */
void tls_read_log(const char *message);
/* What a client's error says: gRPC's reason why a connection could not be made, in plain words where it is about the
 * handshake; false: it is not. own: of the channel. */
bool tls_explain(const char *details, const struct rpc_credentials *own, char *out, size_t size);
#endif
