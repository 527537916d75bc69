/* Idle buffers are reused by size; a count of bytes and buffers by caller keeps the limits. */
#include "params/buffer_pool.h"

#include "base/clock.h"
#include "base/str.h"
#include "base/thread.h"

struct pool_caller {
    uint64_t caller;
    size_t out, bytes;
};
struct buffer_pool {
    struct mutex lock;
    struct cond given;
    size_t bytes_out, waiting;
    struct pooled_buffer *idle[BUFFER_POOL_KEEP];
    size_t nidle, out;
    struct pool_caller *holders; /* the callers that have something */
    size_t nholders;
    bool closed;
};

struct buffer_pool *buffer_pool_new(void)
{
    struct buffer_pool *p = xcalloc(1, sizeof(*p));
    mutex_init(&p->lock);
    cond_init(&p->given);
    return p;
}

static void buffer_free(struct pooled_buffer *b)
{
    free(b->data);
    free(b);
}

static void free_pool(struct buffer_pool *p)
{
    for (size_t i = 0; i < p->nidle; i++)
        buffer_free(p->idle[i]);
    free(p->holders);
    cond_fini(&p->given);
    mutex_fini(&p->lock);
    free(p);
}

void buffer_pool_free(struct buffer_pool *p)
{
    if (p == NULL)
        return;
    mutex_lock(&p->lock);
    p->closed = true;
    bool last = p->out == 0;
    mutex_unlock(&p->lock);
    if (last)
        free_pool(p);
}

/* The smallest idle buffer that is large enough and not wastefully large. */
static struct pooled_buffer *take_idle(struct buffer_pool *p, size_t size)
{
    size_t best = p->nidle;
    for (size_t i = 0; i < p->nidle; i++) {
        size_t have = p->idle[i]->size;
        if (have >= size && have / 4 <= size && (best == p->nidle || have < p->idle[best]->size))
            best = i;
    }
    if (best == p->nidle)
        return NULL;
    struct pooled_buffer *b = p->idle[best];
    p->idle[best] = p->idle[--p->nidle];
    return b;
}

static struct pool_caller *pool_caller_of(struct buffer_pool *p, uint64_t caller)
{
    for (size_t i = 0; i < p->nholders; i++)
        if (p->holders[i].caller == caller)
            return &p->holders[i];
    return NULL;
}

static void add_to_caller(struct buffer_pool *p, uint64_t caller, size_t size)
{
    struct pool_caller *h = caller != 0 ? pool_caller_of(p, caller) : NULL;
    if (caller == 0)
        return;
    if (h == NULL) {
        p->holders = xrealloc(p->holders, (p->nholders + 1) * sizeof(*p->holders));
        h = &p->holders[p->nholders++];
        *h = (struct pool_caller){ .caller = caller };
    }
    h->out++;
    h->bytes += size;
}

static void remove_from_caller(struct buffer_pool *p, uint64_t caller, size_t size)
{
    struct pool_caller *h = caller != 0 ? pool_caller_of(p, caller) : NULL;
    if (h == NULL)
        return;
    h->bytes -= size;
    if (--h->out == 0)
        *h = p->holders[--p->nholders];
}

/* NULL, or the limit that another reply would exceed. */
static const char *exceeded_limit(struct buffer_pool *p, size_t size, const struct buffer_pool_limit *limit)
{
    const struct pool_caller *h = limit->caller != 0 ? pool_caller_of(p, limit->caller) : NULL;
    if (p->out > 0 && (p->bytes_out > limit->budget || size > limit->budget - p->bytes_out))
        return "the limit of all callers";
    if (h != NULL && (h->bytes > limit->share || size > limit->share - h->bytes))
        return "the limit of this caller";
    return NULL;
}

