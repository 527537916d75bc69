/* strategy - how the gradients of one process become updates of the model: a table of operations between the session
 * loop (train/session.h), which takes ordinals and reports them, and params, which holds the values. One row for each
 * strategy; strategy_new is the only place that chooses one.
 *
 * The loop calls, in one thread: open; then for each ordinal begin_step, step_engine_compute (which calls
 * gradient_ready if the strategy requests it) and submit; finish whenever it has no ordinal; close. The strategy
 * reports through config.applied when the update of a step is in every segment: in submit, or in a later call where
 * updates are in flight during a computation.
 */
#ifndef TRAINYARD_TRAIN_STRATEGY_H
#define TRAINYARD_TRAIN_STRATEGY_H

#include "base/thread.h"
#include "base/wait.h"
#include "collective/collective.h"
#include "coord/chief_client.h"
#include "job/job.h"
#include "params/params.h"
#include "train/claims.h"
#include "train/step_engine.h"

struct strategy_config {
    const struct model *model; /* all borrowed */
    const struct ordinal_space *space;
    int64_t group_size; /* ordinals of an update; 0: asynchronous */
    struct params *params;
    struct collective *collective; /* MultiWorkerMirrored; else NULL */
    struct chief_client *chief;    /* provides the generation; receives the reason of a wait */
    int64_t max_wait_ms;           /* without a ps */
    bool overlap;                  /* ParameterServer: compute the next batch while a push is in flight */
    bool lockstep;                 /* several steps of a group are begun before the first is submitted */
    struct mutex *step_gate; /* NULL, or locked around each update (a chief of this process holds it while it takes a
                                snapshot between two steps) */
    struct claims *claims;   /* Mirrored: of all threads; else NULL */
    const struct report *report;
    void (*applied)(void *user, const struct train_step *step); /* every segment has its update */
    /* The step's update is in flight and nothing is computed: time to read the next batch. Time added to data_ns is
     * not counted as network time. */
    void (*in_flight)(void *user, struct train_step *step);
    void *user;
};

/* STEP_AGAIN, of submit with config.lockstep: the sums of the group are lost, and batches of other workers need them:
 * all steps in use are computed again.
 * STEP_LATER: gradients of an earlier step are missing, perhaps of an ordinal that this process gets next; the ordinal
 * is begun again later. STEP_OVER: every segment has the ordinal already. */
enum { STEP_LATER = 1, STEP_OVER = 2, STEP_AGAIN = 3 };

struct train_strategy;
struct strategy_ops {
    /* Blocks until the first values are there. */
    int (*open)(struct train_strategy *s, struct err *e);
    /* The step of an ordinal with its values and memory, valid until its update is applied. 0, STEP_LATER or
     * STEP_OVER. */
    int (*begin_step)(struct train_strategy *s, int64_t ordinal, struct train_step **ret, struct err *e);
    /* As step_gradient_fn; user is the strategy. NULL: no step is by_variable. */
    step_gradient_fn *gradient_ready;
    /* Takes the gradient of the step that was begun. Blocks as long as the strategy allows no computation meanwhile. 0
     * or STEP_LATER; with config.lockstep also STEP_OVER: the step is given up, and perhaps begun again. */
    int (*submit)(struct train_strategy *s, struct train_step *step, struct err *e);
    /* Synchronized layers, with config.lockstep: the sums of a phase over the group whose steps were begun
     * (train/lockstep.h); q without wait_ms. 0, STEP_LATER or STEP_OVER. NULL: there are no groups. */
    int (*reduce)(struct train_strategy *s, struct group_request *q, struct err *e);
    /* The step was begun, and is not submitted. NULL as reduce. */
    void (*give_up)(struct train_strategy *s, struct train_step *step);
    /* Blocks until every step that was submitted is applied. */
    int (*finish)(struct train_strategy *s, struct err *e);
    /* Ends the calls in flight and frees the strategy; after a failure, too. */
    void (*close)(struct train_strategy *s);
};

struct train_strategy { /* the first part of the structure of each row */
    const struct strategy_ops *ops;
    struct strategy_config config;
    struct wait_state long_call; /* a pull or push that takes long */
};

/* How this process trains. local: without ps. A job with ps that is started alone, without a cluster, is Single. */
enum strategy strategy_of(const struct job *job, bool local);
struct train_strategy *strategy_new(enum strategy kind, const struct strategy_config *config);

/* What a user can do about training that diverged. Gradients of workers that train in parallel are stale, and a high
 * learning rate or momentum does not tolerate that. */
const char *strategy_divergence_cure(enum strategy kind, bool overlap);

#endif
