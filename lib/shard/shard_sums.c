/* The shard of a member of an all-reduce: it has every segment, and an update comes as the sum of all gradients. */
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "shard/update_policy.h"

void shard_take_sums(struct shard *s)
{
    s->sums_elsewhere = true;
}

static int check_serving(const struct shard *s, struct err *e)
{
    return s->state == SHARD_SERVING ? 0 : err_set(e, ERR_NOT_READY, "this worker has no state");
}

/* The step at which all segments are. */
static int check_step(const struct shard *s, int64_t at, struct err *e)
{
    if (check_serving(s, e) < 0)
        return -1;
    for (size_t i = 0; i < s->n; i++) {
        int64_t first = s->segments[i].group.first;
        if (s->groups.size == 0 || first != at)
            return err_set(e, ERR_NOT_READY, "segment %u is at batch %lld, the sums are of batch %lld",
                           s->segments[i].spec.id, (long long)first, (long long)at);
    }
    return 0;
}

int shard_apply_sums(struct shard *s, int64_t at, const float *sums, struct err *e)
{
    GATE_SHARED(s);
    int64_t begun_ns = clock_ns();
    struct push p = { .ordinal = at };
    if (check_step(s, at, e) < 0)
        return -1;
    push_begin(s, &p);
    for (size_t i = 0; i < s->n; i++) {
        struct segment *g = &s->segments[i];
        MUTEX_GUARD(&g->lock);
        g->clean = false;
        if (sync_apply_sum(g, &p, sums + g->spec.offset, e) < 0)
            return -1;
    }
    atomic_fetch_add_explicit(&s->pushes, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->apply_ns, (uint64_t)(clock_ns() - begun_ns), memory_order_relaxed);
    shard_updated(s);
    return 0;
}

int shard_load_again(struct shard *s, struct err *e)
{
    GATE_EXCLUSIVE(s);
    if (s->state != SHARD_SERVING && s->state != SHARD_LOADING)
        return err_set(e, ERR_NOT_READY, "it waits for the chief to initialise it");
    for (size_t i = 0; i < s->n; i++)
        segment_forget(&s->segments[i]);
    atomic_store(&s->announced, -1);
    shard_forget_sums(s);
    s->state = SHARD_LOADING;
    return 0;
}

int shard_copy(struct shard *s, size_t index, struct shard_snapshot *ret, struct err *e)
{
    GATE_SHARED(s);
    if (check_serving(s, e) < 0)
        return -1;
    if (index >= s->n)
        return err_set(e, ERR_INPUT, "segment %zu of %zu", index, s->n);
    MUTEX_GUARD(&s->segments[index].lock);
    return segment_copy(&s->segments[index], ret, e);
}

static uint64_t hash_segment(const struct segment *g, uint64_t hash)
{
    const int64_t position[] = { g->state.t, g->applied.low, g->applied.high };
    hash = hash64(position, sizeof(position), hash);
    hash = hash64(g->values, segment_bytes(g), hash);
    for (int i = 0; i < g->nslots; i++)
        hash = hash64(g->slots[i], segment_bytes(g), hash);
    return hash;
}

int shard_state_hash(struct shard *s, uint64_t *ret, struct err *e)
{
    GATE_SHARED(s);
    uint64_t hash = 0;
    if (check_serving(s, e) < 0)
        return -1;
    for (size_t i = 0; i < s->n; i++) {
        MUTEX_GUARD(&s->segments[i].lock);
        hash = hash_segment(&s->segments[i], hash);
    }
    *ret = hash;
    return 0;
}
