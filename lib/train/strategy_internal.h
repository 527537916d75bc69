/* strategy_internal - the rows of train/strategy.h, and the code shared by rows that pull from and push to params:
 * every call is repeated until all ps have answered, in the generation that the chief names. */
#ifndef TRAINYARD_TRAIN_STRATEGY_INTERNAL_H
#define TRAINYARD_TRAIN_STRATEGY_INTERNAL_H

#include "train/strategy.h"

/* Of each message, without the time of its bytes (params/params.h). */
enum { STRATEGY_PUSH_MS = 30000 };

struct train_strategy *strategy_ps_new(const struct strategy_config *config);
struct train_strategy *strategy_sync_new(const struct strategy_config *config);
struct train_strategy *strategy_single_new(const struct strategy_config *config);
struct train_strategy *strategy_hogwild_new(const struct strategy_config *config);
struct train_strategy *strategy_multi_worker_new(const struct strategy_config *config);

/* Synchronous training: how long to wait for the values of a step before the chief is asked; longer each time. */
struct strategy_patience {
    int64_t ms;
    struct wait_state wait;
};
enum { STRATEGY_PATIENCE_MS = 10, STRATEGY_PATIENCE_MAX_MS = 160 };
/* Others must compute first; why: what is missing. Returns STEP_LATER. */
int strategy_later(struct train_strategy *s, struct strategy_patience *p, const struct err *why);
void strategy_end_patience(struct train_strategy *s, struct strategy_patience *p);
/* After a call that may wait for others, with its result: 0, STEP_LATER (ERR_PENDING), STEP_OVER (ERR_STALE). */
MUST_USE int strategy_waited(struct train_strategy *s, struct strategy_patience *p, int rc, const struct err *cause,
                             struct err *e);

/* Steps of a group that are computed at the same time. The first one has the memory of the strategy for its gradient,
 * further ones have memory of their own. */
struct step_pool {
    struct train_step **steps; /* a free one has no ordinal */
    float **gradients;         /* memory of its own, or NULL */
    size_t n, width;
};
void step_pool_init(struct step_pool *p, const struct model *m);
void step_pool_fini(struct step_pool *p);
size_t step_pool_in_use(const struct step_pool *p);
/* A free step. *ret_gradient: its own memory; NULL: it is the first. */
MUST_USE int step_pool_take(struct step_pool *p, size_t floats, struct train_step **ret, float **ret_gradient,
                            struct err *e);

/* Sums of batch statistics at the ps. ERR_PENDING; ERR_STALE: the step is over, or training went back to a checkpoint;
 * else as strategy_pull(). */
MUST_USE int strategy_reduce(struct train_strategy *s, struct group_request *q, struct err *e);

/* The generation from the chief, before any other call. */
MUST_USE int strategy_begin(struct train_strategy *s, struct err *e);

/* The generation from the chief, then the values from every ps. */
MUST_USE int strategy_pull(struct train_strategy *s, struct err *e);
/* The values of a step (params_pull_at). ERR_PENDING and ERR_STALE are returned at once; else as strategy_pull(). */
MUST_USE int strategy_pull_at(struct train_strategy *s, int64_t at, int64_t wait_ms, struct err *e);
/* After a push that failed because of `cause`: waits for the ps and pushes again until all have the step. Errors:
 * the cause, when a retry is useless or the failure lasts too long. With config.lockstep, ERR_STALE: a new generation
 * has begun, and ps have lost the sums from which other batches of the group would be computed. */
MUST_USE int strategy_push_again(struct train_strategy *s, struct train_step *step, struct err *cause,
                                 struct push_result *ret, struct err *e);
/* Pushes the whole gradient of the step, again and again as strategy_push_again(). Adds the time to network_ns. */
MUST_USE int strategy_push(struct train_strategy *s, struct train_step *step, struct push_result *ret, struct err *e);
/* Reports the step as applied. */
void strategy_applied(struct train_strategy *s, struct train_step *step, const struct push_result *pushed);

/* ---- strategy_local.c: operations of Single and Hogwild ---- */
struct train_strategy *strategy_local_new(const struct strategy_ops *ops, const struct strategy_config *config);
MUST_USE int strategy_local_begin_step(struct train_strategy *s, int64_t ordinal, struct train_step **ret,
                                       struct err *e);
MUST_USE int strategy_local_submit(struct train_strategy *s, struct train_step *step, struct err *e);
MUST_USE int strategy_local_finish(struct train_strategy *s, struct err *e);
void strategy_local_close(struct train_strategy *s);

#endif
