/* connection_limit - part of http_server.h: the open connections of an HTTP server, and which of them it closes.
 *
 * A client that sends its request a byte at a time is never idle. So a connection has a fixed time for its request, and
 * both the connections of one client and all connections have a limit. When one more arrives, the oldest of that
 * client, or of all, is shut down. So a new probe is always served, however many slow clients there are.
 */
#ifndef TRAINYARD_NET_CONNECTION_LIMIT_H
#define TRAINYARD_NET_CONNECTION_LIMIT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/thread.h"

enum { CONNECTIONS_MAX = 64, CONNECTIONS_PER_CLIENT_MAX = 16, REQUEST_MS = 10 * 1000 };

struct client_connection {
    int fd;           /* -1: a free place */
    int64_t since_ms; /* of the connection, or of its last answer */
    struct sockaddr_storage from;
};
struct connection_limit {
    struct mutex lock;
    struct cond changed;
    struct client_connection at[CONNECTIONS_MAX];
    size_t n;
    bool stopping;
    struct thread thread; /* closes connections whose time is over */
};

MUST_USE int connection_limit_init(struct connection_limit *g, struct err *e);
void connection_limit_fini(struct connection_limit *g);
/* A connection has arrived. Makes room for it when there is none. */
void connection_limit_come(struct connection_limit *g, int fd, const struct sockaddr *from, int64_t now_ms);
/* Before its descriptor is closed. */
void connection_limit_leave(struct connection_limit *g, int fd);
/* It was served: the next request has a new time limit. */
void connection_limit_served(struct connection_limit *g, int fd, int64_t now_ms);

#endif
