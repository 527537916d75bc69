/* The ps side of shared memory: pushes of workers of this host (params/shm_region.h, params/push_slot.h). One thread
 * for each slot of a worker waits for its requests and applies them. Nothing that the worker writes is trusted. The
 * memory of a worker that ended or closed its slots is unmapped within POLL_MS. */
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"
#include "params/push_slot.h"
#include "params/shard_service_internal.h"

enum { POLL_MS = 500, SHM_WORKERS_MAX = 64 };

struct slot_server { /* one slot and its thread */
    struct shm_worker *worker;
    const struct shm_region *region; /* as long as the thread runs */
    struct push_slot *slot;
    struct thread thread;
};
struct shm_worker { /* the memory of one worker */
    struct shard_service *service;
    struct shm_worker *next;
    struct mutex lock;
    struct shm_region *region; /* under the lock; NULL once the last thread has ended */
    int process;               /* pidfd of the worker */
    size_t capacity;           /* versions in a slot */
    char sender[SHARD_UID_MAX], job_uid[SHARD_UID_MAX];
    atomic_bool over;   /* no request is taken any more */
    atomic_int running; /* threads */
    int nslots;
    struct slot_server slots[PUSH_SLOTS_MAX];
};

/* ---- serving ---- */

/* The places of the request's gradient and values, if they are within the memory of the worker. */
static int find_vectors(const struct slot_server *server, const struct push_slot_request *q, struct shard_vectors *ret,
                        struct err *e)
{
    const struct shm_region *region = server->region;
    size_t size = region->size, from = MAX(q->gradients_at, q->values_at);
    if (q->count == 0 || q->count > server->worker->capacity || from > size)
        return err_set(e, ERR_INPUT, "a push beyond its shared memory");
    size_t floats = (size - from) / sizeof(float);
    struct shard_vectors v = { .grads = shm_region_at(region, q->gradients_at, floats * sizeof(float)),
                               .values = shm_region_at(region, q->values_at, floats * sizeof(float)),
                               .floats = floats };
    if (v.grads == NULL || v.values == NULL)
        return err_set(e, ERR_INPUT, "a push beyond its shared memory");
    *ret = v;
    return 0;
}

/* Waits for the step in this thread, which serves no one else. */
static int pull_step(struct shard *shard, const struct shard_caller *who, const struct push_slot_request *q,
                     const struct shard_vectors *to, int64_t *versions, struct err *e)
{
    int64_t until = clock_ms() + MIN((int64_t)q->wait_ms, (int64_t)PULL_WAIT_MAX_MS);
    for (;;) {
        struct err why = { .code = ERR_NONE };
        uint64_t seen = shard_updates(shard);
        if (shard_pull_vectors_at(shard, who, (struct shard_part){ q->first, q->count }, q->at, to, versions, q->count,
                                  &why) == 0)
            return 0;
        if (!err_is(&why, ERR_PENDING) || clock_ms() >= until)
            return err_set(e, why.code, "%s", why.msg);
        shard_await_update(shard, seen, until);
    }
}

static int serve_request(const struct slot_server *server, const struct push_slot_request *q, bool *ret_duplicate,
                         struct err *e)
{
    const struct shm_worker *w = server->worker;
    struct shard *shard = w->service->shard;
    struct push_slot *slot = server->slot;
    struct shard_vectors vectors;
    struct shard_caller who = { .job_uid = w->job_uid, .sender = w->sender, .generation = q->generation };
    if (find_vectors(server, q, &vectors, e) < 0)
        return -1;
    if (q->ordinal < 0)
        return pull_step(shard, &who, q, &vectors, slot->versions, e);
    return shard_push_vectors(shard, &who, (struct shard_part){ q->first, q->count }, q->ordinal,
                              q->knows_versions != 0 ? slot->versions : NULL, &vectors, slot->versions, q->count,
                              ret_duplicate, e);
}

