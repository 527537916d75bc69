/* last_read - part of rpc.h: the connection that this thread read last (last_read.c). */
#ifndef TRAINYARD_RPC_LAST_READ_H
#define TRAINYARD_RPC_LAST_READ_H

int last_read(void); /* its descriptor; -1: none */

#endif
