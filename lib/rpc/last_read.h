/* last_read - part of rpc.h: the peer of the connection that this thread read last (last_read.c). */
#ifndef TRAINYARD_RPC_LAST_READ_H
#define TRAINYARD_RPC_LAST_READ_H

enum { LAST_READ_PEER_SIZE = 64 };
/* Its address without the port: "10.0.0.7", "fd00::7"; "": the connection is gone. */
void last_read_peer(char out[LAST_READ_PEER_SIZE]);

#endif