static void serve_push(const struct slot_server *server, uint32_t number)
{
    const struct shm_worker *w = server->worker;
    struct shard *shard = w->service->shard;
    struct push_slot *slot = server->slot;
    struct push_slot_request q;
    struct push_slot_answer a = { .incarnation = shard_incarnation(shard) };
    struct err e = { .code = ERR_NONE };
    bool duplicate = false;
    atomic_store_explicit(&w->service->heard_ms, clock_ms(), memory_order_relaxed);
    push_slot_take(slot, &q);
    a.generation = q.generation;
    if (serve_request(server, &q, &duplicate, &e) < 0) {
        a.code = (int32_t)e.code;
        str_fmt(a.text, sizeof(a.text), "%s", e.msg);
    }
    a.duplicate = duplicate;
    memcpy(&slot->answer, &a, a.code == ERR_NONE ? offsetof(struct push_slot_answer, text) : sizeof(a));
    push_slot_post(&slot->answered, number);
}

static bool worker_is_gone(const struct shm_worker *w)
{
    struct pollfd fd = { .fd = w->process, .events = POLLIN };
    return poll(&fd, 1, 0) != 0;
}

static void slot_loop(void *user)
{
    struct slot_server *server = user;
    struct shm_worker *w = server->worker;
    struct push_slot *slot = server->slot;
    for (uint32_t number = 0; !atomic_load(&w->over) && !atomic_load(&slot->closed);) {
        if (push_slot_wait(&slot->asked, number, POLL_MS))
            serve_push(server, number = atomic_load_explicit(&slot->asked, memory_order_acquire));
        else if (worker_is_gone(w))
            atomic_store(&w->over, true);
    }
    atomic_store(&w->over, true);
    if (atomic_fetch_sub(&w->running, 1) > 1)
        return;
    MUTEX_GUARD(&w->lock); /* the last thread: the memory is not read any more */
    shm_region_free(TAKE(w->region));
}

/* ---- making ---- */

static void shm_worker_free(struct shm_worker *w)
{
    if (w == NULL)
        return;
    atomic_store(&w->over, true);
    mutex_lock(&w->lock);
    for (int i = 0; i < w->nslots && w->region != NULL; i++)
        push_slot_wake(&w->slots[i].slot->asked);
    mutex_unlock(&w->lock);
    for (int i = 0; i < w->nslots; i++)
        thread_join(&w->slots[i].thread);
    shm_region_free(w->region);
    fd_close(w->process);
    mutex_fini(&w->lock);
    free(w);
}
DEFINE_AUTO(shm_worker, shm_worker_free);

static int find_slots(struct shm_worker *w, const Trainyard__V1__AttachRequest *q, struct err *e)
{
    size_t bytes = push_slot_size(q->slot_segments);
    if (q->slots == 0 || q->slots > PUSH_SLOTS_MAX || q->slot_segments == 0 || q->slots_at % PUSH_SLOT_ALIGNMENT != 0)
        return err_set(e, ERR_REFUSED, "%u slots of %u segments at %llu are not valid", q->slots, q->slot_segments,
                       (unsigned long long)q->slots_at);
    unsigned char *first = shm_region_at(w->region, q->slots_at, q->slots * bytes);
    if (first == NULL)
        return err_set(e, ERR_REFUSED, "the slots reach beyond the memory");
    w->capacity = q->slot_segments;
    for (uint32_t i = 0; i < q->slots; i++)
        w->slots[i] = (struct slot_server){ .worker = w,
                                            .region = w->region,
                                            .slot = (struct push_slot *)(void *)(first + i * bytes) };
    return 0;
}

