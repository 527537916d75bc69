/* towers - the threads of one process that train as if each were a worker: strategies Mirrored and Hogwild. Each has a
 * name, leases, a step engine and gradients of its own; they share the model, the data and the shard. */
#ifndef TRAINYARD_WORKER_TOWERS_H
#define TRAINYARD_WORKER_TOWERS_H

#include "trainer.h"

/* Trains in as many threads as the strategy has, the caller's among them. of: what they have in common. Ends when all
 * have ended. A failure of one (trainer_failed) requests a stop of the process; the first one is the error. */
MUST_USE int towers_run(const struct trainer *of, struct shard *shard, struct err *e);

#endif
