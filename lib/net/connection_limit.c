/* The table of open HTTP connections. A new one that has no place closes the oldest one, of the same client first; a
 * thread closes those whose request takes too long. */
#include "net/connection_limit.h"

#include <netinet/in.h>
#include <string.h>

#include "base/clock.h"

static bool same_client(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr == ((const struct sockaddr_in *)b)->sin_addr.s_addr;
    if (a->ss_family == AF_INET6)
        return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr, &((const struct sockaddr_in6 *)b)->sin6_addr,
                      sizeof(struct in6_addr)) == 0;
    return true;
}

static struct client_connection *connection_of(struct connection_limit *g, int fd)
{
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        if (g->at[i].fd == fd)
            return &g->at[i];
    return NULL;
}

/* The server detects the end of the connection, and closes it. Its place is free at once. */
static void close_connection(struct connection_limit *g, struct client_connection *who)
{
    shutdown(who->fd, SHUT_RDWR);
    who->fd = -1;
    g->n--;
}

/* The oldest of one client, or (NULL) of all, and their number. */
static struct client_connection *oldest(struct connection_limit *g, const struct sockaddr_storage *client,
                                        size_t *ret_count)
{
    struct client_connection *found = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct client_connection *who = &g->at[i];
        if (who->fd < 0 || (client != NULL && !same_client(&who->from, client)))
            continue;
        ++*ret_count;
        if (found == NULL || who->since_ms < found->since_ms)
            found = who;
    }
    return found;
}

static void make_room(struct connection_limit *g, const struct sockaddr_storage *client)
{
    size_t n;
    struct client_connection *who = oldest(g, client, &n);
    if (n >= CONNECTIONS_PER_CLIENT_MAX) {
        close_connection(g, who);
        return;
    }
    who = oldest(g, NULL, &n);
    if (n >= CONNECTIONS_MAX)
        close_connection(g, who);
}

static size_t address_size(const struct sockaddr *a)
{
    return a->sa_family == AF_INET    ? sizeof(struct sockaddr_in)
           : a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                      : sizeof(a->sa_family);
}

void connection_limit_come(struct connection_limit *g, int fd, const struct sockaddr *from, int64_t now_ms)
{
    struct sockaddr_storage client = { .ss_family = AF_UNSPEC };
    MUTEX_GUARD(&g->lock);
    if (from != NULL)
        memcpy(&client, from, address_size(from));
    make_room(g, &client);
    struct client_connection *place = connection_of(g, -1); /* there is one now */
    if (place == NULL)
        return;
    *place = (struct client_connection){ .fd = fd, .since_ms = now_ms, .from = client };
    if (g->n++ == 0)
        cond_broadcast(&g->changed);
}

void connection_limit_leave(struct connection_limit *g, int fd)
{
    MUTEX_GUARD(&g->lock);
    struct client_connection *who = connection_of(g, fd);
    if (who == NULL)
        return; /* disconnected before */
    who->fd = -1;
    g->n--;
}

void connection_limit_served(struct connection_limit *g, int fd, int64_t now_ms)
{
    MUTEX_GUARD(&g->lock);
    struct client_connection *who = connection_of(g, fd);
    if (who != NULL)
        who->since_ms = now_ms;
}

/* Disconnects the connections whose time is over. Returns when the next one's is. */
static int64_t close_expired(struct connection_limit *g, int64_t now_ms)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct client_connection *who = &g->at[i];
        if (who->fd >= 0 && now_ms - who->since_ms >= REQUEST_MS)
            close_connection(g, who);
        else if (who->fd >= 0)
            next = MIN(next, who->since_ms + REQUEST_MS);
    }
    return next;
}

static void connection_limit_loop(void *user)
{
    struct connection_limit *g = user;
    MUTEX_GUARD(&g->lock);
    while (!g->stopping) {
        int64_t next = close_expired(g, clock_ms());
        if (next == INT64_MAX)
            cond_wait(&g->changed, &g->lock);
        else
            cond_wait_until(&g->changed, &g->lock, next);
    }
}

int connection_limit_init(struct connection_limit *g, struct err *e)
{
    mutex_init(&g->lock);
    cond_init(&g->changed);
    for (size_t i = 0; i < CONNECTIONS_MAX; i++)
        g->at[i].fd = -1;
    return thread_start(&g->thread, "http connections", connection_limit_loop, g, e);
}

void connection_limit_fini(struct connection_limit *g)
{
    {
        MUTEX_GUARD(&g->lock);
        g->stopping = true;
        cond_broadcast(&g->changed);
    }
    thread_join(&g->thread);
    cond_fini(&g->changed);
    mutex_fini(&g->lock);
}