static int shm_worker_open(const struct exchange *x, const Trainyard__V1__AttachRequest *q, struct shm_worker **ret,
                           struct err *e)
{
    AUTO(shm_worker) *w = xcalloc(1, sizeof(*w));
    *w = (struct shm_worker){ .service = x->service, .process = (int)syscall(SYS_pidfd_open, q->pid, 0) };
    mutex_init(&w->lock);
    str_fmt(w->sender, sizeof(w->sender), "%s", x->caller->name);
    str_fmt(w->job_uid, sizeof(w->job_uid), "%s", x->caller->job_uid);
    if (w->process < 0)
        return err_set(e, ERR_REFUSED, "process %d cannot be seen from here", q->pid);
    if (shm_region_open(q->pid, q->fd, q->size, q->nonce.data, q->nonce.len, &w->region, e) < 0 ||
        find_slots(w, q, e) < 0)
        return -1;
    for (uint32_t i = 0; i < q->slots; i++, w->nslots++) {
        atomic_fetch_add(&w->running, 1);
        if (thread_start(&w->slots[i].thread, "share", slot_loop, &w->slots[i], e) < 0) {
            atomic_fetch_sub(&w->running, 1);
            return -1;
        }
    }
    *ret = TAKE(w);
    return 0;
}

/* ---- the list ---- */

/* Removes those that are over, and what an earlier process of this sender shared. Returns how many stay. */
static int remove_ended(struct shard_service *v, const char *sender)
{
    int n = 0;
    for (struct shm_worker **at = &v->shm_workers; *at != NULL;) {
        struct shm_worker *w = *at;
        if (!atomic_load(&w->over) && !str_eq(w->sender, sender)) {
            at = &w->next;
            n++;
            continue;
        }
        *at = w->next;
        shm_worker_free(w);
    }
    return n;
}

/* Not more memory than a worker of this job needs, by the chief's description of the model, and no slots longer than
 * the number of segments of this shard. */
static int check_size(const struct exchange *x, const Trainyard__V1__AttachRequest *q, struct err *e)
{
    struct shard_sizes sizes = { 0 };
    size_t most = atomic_load(&x->service->share_max);
    if (q->size > most)
        return err_set(e, ERR_REFUSED, "%llu bytes of shared memory, this job needs %zu at most",
                       (unsigned long long)q->size, most);
    if (shard_measure(x->shard, (struct shard_part){ 0 }, &sizes, e) < 0)
        return -1;
    if (q->slot_segments > sizes.segments)
        return err_set(e, ERR_REFUSED, "slots of %u segments for a ps of %zu", q->slot_segments, sizes.segments);
    return 0;
}

int on_attach(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__AttachRequest *q = REQUEST(x, Trainyard__V1__AttachRequest);
    struct shard_caller who = exchange_caller(x);
    struct shard_service *v = x->service;
    AUTO(shm_worker) *w = NULL;
    if (!atomic_load(&v->share))
        return err_set(e, ERR_REFUSED, "this ps does not share memory");
    if (q->slot_version != PUSH_SLOT_VERSION)
        return err_set(e, ERR_REFUSED, "unsupported slot version %u; only %d is supported", q->slot_version,
                       PUSH_SLOT_VERSION);
    if (shard_check(x->shard, &who, e) < 0 || check_size(x, q, e) < 0)
        return -1;
    MUTEX_GUARD(&v->shm_lock);
    if (remove_ended(v, who.sender) >= SHM_WORKERS_MAX)
        return err_set(e, ERR_REFUSED, "no free shared-memory slot");
    if (shm_worker_open(x, q, &w, e) < 0)
        return -1;
    w->next = v->shm_workers;
    v->shm_workers = w;
    w = NULL;
    Trainyard__V1__AttachReply r = TRAINYARD__V1__ATTACH_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    codec_pack(&r.base, &x->reply->head);
    return 0;
}

void shm_workers_free(struct shard_service *v)
{
    while (v->shm_workers != NULL) {
        struct shm_worker *w = v->shm_workers;
        v->shm_workers = w->next;
        shm_worker_free(w);
    }
}

size_t shard_service_shared(struct shard_service *v)
{
    size_t n = 0;
    MUTEX_GUARD(&v->shm_lock);
    for (const struct shm_worker *w = v->shm_workers; w != NULL; w = w->next)
        n += !atomic_load(&w->over);
    return n;
}
