/* MultiWorkerMirrored: all workers compute the batches of a group from the values of one step, and give their gradients
 * to the members of the collective (collective/collective.h), which make the update. A worker computes its batches in
 * ascending order. While gradients of others are missing it asks the chief whether there are batches that no other
 * worker computes. */
#include <string.h>

#include "base/clock.h"
#include "collective/collective.h"
#include "nn/metrics/metrics.h"
#include "shard/groups.h"
#include "train/strategy_internal.h"

struct multi_worker {
    struct train_strategy base;
    struct groups groups;
    struct step_pool steps;
    int64_t entered; /* the step in which values do not change, by its first ordinal; -1: none */
    uint64_t view;   /* in which all sums for the steps in use were, or will be, asked for */
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

static void leave_step(struct multi_worker *p)
{
    collective_leave(p->base.config.collective);
    p->entered = -1;
}

/* 0, STEP_LATER or STEP_OVER. */
static int enter_step(struct train_strategy *s, int64_t at, struct err *e)
{
    struct multi_worker *p = multi_worker_of(s);
    struct err cause = { 0 };
    if (p->entered == at)
        return 0;
    int64_t next = step_pool_in_use(&p->steps) > 1 ? at : next_step(p);
    int rc = collective_enter(s->config.collective, at, next, p->patience.ms, &cause);
    if (rc == 0)
        p->entered = at;
    return strategy_waited(s, &p->patience, rc, &cause, e);
}

/* 0, STEP_LATER or STEP_OVER. */
static int multi_worker_begin_step(struct train_strategy *s, int64_t ordinal, struct train_step **ret, struct err *e)
{
    struct multi_worker *p = multi_worker_of(s);
    struct train_step *step;
    float *own;
    int64_t begun = clock_ns();
    int entered = enter_step(s, groups_first(&p->groups, ordinal), e);
    if (entered != 0)
        return entered;
    if (step_pool_take(&p->steps, model_size(s->config.model), &step, &own, e) < 0)
        return -1;
    step->grads = s->config.lockstep ? own : collective_gradient(s->config.collective);
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

/* In lockstep the step is left and entered again while the gradient is computed, and the memory that other members read
 * may be another one then. */
static const float *shared_gradient(const struct train_strategy *s, const struct train_step *step)
{
    float *shared = s->config.lockstep ? collective_gradient(s->config.collective) : NULL;
    if (shared == NULL)
        return step->grads;
    memcpy(shared, step->grads, model_size(s->config.model) * sizeof(*shared));
    return shared;
}

/* True once for each view. Its first member may lack the sums, and gradients that were given in an earlier view are
 * lost: whoever computes one of them again needs the numbers of all batches. */
static bool is_other_view(struct multi_worker *p)
{
    uint64_t before = p->view;
    p->view = collective_view_number(p->base.config.collective);
    return p->view != before;
}

static int multi_worker_submit(struct train_strategy *s, struct train_step *step, struct err *e)
{
    const struct strategy_config *c = &s->config;
    struct multi_worker *p = multi_worker_of(s);
    struct err cause = { 0 };
    uint64_t data_ns = step->data_ns;
    int64_t begun = clock_ns();
    int entered = enter_step(s, groups_first(&p->groups, step->ordinal), e);
    if (entered != 0)
        return entered;
    if (c->lockstep && is_other_view(p))
        return STEP_AGAIN;
    collective_give(c->collective, step->ordinal, shared_gradient(s, step), 0);
    c->in_flight(c->user, step);
    int rc = collective_given(c->collective, &cause);
    leave_step(p);
    step->network_ns += (uint64_t)(clock_ns() - begun) - (step->data_ns - data_ns);
    if (err_is(&cause, ERR_PENDING))
        return strategy_later(s, &p->patience, &cause);
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
    struct err e;
    struct multi_worker *p = multi_worker_of(s);
    collective_leave(s->config.collective); /* a step that failed */
    if (collective_take_back(s->config.collective, &e) == 0)
        step_pool_fini(&p->steps); /* else the collective still reads from it, and the process ends */
    free(s);
}

/* ---- synchronized layers ---- */

/* While it waits, the step may be made without this worker. */
static int multi_worker_reduce(struct train_strategy *s, struct group_request *q, struct err *e)
{
    struct multi_worker *p = multi_worker_of(s);
    struct err cause = { 0 };
    int entered = enter_step(s, q->part.at, e);
    if (entered != 0)
        return entered;
    if (is_other_view(p) && (q->part.phase > 0 || q->part.n < step_pool_in_use(&p->steps))) {
        q->answer = GROUP_AGAIN;
        return 0;
    }
    q->wait_ms = p->patience.ms;
    int rc = collective_reduce(s->config.collective, q, &cause);
    if (rc < 0)
        leave_step(p);
    return strategy_waited(s, &p->patience, rc, &cause, e);
}

static void multi_worker_give_up(struct train_strategy *s, struct train_step *step)
{
    leave_step(multi_worker_of(s));
    step->ordinal = -1;
}

static const struct strategy_ops MULTI_WORKER = {
    .open = multi_worker_open,
    .begin_step = multi_worker_begin_step,
    .gradient_ready = multi_worker_gradient_ready,
    .submit = multi_worker_submit,
    .reduce = multi_worker_reduce,
    .give_up = multi_worker_give_up,
    .finish = multi_worker_finish,
    .close = multi_worker_close,
};

struct train_strategy *strategy_multi_worker_new(const struct strategy_config *config)
{
    struct multi_worker *p = xcalloc(1, sizeof(*p));
    p->base = (struct train_strategy){ .ops = &MULTI_WORKER, .config = *config };
    p->patience.ms = STRATEGY_PATIENCE_MS;
    p->entered = -1;
    step_pool_init(&p->steps, config->model);
    return &p->base;
}
