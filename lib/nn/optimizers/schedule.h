/* schedule - learning rates as a function of the number of updates applied before (Keras's `iterations`, the version of
 * a segment here). Formulas: keras/src/optimizers/schedules/learning_rate_schedule.py. Computed in double; Keras
 * computes in float32, the difference is below 1e-6.
 */
#ifndef TRAINYARD_NN_OPTIMIZERS_SCHEDULE_H
#define TRAINYARD_NN_OPTIMIZERS_SCHEDULE_H

#include "nn/catalog.h"

struct schedule; /* immutable, shared */

/* A constant. */
struct schedule *schedule_constant(double rate);
/* A number, or {ExponentialDecay: {...}} and the like (node_named). */
MUST_USE int schedule_parse(const struct node *n, struct schedule **ret, struct err *e);
void schedule_free(struct schedule *s);
DEFINE_AUTO(schedule, schedule_free);

bool schedule_is_constant(const struct schedule *s); /* a number */
double schedule_at(const struct schedule *s, int64_t t);
/* A number, or the object as Keras serializes it; new reference. */
json_t *schedule_config(const struct schedule *s);

#endif
