/* roles - what a replica does once it is open. Each call runs to the end of the job or of this replica's part in it;
 * the error's code is the exit code (base/err.h). */
#ifndef TRAINYARD_WORKER_ROLES_H
#define TRAINYARD_WORKER_ROLES_H

#include "replica.h"

MUST_USE int run_leader(struct replica *r,
                        struct err *e); /* the chief, which also trains if configured; single machine */
MUST_USE int run_worker(struct replica *r, struct err *e);
MUST_USE int run_evaluator(struct replica *r, struct err *e);

#endif
