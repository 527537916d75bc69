/* rebase - how a run continues with other batches: new data, another batch size or seed, from the next epoch on.
 *
 * Ordinals name batches of one space only, so a new space begins at an epoch of which no batch was trained. All
 * ordinals before it count as applied; those of the new space follow. Values, slots and versions stay. The global step
 * continues, so step and ordinal differ from then on by `offset`, which is in every later checkpoint ("stepOffset").
 */
#ifndef TRAINYARD_CHIEF_REBASE_H
#define TRAINYARD_CHIEF_REBASE_H

#include "chief/checkpoint.h"
#include "data/dataset.h"

struct rebase {
    bool on;
    int64_t epoch;   /* the first one of the new space */
    int64_t low;     /* its first ordinal */
    int64_t version; /* version of every segment: the newest one's, also for segments that were saved a step earlier */
    int64_t offset;  /* version - low: global step = ordinals applied + offset */
};

/* For a checkpoint whose batches differ from those of `to`; on: false when they are the same. */
MUST_USE int rebase_plan(const struct checkpoint *c, const struct layout *l, const struct ordinal_space *to,
                         struct rebase *ret, struct err *e);
/* The offset of a checkpoint that needs no rebase. */
MUST_USE int rebase_offset(const struct checkpoint *c, int64_t *ret, struct err *e);

#endif
