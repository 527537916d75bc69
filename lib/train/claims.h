/* claims - which thread of this process computes an ordinal of the step, when several threads compute from one vector.
 *
 * An ordinal may be leased twice: the chief takes back the leases of a process that was stopped for a while. In one
 * process its gradient must then be computed once only. While an ordinal of a step is neither pushed nor given up, no
 * update of that step happens, so whoever has claimed one reads values that do not change. Thread-safe.
 */
#ifndef TRAINYARD_TRAIN_CLAIMS_H
#define TRAINYARD_TRAIN_CLAIMS_H

#include "base/mem.h"
#include "shard/groups.h"

struct claims;
struct claims *claims_new(int64_t size); /* of a group */
void claims_free(struct claims *c);
DEFINE_AUTO(claims, claims_free);

/* The group begins with the ordinal `first`. False: another thread has claimed the ordinal, or a later step has begun.
 */
bool claims_take(struct claims *c, int64_t first, int64_t ordinal);

#endif
