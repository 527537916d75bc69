/* session - the training loop of one worker: take an ordinal, load its batch, forward, backward, push, hand in.
 *
 * Runs in the caller's thread until the job is finished or stopped. Over gRPC one push is in flight while the next
 * batch is computed, as long as staleness stays small (train/overlap.h); in single-machine mode nothing overlaps and every
 * step is exact.
 * Survives: a ps that is gone or was restored (waits, says so, pushes again), a chief that is gone (works on what it
 * holds, then waits), a new generation.
 */
#ifndef TRAINYARD_TRAIN_SESSION_H
#define TRAINYARD_TRAIN_SESSION_H

#include "base/thread.h"
#include "nn/exec.h"
#include "train/member.h"
#include "train/params.h"

struct session_config {
    const struct model *model;       /* all borrowed */
    const struct dataset *dataset;
    const struct ordinal_space *space;
    struct params *params;
    struct member *member;
    const char *name;                /* "worker-3" */
    int64_t max_wait_ms;             /* without a ps */
    bool overlap;                    /* allowed to compute while a push is in flight */
    struct mutex *step_gate;         /* NULL, or locked around each update (a chief of this process holds it while it
                                        takes a snapshot between two steps) */
};

struct session_stats { /* for /metrics and /progress; read by other threads (relaxed) */
    _Atomic int64_t steps, examples;
    _Atomic double loss;             /* of the last batch */
    _Atomic int64_t last_ordinal;
};

/* 0: the job is finished. ERR_STOPPED: a signal or a stopping chief; ERR_DIVERGED; else what made it give up.
 * The member is told to leave in every case by the caller. */
MUST_USE int session_run(const struct session_config *config, struct session_stats *stats, struct err *e);

#endif
