/* Asynchronous updates: a gradient is one update of the segment at once, in the order of arrival. It is read
 * directly from the push, a chunk at a time, and the new values are copied out while they are in the cache. */
#include <math.h>
#include <string.h>

#include "shard/update_policy.h"

/* v = v m + x (1 - m); x may be at any address */
static void move_average(float *restrict v, const unsigned char *restrict x, float m, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float xi;
        memcpy(&xi, x + i * sizeof(xi), sizeof(xi));
        v[i] = v[i] * m + xi * (1 - m);
    }
}

/* Number of floats that are updated and then copied out while they are in the first cache. */
enum { CHUNK = 1024 };

static const struct opt_step *step_for(struct push *p, const struct segment *g)
{
    bool same = p->has_step && p->begun.t == g->state.t && memcmp(&p->begun.aux, &g->state.aux, sizeof(double)) == 0;
    if (!same) {
        if (isnan(p->rate))
            optimizer_begin(p->optimizer, &g->state, &p->step);
        else
            optimizer_begin_at(p->optimizer, &g->state, p->rate, &p->step);
        p->begun = g->state;
        p->has_step = true;
    }
    return &p->step;
}

static void update(struct segment *g, const struct push *p, const struct opt_step *step, size_t at, const void *x,
                   size_t n)
{
    if (step == NULL) {
        move_average(g->values + at, x, g->spec.momentum, n);
        return;
    }
    float *slots[OPTIMIZER_MAX_SLOTS] = { NULL };
    for (int i = 0; i < g->nslots; i++)
        slots[i] = g->slots[i] + at;
    optimizer_apply(p->optimizer, step, g->values + at, slots, x, n);
}

/* The next gradients of a segment, at most a chunk of them; 0: they ended too soon. */
static size_t next_grads(struct push *p, const struct segment *g, size_t at, const void **ret)
{
    size_t want = MIN(g->spec.count - at, (size_t)CHUNK);
    if (p->grads.in != NULL)
        return floats_next(&p->grads, want, ret);
    *ret = p->vectors.grads + g->spec.offset + at;
    return want;
}

static int async_accept(struct segment *g, struct push *p, struct err *e)
{
    return ordinal_set_add(&g->applied, p->ordinal, e);
}

static bool async_ready(const struct segment *g UNUSED)
{
    return true;
}

static int async_commit(struct segment *g, struct push *p, struct err *e)
{
    const struct opt_step *step = g->spec.kind == VAR_TRAINABLE ? step_for(p, g) : NULL;
    float *to = push_values_to(p, g);
    const void *x = NULL;
    for (size_t at = 0, n; at < g->spec.count; at += n) {
        n = next_grads(p, g, at, &x);
        if (n == 0)
            return err_set(e, ERR_INTERNAL, "a push ended within segment %u", g->spec.id);
        update(g, p, step, at, x, n);
        if (to != NULL)
            memcpy(to + at, g->values + at, n * sizeof(float));
    }
    if (step != NULL)
        optimizer_end(p->optimizer, &g->state);
    else
        g->state.t++;
    return 0;
}

const struct update_policy UPDATE_ASYNC = { .accept = async_accept, .ready = async_ready, .commit = async_commit };
