/* layout - the segments of a model and which ps holds each: pure functions, so that every process of a job computes the
 * same answer (layout_hash is compared on the wire).
 *
 * A segment never crosses a variable; a variable above SEGMENT_MAX bytes is cut at whole rows (last axes kept together)
 * or, when one row is larger, at SEGMENT_MAX. Boundaries depend on the model alone; the number of ps changes only which
 * ps holds a segment.
 */
#ifndef TRAINYARD_SHARD_LAYOUT_H
#define TRAINYARD_SHARD_LAYOUT_H

#include "job/job.h"
#include "nn/model.h"

enum { SEGMENT_MAX = 4 << 20 };

struct segment_spec {
    uint32_t id; /* index in the layout */
    uint32_t variable;
    size_t offset, count; /* floats in the parameter vector */
    size_t start;         /* first element within its variable */
    enum variable_kind kind;
    float momentum;
    int pin; /* of its variable; not part of the layout's hash */
};
struct layout {
    struct segment_spec *segments;
    size_t n;
    size_t vector; /* floats in the parameter vector */
    uint64_t hash;
};
struct layout *layout_new(const struct model *m);
/* The same from n variables; vector: floats in the parameter vector. */
struct layout *layout_of(const struct variable *const variables[], size_t n, size_t vector);
void layout_free(struct layout *l);
DEFINE_AUTO(layout, layout_free);
/* What must be equal in a worker and the chief: the segments, and layers, loss, metrics and optimizer, which
 * determine gradients and reports without changing a segment. */
uint64_t layout_register_hash(const struct layout *l, const struct model *m);

/* placement - for each ps the ids of its segments, ascending.
 * greedy: largest first onto the least loaded ps (ties: lowest index). round_robin: variable i on ps i % n,
 * TensorFlow's replica_device_setter (all segments of a variable together). Pinned variables are on their ps in both:
 * greedy balances the others around them; in round_robin they take their turn. More ps than segments: some hold none.
 */
struct placement {
    size_t nps;
    uint32_t **ids; /* [ps][i] */
    size_t *n;      /* [ps] */
};
struct placement *placement_new(const struct layout *l, enum placement_kind kind, size_t nps);
void placement_free(struct placement *p);
uint64_t placement_hash(const struct placement *p); /* equal in all that pull and push */
DEFINE_AUTO(placement, placement_free);

#endif
