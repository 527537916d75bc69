/* MultiWorkerMirrored: all workers compute the batches of a group from the values of one step, and give their gradients
 * to the members of the collective (collective/collective.h), which make the update. A worker computes its batches in
 * ascending order. While gradients of others are missing it asks the chief whether there are batches that no other
 * worker computes. */
#include "base/clock.h"
#include "collective/collective.h"
#include "nn/metrics/metrics.h"
#include "shard/groups.h"
#include "train/strategy_internal.h"

struct multi_worker {
    struct train_strategy base;
    struct groups groups;
    struct train_step step;
    struct strategy_patience patience;
};

static struct multi_worker *multi_worker_of(struct train_strategy *s)
{
    return (struct multi_worker *)(void *)s;
}

static int multi_worker_open(struct train_strategy *s, struct err *e)
{
    if (strategy_begin(s, e) < 0)
        return -1;
    multi_worker_of(s)->groups = groups_of(s->config.space, s->config.group_size);
    return 0;
}

/* The step of the batch that this worker computes next; -1: not known. */
static int64_t next_step(const struct multi_worker *p)
{
    int64_t next = chief_client_peek(p->base.config.chief);
    return next >= 0 ? groups_first(&p->groups, next) : -1;
}

/* 0, STEP_LATER or STEP_OVER. */
static int multi_worker_begin_step(struct train_strategy *s, int64_t ordinal, struct train_step **ret, struct err *e)
{
    struct multi_worker *p = multi_worker_of(s);
    struct train_step *step = &p->step;
    struct err cause = { 0 };
    int64_t begun = clock_ns();
    int rc =
        collective_enter(s->config.collective, groups_first(&p->groups, ordinal), next_step(p), p->patience.ms, &cause);
    if (err_is(&cause, ERR_PENDING))
        return strategy_later(s, &p->patience, &cause);
    strategy_end_patience(s, &p->patience);
    if (err_is(&cause, ERR_STALE))
        return STEP_OVER;
    if (rc < 0)
        return err_set(e, cause.code, "%s", cause.msg);
    step->grads = collective_gradient(s->config.collective);
    if (step->grads == NULL && params_gradients(s->config.params, 0, &step->grads, e) < 0)
        return -1;
    step->ordinal = ordinal;
    step->values = params_vector(s->config.params);
    step->by_variable = true; /* the mean of the group is clipped, by each member */
    step->network_ns = (uint64_t)(clock_ns() - begun);
    *ret = step;
    return 0;
}

static void multi_worker_gradient_ready(void *user, struct train_step *step, size_t variable)
{
    const struct train_strategy *s = user;
    size_t from = model_variable(s->config.model, variable)->offset;
    if (from > 0)
        collective_give(s->config.collective, step->ordinal, step->grads, from);
}

static int multi_worker_submit(struct train_strategy *s, struct train_step *step, struct err *e)
{
    const struct strategy_config *c = &s->config;
    struct err cause = { 0 };
    uint64_t data_ns = step->data_ns;
    int64_t begun = clock_ns();
    collective_give(c->collective, step->ordinal, step->grads, 0);
    c->in_flight(c->user, step);
    int rc = collective_given(c->collective, &cause);
    collective_leave(c->collective);
    step->network_ns += (uint64_t)(clock_ns() - begun) - (step->data_ns - data_ns);
    if (err_is(&cause, ERR_PENDING))
        return strategy_later(s, &multi_worker_of(s)->patience, &cause);
    if (rc < 0)
        return err_set(e, cause.code, "%s", cause.msg);
    strategy_applied(s, step, &(struct push_result){ 0 });
    return 0;
}

static int multi_worker_finish(struct train_strategy *s, struct err *e)
{
    (void)s, (void)e; /* submit returns when every owner has its part of the gradient */
    return 0;
}

static void multi_worker_close(struct train_strategy *s)
{
    collective_leave(s->config.collective); /* a step that failed */
    free(multi_worker_of(s)->step.sums);
    free(s);
}

static const struct strategy_ops MULTI_WORKER = {
    .open = multi_worker_open,
    .begin_step = multi_worker_begin_step,
    .gradient_ready = multi_worker_gradient_ready,
    .submit = multi_worker_submit,
    .finish = multi_worker_finish,
    .close = multi_worker_close,
};

struct train_strategy *strategy_multi_worker_new(const struct strategy_config *config)
{
    struct multi_worker *p = xcalloc(1, sizeof(*p));
    p->base = (struct train_strategy){ .ops = &MULTI_WORKER, .config = *config };
    p->patience.ms = STRATEGY_PATIENCE_MS;
    p->step = (struct train_step){ .ordinal = -1, .sums = xcalloc(metrics_width(config->model), sizeof(double)) };
    return &p->base;
}
