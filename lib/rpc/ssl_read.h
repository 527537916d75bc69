/* ssl_read - part of rpc.h: reads of TLS connections are metered (ssl_read.c). */
#ifndef TRAINYARD_RPC_SSL_READ_H
#define TRAINYARD_RPC_SSL_READ_H

/* Before a server starts. */
void ssl_read_begin(void);

#endif
