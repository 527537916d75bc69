/* Pushes of workers of this host through memory that they share (params/region.h, params/slot.h): one thread for each
 * slot of a worker waits for its requests and applies them. Memory of a worker that died, or gave it up, is unmapped
 * within LOOK_MS. */
#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "base/thread.h"
#include "params/shard_service_internal.h"
#include "params/slot.h"

enum { LOOK_MS = 500, SHARES_MAX = 64 };

struct lane { /* one slot and its thread */
    struct share *share;
    const struct region *region; /* as long as the thread runs */
    struct slot *slot;
    struct thread thread;
};
struct share { /* the memory of one worker */
    struct shard_service *service;
    struct share *next;
    struct mutex lock;
    struct region *region; /* under the lock; NULL once the last thread has ended */
    int process;           /* pidfd of the worker */
    size_t capacity;       /* versions in a slot */
    char sender[SHARD_UID_MAX], job_uid[SHARD_UID_MAX];
    atomic_bool over;   /* no request is taken any more */
    atomic_int running; /* threads */
    int nlanes;
    struct lane lanes[SLOTS_MAX];
};

/* ---- serving ---- */

static int push(const struct lane *lane, const struct slot_request *q, struct slot_answer *a, struct err *e)
{
    const struct share *h = lane->share;
    const struct region *region = lane->region;
    int64_t *versions = lane->slot->versions;
    struct shard *shard = h->service->shard;
    struct shard_caller who = { .job_uid = h->job_uid, .sender = h->sender, .generation = q->generation };
    size_t size = region->size, from = MAX(q->gradients_at, q->values_at);
    if (q->count == 0 || q->count > h->capacity || from > size)
        return err_set(e, ERR_INPUT, "a push beyond its shared memory");
    size_t floats = (size - from) / sizeof(float);
    struct shard_vectors vectors = { .grads = region_at(region, q->gradients_at, floats * sizeof(float)),
                                     .values = region_at(region, q->values_at, floats * sizeof(float)),
                                     .floats = floats };
    if (vectors.grads == NULL || vectors.values == NULL)
        return err_set(e, ERR_INPUT, "a push beyond its shared memory");
    bool duplicate = false;
    a->generation = q->generation;
    int rc = shard_push_vectors(shard, &who, (struct shard_part){ q->first, q->count }, q->ordinal,
                                q->knows_versions != 0 ? versions : NULL, &vectors, versions, q->count, &duplicate, e);
    a->duplicate = duplicate;
    return rc;
}

static void serve(const struct lane *lane, uint32_t number)
{
    const struct share *h = lane->share;
    struct slot *slot = lane->slot;
    struct slot_request q;
    struct slot_answer a = { .incarnation = shard_incarnation(h->service->shard) };
    struct err e = { .code = ERR_NONE };
    atomic_store_explicit(&h->service->heard_ms, clock_ms(), memory_order_relaxed);
    slot_take(slot, &q);
    if (push(lane, &q, &a, &e) < 0) {
        a.code = (int32_t)e.code;
        str_fmt(a.text, sizeof(a.text), "%s", e.msg);
    }
    memcpy(&slot->answer, &a, a.code == ERR_NONE ? offsetof(struct slot_answer, text) : sizeof(a));
    slot_post(&slot->answered, number);
}

static bool worker_is_gone(const struct share *h)
{
    struct pollfd fd = { .fd = h->process, .events = POLLIN };
    return poll(&fd, 1, 0) != 0;
}

static void lane_loop(void *user)
{
    struct lane *lane = user;
    struct share *h = lane->share;
    struct slot *slot = lane->slot;
    for (uint32_t number = 0; !atomic_load(&h->over) && !atomic_load(&slot->closed);) {
        if (slot_wait(&slot->asked, number, LOOK_MS))
            serve(lane, number = atomic_load_explicit(&slot->asked, memory_order_acquire));
        else if (worker_is_gone(h))
            atomic_store(&h->over, true);
    }
    atomic_store(&h->over, true);
    if (atomic_fetch_sub(&h->running, 1) > 1)
        return;
    MUTEX_GUARD(&h->lock); /* the last one: nobody looks at the memory any more */
    region_free(TAKE(h->region));
}

/* ---- making ---- */

