/* session - the training loop of one worker: take an ordinal, compute its gradient (train/step_engine.h), submit it to
 * the strategy (train/strategy.h), report it.
 *
 * Runs in the caller's thread until the job is finished or stopped. It tolerates a ps that is gone or was restored
 * (waits, reports that, pushes again), a chief that is gone (computes the leased batches, then waits), and a new
 * generation.
 */
#ifndef TRAINYARD_TRAIN_SESSION_H
#define TRAINYARD_TRAIN_SESSION_H

#include <stdatomic.h>

#include "train/strategy.h"

struct session_config {
    const struct model *model; /* all borrowed */
    const struct dataset *dataset;
    const struct ordinal_space *space;
    struct params *params;
    struct collective *collective; /* MultiWorkerMirrored; else NULL */
    struct chief_client *chief;
    const struct class_weights *class_weights; /* NULL: none */
    const struct report *report;
    int64_t max_wait_ms;    /* without a ps */
    enum strategy strategy; /* with STRATEGY_PARAMETER_SERVER the params are not local */
    bool overlap;           /* as in train/strategy.h, as the next two */
    struct mutex *step_gate;
    struct claims *claims;
    _Atomic int64_t *computed; /* NULL, or counts the batches of this session */
};

/* What the time of a step goes to: forward and backward; calls of parameter servers and workers, and the optimizer;
 * batches that were not read ahead in time; leases and other workers. */
enum session_activity { ACTIVITY_COMPUTE, ACTIVITY_NETWORK, ACTIVITY_DATA, ACTIVITY_WAIT, ACTIVITY_COUNT };
struct session_stats { /* for /metrics and /progress; read by other threads (relaxed) */
    _Atomic int64_t steps, examples;
    _Atomic double loss; /* of the last batch */
    _Atomic int64_t last_ordinal;
    _Atomic uint64_t spent_ns[ACTIVITY_COUNT]; /* of the steps that were applied */
};

/* 0: the job is finished. ERR_STOPPED: a signal or a stopping chief; ERR_DIVERGED; else the error that ended it. In
 * every case the caller calls chief_client_leave(). */
MUST_USE int session_run(const struct session_config *config, struct session_stats *stats, struct err *e);

#endif
