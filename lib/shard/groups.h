/* groups - which batches make one update of a segment. Pure; every process of a job computes the same.
 *
 * A group has `size` consecutive ordinals of one epoch, the last group of an epoch perhaps fewer. Its gradients are
 * summed in ordinal order, each by its weight, so that the update is that of the mean over all examples of the group.
 * Asynchronous training has groups of one.
 *
 * A step is a number of updates: step s of a run is the state after s groups.
 */
#ifndef TRAINYARD_SHARD_GROUPS_H
#define TRAINYARD_SHARD_GROUPS_H

#include "base/buf.h"
#include "base/err.h"
#include "data/ordinal_space.h"

enum { GROUP_MAX = 10000 }; /* ordinals of a group */

struct groups {
    int64_t size;     /* k; 1: each batch is a group */
    int64_t batches;  /* ordinals of an epoch */
    int64_t examples; /* of a batch */
    int64_t rest;     /* examples of the last batch of an epoch */
};
struct groups groups_of(const struct ordinal_space *space, int64_t size);
/* For values from the wire. ERR_INPUT: out of range. */
MUST_USE int groups_check(const struct groups *g, struct err *e);

bool groups_same(const struct groups *a, const struct groups *b);

/* The group of an ordinal: half-open. */
int64_t groups_first(const struct groups *g, int64_t ordinal);
int64_t groups_end(const struct groups *g, int64_t ordinal);
/* The number of groups that lie below an ordinal as a whole: the step when all ordinals below it are applied. */
int64_t groups_below(const struct groups *g, int64_t ordinal);
/* The inverse: the first ordinal of group number `step`. */
int64_t groups_ordinal(const struct groups *g, int64_t step);
/* The factor of its gradient in the sum of the group, which is then divided by the number of ordinals: 1 where all
 * batches of the group have as many examples. */
float groups_weight(const struct groups *g, int64_t ordinal);

/* Adds "the gradients of batches 4, 6 and 3 more" to out: those of the n ordinals from `first` on that are not there.
 */
void groups_describe_missing(int64_t first, const bool *has, int64_t n, struct buf *out);
/* The same: "the batch statistics of batch 4". */
void groups_describe_missing_sums(int64_t first, const bool *has, int64_t n, struct buf *out);

#endif
