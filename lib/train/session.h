/* session - the training loop of one worker: take an ordinal, load its batch, forward, backward, push, hand in.
 *
 * Runs in the caller's thread until the job is finished or stopped. A batch is computed from values that contain the
 * worker's own last push. With config.overlap (strategy.overlap) the next batch is computed while a push is in flight.
 * Survives: a ps that is gone or was restored (waits, says so, pushes again), a chief that is gone (works on what it
 * holds, then waits), a new generation.
 */
#ifndef TRAINYARD_TRAIN_SESSION_H
#define TRAINYARD_TRAIN_SESSION_H

#include "base/thread.h"
#include "coord/chief_client.h"
#include "nn/class_weight.h"
#include "params/params.h"

struct session_config {
    const struct model *model; /* all borrowed */
    const struct dataset *dataset;
    const struct ordinal_space *space;
    struct params *params;
    struct chief_client *chief;
    const struct class_weights *class_weights; /* NULL: none */
    const char *name;                          /* "worker-3" */
    int64_t max_wait_ms;                       /* without a ps */
    bool asynchronous;                         /* other workers may update the variables between a pull and a push */
    bool overlap;            /* compute the next batch while a push is in flight; never with local params */
    struct mutex *step_gate; /* NULL, or locked around each update (a chief of this process holds it while it
                                takes a snapshot between two steps) */
};

struct session_stats { /* for /metrics and /progress; read by other threads (relaxed) */
    _Atomic int64_t steps, examples;
    _Atomic double loss; /* of the last batch */
    _Atomic int64_t last_ordinal;
};

/* 0: the job is finished. ERR_STOPPED: a signal or a stopping chief; ERR_DIVERGED; else what made it give up.
 * The caller lets the chief client leave in every case. */
MUST_USE int session_run(const struct session_config *config, struct session_stats *stats, struct err *e);

/* What a user can do about training that diverged. Gradients of workers that train beside each other are stale, which a
 * high learning rate or momentum does not bear. */
const char *session_divergence_cure(bool asynchronous, bool overlap);

#endif
