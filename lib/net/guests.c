#include "net/guests.h"

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

static struct guest *guest_of(struct guests *g, int fd)
{
    for (size_t i = 0; i < GUESTS_MAX; i++)
        if (g->at[i].fd == fd)
            return &g->at[i];
    return NULL;
}

/* The server sees the end of the connection, and closes it. Its place is free at once. */
static void send_away(struct guests *g, struct guest *who)
{
    shutdown(who->fd, SHUT_RDWR);
    who->fd = -1;
    g->n--;
}

/* The oldest of one client, or (NULL) of all; and how many there are. */
static struct guest *oldest(struct guests *g, const struct sockaddr_storage *client, size_t *ret_count)
{
    struct guest *found = NULL;
    *ret_count = 0;
    for (size_t i = 0; i < GUESTS_MAX; i++) {
        struct guest *who = &g->at[i];
        if (who->fd < 0 || (client != NULL && !same_client(&who->from, client)))
            continue;
        ++*ret_count;
        if (found == NULL || who->since_ms < found->since_ms)
            found = who;
    }
    return found;
}

static void make_room(struct guests *g, const struct sockaddr_storage *client)
{
    size_t n;
    struct guest *who = oldest(g, client, &n);
    if (n >= GUESTS_OF_CLIENT_MAX) {
        send_away(g, who);
        return;
    }
    who = oldest(g, NULL, &n);
    if (n >= GUESTS_MAX)
        send_away(g, who);
}

static size_t address_size(const struct sockaddr *a)
{
    return a->sa_family == AF_INET    ? sizeof(struct sockaddr_in)
           : a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                      : sizeof(a->sa_family);
}

void guests_come(struct guests *g, int fd, const struct sockaddr *from, int64_t now_ms)
{
    struct sockaddr_storage client = { .ss_family = AF_UNSPEC };
    MUTEX_GUARD(&g->lock);
    if (from != NULL)
        memcpy(&client, from, address_size(from));
    make_room(g, &client);
    struct guest *place = guest_of(g, -1); /* there is one now */
    if (place == NULL)
        return;
    *place = (struct guest){ .fd = fd, .since_ms = now_ms, .from = client };
    if (g->n++ == 0)
        cond_broadcast(&g->changed);
}

void guests_leave(struct guests *g, int fd)
{
    MUTEX_GUARD(&g->lock);
    struct guest *who = guest_of(g, fd);
    if (who == NULL)
        return; /* sent away before */
    who->fd = -1;
    g->n--;
}

void guests_served(struct guests *g, int fd, int64_t now_ms)
{
    MUTEX_GUARD(&g->lock);
    struct guest *who = guest_of(g, fd);
    if (who != NULL)
        who->since_ms = now_ms;
}

/* Sends away whose time is over. When the next one's is. */
static int64_t look(struct guests *g, int64_t now_ms)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < GUESTS_MAX; i++) {
        struct guest *who = &g->at[i];
        if (who->fd >= 0 && now_ms - who->since_ms >= GUEST_MS)
            send_away(g, who);
        else if (who->fd >= 0)
            next = MIN(next, who->since_ms + GUEST_MS);
    }
    return next;
}

static void guests_loop(void *user)
{
    struct guests *g = user;
    MUTEX_GUARD(&g->lock);
    while (!g->stopping) {
        int64_t next = look(g, clock_ms());
        if (next == INT64_MAX)
            cond_wait(&g->changed, &g->lock);
        else
            cond_wait_until(&g->changed, &g->lock, next);
    }
}

int guests_init(struct guests *g, struct err *e)
{
    mutex_init(&g->lock);
    cond_init(&g->changed);
    for (size_t i = 0; i < GUESTS_MAX; i++)
        g->at[i].fd = -1;
    return thread_start(&g->thread, "http guests", guests_loop, g, e);
}

void guests_fini(struct guests *g)
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
