/* sync_check - what synchronous updates (strategy.updates: sync, Mirrored, MultiWorkerMirrored) cannot do with a model,
 * and what asynchronous ones cannot. Pure. */
#ifndef TRAINYARD_NN_SYNC_CHECK_H
#define TRAINYARD_NN_SYNC_CHECK_H

#include "job/job.h"
#include "nn/model.h"

enum { SYNC_BATCHES_MAX = 64 }; /* of a step, with synchronized layers */

/* Placed ERR_INPUT. */
MUST_USE int sync_check(const struct job *job, const struct model *m, struct err *e);

#endif
