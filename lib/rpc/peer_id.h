/* peer_id - part of rpc.h: which client a connection in plain text belongs to, for limits. With TLS it is the identity
 * (authorize.c). */
#ifndef TRAINYARD_RPC_PEER_ID_H
#define TRAINYARD_RPC_PEER_ID_H

#include <stdint.h>

/* A number for gRPC's name of a peer ("ipv4:10.0.0.7:41234", "ipv6:%5Bfd00::7%5D:41234"), never 0: the same for all
 * connections of one address. On loopback all processes have one address, so there each connection has its own. */
uint64_t rpc_peer_id(const char *peer);

#endif
