/* lockstep - the batches of one group that this process computes, when the model has synchronized layers: their
 * statistics are those of the whole group, so the batches go through such a layer together, forward and backward.
 *
 * Each batch has a lane: an engine (train/step_engine.h) with buffers of its own. All lanes compute up to the next
 * sums; the strategy gives the sums of the whole group (strategy_ops.reduce); and so on. A lane that comes later
 * catches up, because sums of earlier phases are kept. When all lanes are computed they are submitted as whole
 * gradients, in ascending order.
 *
 * Belongs to the thread that trains.
 */
#ifndef TRAINYARD_TRAIN_LOCKSTEP_H
#define TRAINYARD_TRAIN_LOCKSTEP_H

#include "train/strategy.h"

struct lockstep;
struct lockstep *lockstep_new(struct train_strategy *strategy, const struct step_engine_config *engine);
void lockstep_free(struct lockstep *l); /* before the strategy is closed */

/* The group that has lanes, by its first ordinal; -1: there are none. */
int64_t lockstep_at(const struct lockstep *l);
size_t lockstep_lanes(const struct lockstep *l);
struct train_step *lockstep_step(const struct lockstep *l, size_t lane);
/* The ordinal, of the group that begins with `at`, gets a lane, or has one. 0, STEP_LATER, STEP_OVER. */
MUST_USE int lockstep_add(struct lockstep *l, int64_t at, int64_t ordinal, struct err *e);
/* Computes all lanes. 0, STEP_LATER: it goes on with the next call; STEP_OVER. ERR_DIVERGED: lockstep_advanced is the
 * batch that did. */
MUST_USE int lockstep_compute(struct lockstep *l, struct err *e);
int64_t lockstep_advanced(const struct lockstep *l);
/* Submits the lowest lane, after lockstep_compute. 0: the lane is gone; or STEP_LATER, STEP_OVER. */
MUST_USE int lockstep_submit(struct lockstep *l, struct err *e);
/* All lanes are given up. */
void lockstep_clear(struct lockstep *l);
/* The engine that will compute the next batch, when one lane is left: it may read that ahead. Else NULL. */
struct step_engine *lockstep_reader(const struct lockstep *l);

#endif
