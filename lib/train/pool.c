#include "train/pool.h"

#include "base/thread.h"

struct pool {
    struct mutex lock;
    struct pool_buffer *idle[POOL_KEEP];
    size_t nidle, out;
    bool closed;
};

struct pool *pool_new(void)
{
    struct pool *p = xcalloc(1, sizeof(*p));
    mutex_init(&p->lock);
    return p;
}

static void buffer_free(struct pool_buffer *b)
{
    free(b->data);
    free(b);
}

static void destroy(struct pool *p)
{
    for (size_t i = 0; i < p->nidle; i++)
        buffer_free(p->idle[i]);
    mutex_fini(&p->lock);
    free(p);
}

void pool_free(struct pool *p)
{
    if (p == NULL)
        return;
    mutex_lock(&p->lock);
    p->closed = true;
    bool last = p->out == 0;
    mutex_unlock(&p->lock);
    if (last)
        destroy(p);
}

/* The smallest idle buffer that is large enough and not wastefully large. */
static struct pool_buffer *find(struct pool *p, size_t size)
{
    size_t best = p->nidle;
    for (size_t i = 0; i < p->nidle; i++) {
        size_t have = p->idle[i]->size;
        if (have >= size && have / 4 <= size && (best == p->nidle || have < p->idle[best]->size))
            best = i;
    }
    if (best == p->nidle)
        return NULL;
    struct pool_buffer *b = p->idle[best];
    p->idle[best] = p->idle[--p->nidle];
    return b;
}

int pool_take(struct pool *p, size_t size, struct pool_buffer **ret, struct err *e)
{
    struct pool_buffer *b;
    {
        MUTEX_GUARD(&p->lock);
        b = find(p, size);
        p->out += b != NULL;
    }
    if (b == NULL) {
        void *data;
        if (mem_alloc(size, "a reply", &data, e) < 0)
            return -1;
        b = xmalloc(sizeof(*b));
        b->pool = p;
        b->size = size;
        b->data = data;
        atomic_init(&b->lent, false);
        MUTEX_GUARD(&p->lock);
        p->out++;
    }
    *ret = b;
    return 0;
}

/* When all places are taken the smallest makes room: a large one is dearer to make. */
static struct pool_buffer *keep(struct pool *p, struct pool_buffer *b)
{
    if (p->nidle < POOL_KEEP) {
        p->idle[p->nidle++] = b;
        return NULL;
    }
    size_t smallest = 0;
    for (size_t i = 1; i < p->nidle; i++)
        if (p->idle[i]->size < p->idle[smallest]->size)
            smallest = i;
    if (p->idle[smallest]->size >= b->size)
        return b;
    struct pool_buffer *out = p->idle[smallest];
    p->idle[smallest] = b;
    return out;
}

void pool_lend(struct pool_buffer *b)
{
    atomic_store_explicit(&b->lent, true, memory_order_release);
}

void pool_give(void *buffer)
{
    struct pool_buffer *b = buffer, *surplus;
    if (b == NULL)
        return;
    (void)atomic_load_explicit(&b->lent, memory_order_acquire);
    struct pool *p = b->pool;
    mutex_lock(&p->lock);
    surplus = keep(p, b);
    p->out--;
    bool last = p->closed && p->out == 0;
    mutex_unlock(&p->lock);
    if (surplus != NULL)
        buffer_free(surplus);
    if (last)
        destroy(p);
}
