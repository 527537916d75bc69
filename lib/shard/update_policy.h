/* update_policy - how the gradients of ordinals become updates of a segment: a row for each strategy.updates. Part of
 * the shard; take runs under the segment's lock. */
#ifndef TRAINYARD_SHARD_UPDATE_POLICY_H
#define TRAINYARD_SHARD_UPDATE_POLICY_H

#include "shard/shard_internal.h"

struct push { /* one push on its way through the segments */
    const struct optimizer *optimizer;
    const struct groups *groups;
    const atomic_int_fast64_t *announced; /* of struct shard */
    int64_t ordinal;
    double rate;               /* rate that a callback has set for the ordinal; NaN: the optimizer's */
    struct float_reader grads; /* .in NULL: they are in vectors.grads */
    struct shard_vectors vectors;
    float *out;             /* where the next values go when they do not go to vectors.values, or NULL */
    struct opt_state begun; /* what `step` was computed for: mostly the same for all segments */
    struct opt_step step;
    bool has_step;
    size_t taken;   /* segments that did not have it */
    size_t updates; /* segments that made an update */
    size_t due;     /* segments whose update is due: the gradient is lent to them until it is made */
    int64_t staleness;
};

struct update_policy {
    /* Takes the push's gradient of the segment, or reads past it when the segment has the ordinal already. Makes the
     * update when it is due: advances version and applied set. 1: taken; 0: it had it; -1: error. */
    int (*take)(struct segment *g, struct push *p, struct err *e);
    bool answers_values; /* take copies the new values to push_values_to() */
};
extern const struct update_policy UPDATE_ASYNC; /* update_async.c */
extern const struct update_policy UPDATE_SYNC;  /* update_sync.c */
/* update_sync.c, under the segment's lock: the update of its group from the sum of all gradients. */
MUST_USE int sync_apply_sum(struct segment *g, struct push *p, const float *sum, struct err *e);

/* What the push needs of the shard; p->ordinal is set. */
void push_begin(const struct shard *s, struct push *p);
/* Where the new values of a segment go, or NULL. */
static inline float *push_values_to(const struct push *p, const struct segment *g)
{
    return p->vectors.values != NULL ? p->vectors.values + g->spec.offset : p->out;
}
/* The next gradients of a segment of which `at` were read, at most `want`, at any address; 0: they ended too soon. */
size_t push_grads(struct push *p, const struct segment *g, size_t at, size_t want, const void **ret);
/* Reads past the gradients of a segment; 0. */
MUST_USE int push_skip(struct push *p, const struct segment *g, struct err *e);
/* The scalars of an update of the segment by so many ordinals. */
const struct opt_step *push_step(struct push *p, const struct segment *g, int64_t ordinals);

#endif
