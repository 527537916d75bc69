/* Synchronous training: all workers compute the batches of a group from the values of one step, and the ps make one
 * update of them. A worker computes its batches in ascending order. The values of a step come with the push of its last
 * batch of the step before, or are pulled. While gradients of others are missing it asks the chief whether there are
 * batches that no other worker computes.
 *
 * Mirrored is the same with threads of one process as workers, and its shard in place of the ps. They compute from one
 * vector, the shard's own. An update changes it only when all gradients of the step are there, and each ordinal is
 * computed by one thread (train/claims.h). So no thread reads values while they change, though none has a copy. */
#include "base/clock.h"
#include "nn/metrics/metrics.h"
#include "shard/groups.h"
#include "train/strategy_internal.h"

struct sync_strategy {
    struct train_strategy base;
    struct groups groups;
    struct step_pool steps;
    int64_t at;          /* the vector has the values of the step whose group begins here; -1: of no step */
    uint64_t generation; /* in which they were pulled */
    uint64_t lanes;      /* the generation in which the first of the steps in use was begun */
    struct strategy_patience patience;
    uint64_t pull_ns; /* that the step has waited for its values */
};

static struct sync_strategy *sync_of(struct train_strategy *s)
{
    return (struct sync_strategy *)(void *)s;
}

static int sync_open(struct train_strategy *s, struct err *e)
{
    struct sync_strategy *p = sync_of(s);
    if (strategy_begin(s, e) < 0)
        return -1;
    p->groups = groups_of(s->config.space, s->config.group_size);
    params_set_synchronous(s->config.params);
    return 0;
}

static void sync_take_values(struct train_strategy *s, int64_t at)
{
    struct sync_strategy *p = sync_of(s);
    p->at = at;
    p->generation = params_generation(s->config.params);
}

/* 0, STEP_LATER or STEP_OVER. */
static int sync_values(struct train_strategy *s, int64_t at, struct err *e)
{
    struct sync_strategy *p = sync_of(s);
    struct err cause = { 0 };
    if (p->at == at && p->generation == params_generation(s->config.params))
        return 0;
    int64_t begun = clock_ns();
    p->at = -1; /* a pull that fails leaves values of two steps */
    int rc = strategy_pull_at(s, at, p->patience.ms, &cause);
    p->pull_ns += (uint64_t)(clock_ns() - begun);
    if (rc == 0)
        sync_take_values(s, at);
    return strategy_waited(s, &p->patience, rc, &cause, e);
}

static int sync_begin_step(struct train_strategy *s, int64_t ordinal, struct train_step **ret, struct err *e)
{
    struct sync_strategy *p = sync_of(s);
    struct train_step *step;
    float *own;
    int begun = sync_values(s, groups_first(&p->groups, ordinal), e);
    if (begun != 0)
        return begun;
    if (s->config.claims != NULL && !claims_take(s->config.claims, groups_first(&p->groups, ordinal), ordinal))
        return STEP_OVER;
    if (step_pool_take(&p->steps, model_size(s->config.model), &step, &own, e) < 0 ||
        (own == NULL && params_gradients(s->config.params, 0, &own, e) < 0))
        return -1;
    if (step_pool_in_use(&p->steps) == 0)
        p->lanes = p->generation;
    step->grads = own;
    step->ordinal = ordinal;
    step->values = params_vector(s->config.params);
    step->by_variable = true; /* the mean of the group is clipped, by whoever adds it */
    step->network_ns = p->pull_ns;
    p->pull_ns = 0;
    *ret = step;
    return 0;
}

static void sync_gradient_ready(void *user, struct train_step *step, size_t variable)
{
    const struct train_strategy *s = user;
    size_t from = model_variable(s->config.model, variable)->offset;
    if (from > 0)
        params_push_early(s->config.params, step->ordinal, step->grads, from, STRATEGY_PUSH_MS);
}

/* The step of the next batch, when it is the one after this batch's; -1: it is not, or there is no batch. */
static int64_t sync_next_step(const struct train_strategy *s, const struct groups *groups, int64_t ordinal)
{
    int64_t end = groups_end(groups, ordinal), next = chief_client_peek(s->config.chief);
    return next >= end && groups_first(groups, next) == end ? end : -1;
}

