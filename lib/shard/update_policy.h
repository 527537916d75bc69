/* update_policy - how the gradients of ordinals become updates of a segment: a table of operations, one for each
 * strategy.updates. Part of the shard; all operations run under the segment's lock. accept ensures exactly-once: an
 * ordinal that it has accepted is not accepted again. */
#ifndef TRAINYARD_SHARD_UPDATE_POLICY_H
#define TRAINYARD_SHARD_UPDATE_POLICY_H

#include "shard/shard_internal.h"

struct push { /* one push on its way through the segments */
    const struct optimizer *optimizer;
    int64_t ordinal;
    double rate;               /* rate that a callback has set for the ordinal; NaN: the optimizer's */
    struct float_reader grads; /* .in NULL: they are in vectors.grads */
    struct shard_vectors vectors;
    float *out;             /* where the next values go when they do not go to vectors.values, or NULL */
    struct opt_state begun; /* what `step` was computed for: mostly the same for all segments */
    struct opt_step step;
    bool has_step;
    size_t applied; /* segments that did not have it */
    int64_t staleness;
};
/* Where the new values of a segment go, or NULL. */
static inline float *push_values_to(const struct push *p, const struct segment *g)
{
    return p->vectors.values != NULL ? p->vectors.values + g->spec.offset : p->out;
}

struct update_policy {
    /* The ordinal of the push arrived at the segment: 1 when it is accepted, 0 when the segment already has it, -1 on
     * error. */
    int (*accept)(struct segment *g, struct push *p, struct err *e);
    /* Whether accepted gradients may become an update now. */
    bool (*ready)(const struct segment *g);
    /* Makes the update: reads the segment's gradient from the push, advances the version, and copies the new values
     * to push_values_to(). Not for VAR_CONST, which has no gradient. */
    int (*commit)(struct segment *g, struct push *p, struct err *e);
};
extern const struct update_policy UPDATE_ASYNC; /* update_async.c */

#endif
