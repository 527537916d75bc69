/* last_read - part of rpc.h: the peer of a connection, and of that which this thread read last (last_read.c). */
#ifndef TRAINYARD_RPC_LAST_READ_H
#define TRAINYARD_RPC_LAST_READ_H

enum { PEER_NAME_SIZE = 64 };
/* The peer's address without the port: "10.0.0.7", "fd00::7"; "": the connection is gone. */
void peer_name(int fd, char out[PEER_NAME_SIZE]);
int last_read(void); /* the descriptor; -1: none */

#endif
