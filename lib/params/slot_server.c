/* A client is freed by the attach that finds it over, or with the server; its memory is unmapped by its last thread. */
#include "params/slot_server.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "base/thread.h"

enum { POLL_MS = 500 };

struct sharer;
struct served_slot { /* one slot and its thread */
    struct sharer *sharer;
    struct shm_slot *slot;
    struct thread thread;
};
struct sharer { /* the memory of one client */
    struct slot_server *server;
    struct sharer *next;
    struct slot_client client;
    struct mutex lock;
    struct shm_region *region; /* under the lock; NULL once the last thread has ended */
    int process;               /* pidfd of the client */
    atomic_bool over;          /* no request is taken any more */
    atomic_int running;        /* threads */
    uint32_t nslots;
    struct served_slot slots[SLOTS_MAX];
};
struct slot_server {
    slot_serve_fn *serve;
    void *user;
    struct mutex lock;
    struct sharer *sharers; /* under the lock */
};

/* ---- serving ---- */

static bool client_is_gone(const struct sharer *w)
{
    struct pollfd fd = { .fd = w->process, .events = POLLIN };
    return poll(&fd, 1, 0) != 0;
}

static void slot_loop(void *user)
{
    const struct served_slot *s = user;
    struct sharer *w = s->sharer;
    struct shm_slot *slot = s->slot;
    for (uint32_t number = 0; !atomic_load(&w->over) && !atomic_load(&slot->closed);) {
        if (shm_slot_wait(&slot->asked, number, POLL_MS)) {
            number = atomic_load_explicit(&slot->asked, memory_order_acquire);
            struct err e = { .code = ERR_NONE };
            int rc = w->server->serve(w->server->user, &w->client, slot, &e);
            shm_slot_answer(slot, number, rc < 0 ? &e : NULL);
        } else if (client_is_gone(w))
            atomic_store(&w->over, true);
    }
    atomic_store(&w->over, true);
    if (atomic_fetch_sub(&w->running, 1) > 1)
        return;
    MUTEX_GUARD(&w->lock); /* the last thread: the memory is not read any more */
    shm_region_free(TAKE(w->region));
}

/* ---- making ---- */

static void sharer_free(struct sharer *w)
{
    if (w == NULL)
        return;
    atomic_store(&w->over, true);
    mutex_lock(&w->lock);
    for (uint32_t i = 0; i < w->nslots && w->region != NULL; i++)
        shm_slot_wake(&w->slots[i].slot->asked);
    mutex_unlock(&w->lock);
    for (uint32_t i = 0; i < w->nslots; i++)
        thread_join(&w->slots[i].thread);
    shm_region_free(w->region);
    fd_close(w->process);
    mutex_fini(&w->lock);
    free(w);
}
DEFINE_AUTO(sharer, sharer_free);

static int find_slots(struct sharer *w, const struct slot_offer *o, struct err *e)
{
    if (o->slots == 0 || o->slots > SLOTS_MAX || o->capacity == 0 || o->slots_at % SHM_SLOT_ALIGNMENT != 0)
        return err_set(e, ERR_REFUSED, "%u slots of capacity %zu at %llu are not valid", o->slots, o->capacity,
                       (unsigned long long)o->slots_at);
    unsigned char *first = shm_region_at(w->region, o->slots_at, o->slots * o->slot_size);
    if (first == NULL)
        return err_set(e, ERR_REFUSED, "the slots reach beyond the memory");
    for (uint32_t i = 0; i < o->slots; i++)
        w->slots[i] =
            (struct served_slot){ .sharer = w, .slot = (struct shm_slot *)(void *)(first + i * o->slot_size) };
    return 0;
}

static int start_threads(struct sharer *w, uint32_t n, struct err *e)
{
    atomic_store(&w->running, (int)n); /* before the first: a client may close its slots at once */
    for (; w->nslots < n; w->nslots++)
        if (thread_start(&w->slots[w->nslots].thread, "share", slot_loop, &w->slots[w->nslots], e) < 0) {
            atomic_fetch_sub(&w->running, (int)(n - w->nslots));
            return -1;
        }
    return 0;
}

static int sharer_open(struct slot_server *s, const struct slot_offer *o, struct sharer **ret, struct err *e)
{
    AUTO(sharer) *w = xcalloc(1, sizeof(*w));
    *w = (struct sharer){ .server = s, .process = (int)syscall(SYS_pidfd_open, o->pid, 0) };
    mutex_init(&w->lock);
    w->client.capacity = o->capacity;
    w->client.incarnation = o->incarnation;
    str_fmt(w->client.sender, sizeof(w->client.sender), "%s", o->sender);
    str_fmt(w->client.job_uid, sizeof(w->client.job_uid), "%s", o->job_uid);
    if (w->process < 0)
        return err_set(e, ERR_REFUSED, "process %d cannot be seen from here", o->pid);
    if (shm_region_open(o->pid, o->fd, o->size, o->nonce, o->nonce_size, &w->region, e) < 0)
        return -1;
    w->client.region = w->region;
    if (find_slots(w, o, e) < 0 || start_threads(w, o->slots, e) < 0)
        return -1;
    *ret = TAKE(w);
    return 0;
}

/* Removes those that are over, and what an earlier process of this sender shared. Returns how many stay. */
static size_t remove_ended(struct slot_server *s, const char *sender)
{
    size_t n = 0;
    for (struct sharer **at = &s->sharers; *at != NULL;) {
        struct sharer *w = *at;
        if (!atomic_load(&w->over) && !str_eq(w->client.sender, sender)) {
            at = &w->next;
            n++;
            continue;
        }
        *at = w->next;
        sharer_free(w);
    }
    return n;
}

struct slot_server *slot_server_new(slot_serve_fn *serve, void *user)
{
    struct slot_server *s = xcalloc(1, sizeof(*s));
    s->serve = serve;
    s->user = user;
    mutex_init(&s->lock);
    return s;
}

void slot_server_free(struct slot_server *s)
{
    if (s == NULL)
        return;
    while (s->sharers != NULL) {
        struct sharer *w = s->sharers;
        s->sharers = w->next;
        sharer_free(w);
    }
    mutex_fini(&s->lock);
    free(s);
}

int slot_server_attach(struct slot_server *s, const struct slot_offer *o, struct err *e)
{
    struct sharer *w;
    MUTEX_GUARD(&s->lock);
    if (remove_ended(s, o->sender) >= SLOT_CLIENTS_MAX)
        return err_set(e, ERR_REFUSED, "no free shared-memory slot");
    if (sharer_open(s, o, &w, e) < 0)
        return -1;
    w->next = s->sharers;
    s->sharers = w;
    return 0;
}

size_t slot_server_clients(struct slot_server *s)
{
    size_t n = 0;
    MUTEX_GUARD(&s->lock);
    for (const struct sharer *w = s->sharers; w != NULL; w = w->next)
        n += !atomic_load(&w->over);
    return n;
}