/* Under the lock. Takes the bytes of a reply out of the budget. */
static int reserve(struct buffer_pool *p, size_t size, struct buffer_pool_limit limit, struct err *e)
{
    int64_t until = 0;
    char out[32];
    bool late = false;
    for (const char *limit_name; (limit_name = exceeded_limit(p, size, &limit)) != NULL;) {
        if (late || limit.wait_ms == 0)
            return err_set(e, ERR_NOT_READY,
                           "%s of replies are not read yet, and one more would exceed %s: retry later",
                           str_bytes(p->bytes_out, out), limit_name);
        until = until == 0 ? clock_ms() + limit.wait_ms : until;
        p->waiting++;
        late = !cond_wait_until(&p->given, &p->lock, until);
        p->waiting--;
    }
    p->out++;
    p->bytes_out += size;
    add_to_caller(p, limit.caller, size);
    return 0;
}

/* Under the lock. */
static void release(struct buffer_pool *p, size_t size, uint64_t caller)
{
    remove_from_caller(p, caller, size);
    p->out--;
    p->bytes_out -= size;
    if (p->waiting > 0)
        cond_broadcast(&p->given);
}

int buffer_pool_reserve(struct buffer_pool *p, size_t size, struct buffer_pool_limit limit, struct err *e)
{
    MUTEX_GUARD(&p->lock);
    return reserve(p, size, limit, e);
}

void buffer_pool_release(struct buffer_pool *p, size_t size, uint64_t caller)
{
    mutex_lock(&p->lock);
    release(p, size, caller);
    bool last = p->closed && p->out == 0;
    mutex_unlock(&p->lock);
    if (last)
        free_pool(p);
}

static int allocate(struct buffer_pool *p, size_t size, uint64_t caller, struct pooled_buffer **ret, struct err *e)
{
    void *data;
    if (mem_alloc(size, "a reply", &data, e) < 0) {
        buffer_pool_release(p, size, caller);
        return -1;
    }
    struct pooled_buffer *b = xmalloc(sizeof(*b));
    *b = (struct pooled_buffer){ .pool = p, .size = size, .data = data };
    *ret = b;
    return 0;
}

int buffer_pool_take(struct buffer_pool *p, size_t size, struct buffer_pool_limit limit, struct pooled_buffer **ret,
                     struct err *e)
{
    struct pooled_buffer *b;
    {
        MUTEX_GUARD(&p->lock);
        if (reserve(p, size, limit, e) < 0)
            return -1;
        b = take_idle(p, size);
    }
    if (b == NULL && allocate(p, size, limit.caller, &b, e) < 0)
        return -1;
    b->taken = size;
    b->caller = limit.caller;
    *ret = b;
    return 0;
}

/* When all places are taken the smallest buffer is freed: a large one costs more to allocate. */
static struct pooled_buffer *keep_idle(struct buffer_pool *p, struct pooled_buffer *b)
{
    if (p->nidle < BUFFER_POOL_KEEP) {
        p->idle[p->nidle++] = b;
        return NULL;
    }
    size_t smallest = 0;
    for (size_t i = 1; i < p->nidle; i++)
        if (p->idle[i]->size < p->idle[smallest]->size)
            smallest = i;
    if (p->idle[smallest]->size >= b->size)
        return b;
    struct pooled_buffer *out = p->idle[smallest];
    p->idle[smallest] = b;
    return out;
}

void buffer_pool_hand_over(struct pooled_buffer *b)
{
    atomic_store_explicit(&b->handed_over, true, memory_order_release);
}

void buffer_pool_give(void *buffer)
{
    struct pooled_buffer *b = buffer, *surplus;
    if (b == NULL)
        return;
    (void)atomic_load_explicit(&b->handed_over, memory_order_acquire);
    struct buffer_pool *p = b->pool;
    mutex_lock(&p->lock);
    size_t taken = b->taken;
    uint64_t caller = b->caller;
    surplus = keep_idle(p, b);
    release(p, taken, caller);
    bool last = p->closed && p->out == 0;
    mutex_unlock(&p->lock);
    if (surplus != NULL)
        buffer_free(surplus);
    if (last)
        free_pool(p);
}
