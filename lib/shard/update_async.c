/* Asynchronous updates: a gradient is one update of the segment at once, in the order of arrival. It is read
 * directly from the push, a chunk at a time, and the new values are copied out while they are in the cache. */
#include <math.h>
#include <string.h>

#include "shard/update_kernel.h"
#include "shard/update_policy.h"

/* Number of floats that are updated and then copied out while they are in the first cache. */
enum { CHUNK = 1024 };

static void update(struct segment *g, const struct push *p, const struct opt_step *step, size_t at, const void *x,
                   size_t n)
{
    if (step == NULL) {
        update_average(g->values + at, x, g->spec.momentum, g->values + at, n);
        return;
    }
    float *slots[OPTIMIZER_MAX_SLOTS] = { NULL };
    for (int i = 0; i < g->nslots; i++)
        slots[i] = g->slots[i] + at;
    optimizer_apply(p->optimizer, step, g->values + at, slots, x, n);
}

static int apply(struct segment *g, struct push *p, struct err *e)
{
    const struct opt_step *step = g->spec.kind == VAR_TRAINABLE ? push_step(p, g, 1) : NULL;
    float *to = push_values_to(p, g);
    const void *x = NULL;
    for (size_t at = 0, n; at < g->spec.count; at += n) {
        n = push_grads(p, g, at, MIN(g->spec.count - at, (size_t)CHUNK), &x);
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

static int async_take(struct segment *g, struct push *p, struct err *e)
{
    int fresh = ordinal_set_add(&g->applied, p->ordinal, e);
    if (fresh < 0)
        return -1;
    if (g->spec.kind == VAR_CONST) {
        g->state.t += fresh;
        return fresh;
    }
    float *to = push_values_to(p, g);
    if (fresh == 1)
        return apply(g, p, e) < 0 ? -1 : 1;
    if (to != NULL)
        memcpy(to, g->values, segment_bytes(g));
    return push_skip(p, g, e);
}

const struct update_policy UPDATE_ASYNC = { .take = async_take, .answers_values = true };
