/* A meter for each descriptor that accept4() has returned. gRPC closes them without our knowledge, so an entry may be
 * about an earlier connection of its descriptor: before a connection is ended, its peer is compared. */
#include "rpc/connection_guard.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "rpc/connect_rate.h"
#include "rpc/last_read.h"
#include "rpc/refusal_log.h"

enum { DESCRIPTORS_MAX = 1 << 20 }; /* Linux's fs.nr_open; one beyond it is not guarded */

struct guarded {
    struct mutex lock; /* gRPC reads a connection with one thread at a time, but without a lock that others see */
    struct peer_address peer;
    struct frame_meter meter;
};

static _Atomic(struct guarded *) table[DESCRIPTORS_MAX]; /* by descriptor; an entry is never freed */
static struct mutex rate_lock = { PTHREAD_MUTEX_INITIALIZER };
static struct connect_rate rate; /* of the process, as the table: gRPC accepts and reads without a handle of ours */

static struct guarded *guard_find(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS_MAX ? atomic_load_explicit(&table[fd], memory_order_acquire) : NULL;
}

static struct guarded *guard_make(int fd)
{
    struct guarded *g = guard_find(fd), *none = NULL;
    if (g != NULL || fd < 0 || fd >= DESCRIPTORS_MAX)
        return g;
    g = xcalloc(1, sizeof(*g));
    mutex_init(&g->lock);
    if (atomic_compare_exchange_strong(&table[fd], &none, g))
        return g;
    mutex_fini(&g->lock);
    free(g);
    return none;
}

/* What is still in the kernel's buffer is dropped when the descriptor is closed. */
static void guard_reset_at_close(int fd)
{
    const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
    (void)!setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

static bool guard_admits(const struct peer_address *peer, uint32_t weight)
{
    MUTEX_GUARD(&rate_lock);
    return connect_rate_add(&rate, peer, weight, clock_ms());
}

bool connection_guard_accept(int fd)
{
    const struct peer_address peer = peer_address_of(fd);
    if (!guard_admits(&peer, 1)) {
        char name[PEER_NAME_SIZE];
        peer_address_name(&peer, name);
        guard_reset_at_close(fd);
        rpc_log_refusal("a connection of %s is closed: more than %d came within a second", name, CONNECT_MAX);
        return false;
    }
    struct guarded *g = guard_make(fd);
    if (g == NULL)
        return true;
    MUTEX_GUARD(&g->lock);
    frame_meter_init(&g->meter);
    g->peer = peer;
    return true;
}

/* The connection that this thread has just read is cut off. */
static void guard_tell(const char *excess)
{
    const struct peer_address peer = peer_address_of(last_read());
    char name[PEER_NAME_SIZE];
    peer_address_name(&peer, name);
    guard_admits(&peer, CONNECT_CUT_OFF);
    rpc_log_refusal("a connection of %s is closed: it sent %s", name[0] != '\0' ? name : "a client", excess);
}

static const char *guard_add(struct guarded *g, const struct msghdr *message, size_t n)
{
    const char *excess = NULL;
    int64_t now = clock_ms();
    for (size_t i = 0; i < message->msg_iovlen && n > 0 && excess == NULL; i++) {
        size_t size = MIN(n, message->msg_iov[i].iov_len);
        excess = frame_meter_add(&g->meter, message->msg_iov[i].iov_base, size, now);
        n -= size;
    }
    return excess;
}

bool connection_guard_read(int fd, const struct msghdr *message, size_t n)
{
    struct guarded *g = guard_find(fd);
    if (g == NULL)
        return true;
    MUTEX_GUARD(&g->lock);
    if (g->meter.phase == FRAME_UNMETERED)
        return true;
    const char *excess = guard_add(g, message, n);
    if (excess == NULL)
        return true;
    const struct peer_address now = peer_address_of(fd);
    if (memcmp(&now, &g->peer, sizeof(now)) != 0) { /* one that was not accepted */
        g->meter.phase = FRAME_UNMETERED;
        return true;
    }
    guard_tell(excess);
    guard_reset_at_close(fd);
    return false;
}

bool connection_guard_add(struct frame_meter *m, const void *bytes, size_t n)
{
    const char *excess = frame_meter_add(m, bytes, n, clock_ms());
    if (excess != NULL)
        guard_tell(excess);
    return excess == NULL;
}