static void share_free(struct share *h)
{
    if (h == NULL)
        return;
    atomic_store(&h->over, true);
    mutex_lock(&h->lock);
    for (int i = 0; i < h->nlanes && h->region != NULL; i++)
        slot_wake(&h->lanes[i].slot->asked);
    mutex_unlock(&h->lock);
    for (int i = 0; i < h->nlanes; i++)
        thread_join(&h->lanes[i].thread);
    region_free(h->region);
    fd_close(h->process);
    mutex_fini(&h->lock);
    free(h);
}
DEFINE_AUTO(share, share_free);

static int find_slots(struct share *h, const Trainyard__V1__AttachRequest *q, struct err *e)
{
    size_t bytes = slot_size(q->slot_segments);
    if (q->slots == 0 || q->slots > SLOTS_MAX || q->slot_segments == 0 || q->slots_at % SLOT_ALIGNMENT != 0)
        return err_set(e, ERR_REFUSED, "%u slots of %u segments at %llu are not valid", q->slots, q->slot_segments,
                       (unsigned long long)q->slots_at);
    unsigned char *first = region_at(h->region, q->slots_at, q->slots * bytes);
    if (first == NULL)
        return err_set(e, ERR_REFUSED, "the slots reach beyond the memory");
    h->capacity = q->slot_segments;
    for (uint32_t i = 0; i < q->slots; i++)
        h->lanes[i] =
            (struct lane){ .share = h, .region = h->region, .slot = (struct slot *)(void *)(first + i * bytes) };
    return 0;
}

static int share_open(const struct exchange *x, const Trainyard__V1__AttachRequest *q, struct share **ret,
                      struct err *e)
{
    AUTO(share) *h = xcalloc(1, sizeof(*h));
    *h = (struct share){ .service = x->service, .process = (int)syscall(SYS_pidfd_open, q->pid, 0) };
    mutex_init(&h->lock);
    str_fmt(h->sender, sizeof(h->sender), "%s", x->caller->name);
    str_fmt(h->job_uid, sizeof(h->job_uid), "%s", x->caller->job_uid);
    if (h->process < 0)
        return err_set(e, ERR_REFUSED, "process %d cannot be seen from here", q->pid);
    if (region_open(q->pid, q->fd, q->size, q->nonce.data, q->nonce.len, &h->region, e) < 0 || find_slots(h, q, e) < 0)
        return -1;
    for (uint32_t i = 0; i < q->slots; i++, h->nlanes++) {
        atomic_fetch_add(&h->running, 1);
        if (thread_start(&h->lanes[i].thread, "share", lane_loop, &h->lanes[i], e) < 0) {
            atomic_fetch_sub(&h->running, 1);
            return -1;
        }
    }
    *ret = TAKE(h);
    return 0;
}

/* ---- the list ---- */

/* Those that are over leave it, and what an earlier process of this sender shared. Returns how many stay. */
static int sweep(struct shard_service *v, const char *sender)
{
    int n = 0;
    for (struct share **at = &v->shares; *at != NULL;) {
        struct share *h = *at;
        if (!atomic_load(&h->over) && !str_eq(h->sender, sender)) {
            at = &h->next;
            n++;
            continue;
        }
        *at = h->next;
        share_free(h);
    }
    return n;
}

/* No more memory than a worker of this job needs, by what the chief said of the model, and no longer slots than this
 * shard has segments. */
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
    AUTO(share) *h = NULL;
    if (!atomic_load(&v->share))
        return err_set(e, ERR_REFUSED, "this ps does not share memory");
    if (q->slot_version != SLOT_VERSION)
        return err_set(e, ERR_REFUSED, "unsupported slot version %u; only %d is supported", q->slot_version,
                       SLOT_VERSION);
    if (shard_check(x->shard, &who, e) < 0 || check_size(x, q, e) < 0)
        return -1;
    MUTEX_GUARD(&v->shares_lock);
    if (sweep(v, who.sender) >= SHARES_MAX)
        return err_set(e, ERR_REFUSED, "no free shared-memory slot");
    if (share_open(x, q, &h, e) < 0)
        return -1;
    h->next = v->shares;
    v->shares = h;
    h = NULL;
    Trainyard__V1__AttachReply r = TRAINYARD__V1__ATTACH_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    wire_pack(&r.base, &x->reply->head);
    return 0;
}

void shares_free(struct shard_service *v)
{
    while (v->shares != NULL) {
        struct share *h = v->shares;
        v->shares = h->next;
        share_free(h);
    }
}

size_t shard_service_shared(struct shard_service *v)
{
    size_t n = 0;
    MUTEX_GUARD(&v->shares_lock);
    for (const struct share *h = v->shares; h != NULL; h = h->next)
        n += !atomic_load(&h->over);
    return n;
}
