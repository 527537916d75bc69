/* tls_client - the client's side of one TLS 1.3 connection, over a socket that does not block: it shows its own
 * identity, and speaks only with the member of its job that it expects.
 *
 * The handshake is part of the first calls. A peer that is refused gets neither our certificate nor a byte of what is
 * written. Not thread-safe. SIGPIPE must be ignored (base/stop.h).
 */
#ifndef TRAINYARD_IDENTITY_TLS_CLIENT_H
#define TRAINYARD_IDENTITY_TLS_CLIENT_H

#include <sys/types.h>

#include "identity/identity.h"

struct tls_client;
/* Reads tls_dir, so each connection uses the newest files. The peer must be this role and index of our job. fd is
 * borrowed: connected, or connecting. */
MUST_USE int tls_client_new(const char *tls_dir, int role, int index, int fd, struct tls_client **ret, struct err *e);
void tls_client_free(struct tls_client *c);
DEFINE_AUTO(tls_client, tls_client_free);

/* As read(2) and write(2): -1 with errno EAGAIN while the socket is not ready, EIO when the connection has failed. A
 * write takes all or nothing; after EAGAIN the same bytes must be written again. Read returns 0 after the peer has
 * closed the connection in the way of TLS, so that nothing can be missing at its end. */
ssize_t tls_client_read(struct tls_client *c, void *out, size_t n);
ssize_t tls_client_write(struct tls_client *c, const void *data, size_t n);
/* For poll(2): what the last call waits for, or else (nothing was called, or it succeeded) the given events. */
short tls_client_events(const struct tls_client *c, short events);

#endif
