/* connection_guard - part of rpc.h: ends the connections of clients that connect more often than an honest one
 * (connect_rate.h), or that send more frames (frame_meter.h), before gRPC reads them.
 *
 * gRPC has no hook between a connection and its frames, so the functions with which it reads are this program's own:
 * recvmsg() (last_read.c) for plaintext and SSL_read() (ssl_read.c) for TLS. accept4() is that of accept.c. A
 * connection that was ended is read as one that its peer has reset, and the log has a warning (refusal_log.h).
 *
 * Thread-safe. Does not block.
 */
#ifndef TRAINYARD_RPC_CONNECTION_GUARD_H
#define TRAINYARD_RPC_CONNECTION_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#include "rpc/frame_meter.h"

/* accept4() has returned this descriptor. False: its client connects too often (connect_rate.h); it must be closed. */
bool connection_guard_accept(int fd);
/* recvmsg() has read n bytes from the descriptor. False: the connection has ended; the bytes must not be used. */
bool connection_guard_read(int fd, const struct msghdr *message, size_t n);
/* Bytes of a connection with TLS, which this thread read last. False: as above. */
bool connection_guard_add(struct frame_meter *m, const void *bytes, size_t n);

#endif