/* With synchronized layers: the ps have not been restored since the values came. Then they would lack the sums of
 * earlier phases, and the vector may have other values meanwhile. So all batches of the group are computed again:
 * a gradient of the earlier generation would leave the others without the sums of its batch. */
static bool sync_is_current(struct train_strategy *s, int64_t at)
{
    const struct sync_strategy *p = sync_of(s);
    return p->at == at && p->lanes == params_generation(s->config.params);
}

static int sync_submit(struct train_strategy *s, struct train_step *step, struct err *e)
{
    const struct strategy_config *c = &s->config;
    struct sync_strategy *p = sync_of(s);
    if (c->lockstep && !sync_is_current(s, groups_first(&p->groups, step->ordinal)))
        return STEP_OVER;
    struct push_result pushed = { 0 };
    struct err cause = { 0 }, failure = { 0 };
    uint64_t data_ns = step->data_ns;
    int64_t begun = clock_ns();
    int64_t next = step_pool_in_use(&p->steps) == 1 ? sync_next_step(s, &p->groups, step->ordinal) : -1;
    if (next >= 0) {
        p->at = -1; /* some values may come, and others not */
        params_want_step(c->params, next, p->patience.ms);
    }
    int rc = params_push_start(c->params, step->ordinal, step->grads, true, STRATEGY_PUSH_MS, &cause);
    if (rc == 0) {
        c->in_flight(c->user, step);
        rc = params_push_finish(c->params, &pushed, &cause);
    }
    if (rc == 0 && pushed.has_values) {
        strategy_end_patience(s, &p->patience);
        sync_take_values(s, next);
    }
    if (rc == 0)
        step->network_ns += (uint64_t)(clock_ns() - begun) - (step->data_ns - data_ns);
    else if (!err_is(&cause, ERR_PENDING) && strategy_push_again(s, step, &cause, &pushed, &failure) == 0)
        rc = 0;
    if (rc < 0 && (err_is(&cause, ERR_PENDING) || err_is(&failure, ERR_PENDING)))
        return strategy_later(s, &p->patience,
                              err_is(&cause, ERR_PENDING) ? &cause : &failure); /* the ps went back to a checkpoint */
    if (rc < 0 && c->lockstep && err_is(&failure, ERR_STALE))
        return STEP_OVER;
    if (rc < 0)
        return err_set(e, failure.code, "%s", failure.msg);
    strategy_applied(s, step, &pushed);
    return 0;
}

static int sync_finish(struct train_strategy *s, struct err *e)
{
    (void)s, (void)e; /* submit returns when every segment has the gradient */
    return 0;
}

static void sync_close(struct train_strategy *s)
{
    struct sync_strategy *p = sync_of(s);
    params_watch(s->config.params, 0, NULL, NULL);
    step_pool_fini(&p->steps);
    free(p);
}

/* ---- synchronized layers ---- */

static int sync_reduce(struct train_strategy *s, struct group_request *q, struct err *e)
{
    struct sync_strategy *p = sync_of(s);
    struct err cause = { 0 };
    if (!sync_is_current(s, q->part.at))
        return STEP_OVER;
    q->wait_ms = p->patience.ms;
    int rc = strategy_reduce(s, q, &cause);
    return strategy_waited(s, &p->patience, rc, &cause, e);
}

static void sync_give_up(struct train_strategy *s, struct train_step *step)
{
    (void)s;
    step->ordinal = -1;
}

static const struct strategy_ops SYNC = {
    .open = sync_open,
    .begin_step = sync_begin_step,
    .gradient_ready = sync_gradient_ready,
    .submit = sync_submit,
    .reduce = sync_reduce,
    .give_up = sync_give_up,
    .finish = sync_finish,
    .close = sync_close,
};

struct train_strategy *strategy_sync_new(const struct strategy_config *config)
{
    struct sync_strategy *p = xcalloc(1, sizeof(*p));
    p->base = (struct train_strategy){ .ops = &SYNC, .config = *config };
    p->at = -1;
    p->patience.ms = STRATEGY_PATIENCE_MS;
    step_pool_init(&p->steps, config->model);
    return &p->base;
}
