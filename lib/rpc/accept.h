/* accept - part of rpc.h: connections that come while no descriptor is free (accept.c). */
#ifndef TRAINYARD_RPC_ACCEPT_H
#define TRAINYARD_RPC_ACCEPT_H

/* Before a server starts. */
void accept_keep_spare(void);

#endif
