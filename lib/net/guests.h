/* guests - inside of http.h: the connections of an HTTP server, and who has to leave.
 *
 * A client that sends its request a byte at a time never is idle. So a connection has a fixed time for its request, one
 * client has few connections, and all together have a limit: when one more comes, the oldest of that client, or of all,
 * is shut down. A probe that comes now is served, however many slow clients there are.
 */
#ifndef TRAINYARD_NET_GUESTS_H
#define TRAINYARD_NET_GUESTS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/thread.h"

enum { GUESTS_MAX = 64, GUESTS_OF_CLIENT_MAX = 16, GUEST_MS = 10 * 1000 };

struct guest {
    int fd;           /* -1: a free place */
    int64_t since_ms; /* of the connection, or of its last answer */
    struct sockaddr_storage from;
};
struct guests {
    struct mutex lock;
    struct cond changed;
    struct guest at[GUESTS_MAX];
    size_t n;
    bool stopping;
    struct thread thread; /* sees that time is over */
};

MUST_USE int guests_init(struct guests *g, struct err *e);
void guests_fini(struct guests *g);
/* A connection has come. Makes room for it when there is none. */
void guests_come(struct guests *g, int fd, const struct sockaddr *from, int64_t now_ms);
/* Before its descriptor is closed. */
void guests_leave(struct guests *g, int fd);
/* It was served: a next request has its own time. */
void guests_served(struct guests *g, int fd, int64_t now_ms);

#endif
