/* Synchronous training with parameter servers: all workers compute the batches of a group from the values of one step,
 * and the ps make one update of them. A worker computes its batches in ascending order. The values of a step come with
 * the push of its last batch of the step before, or are pulled. While gradients of others are missing it asks the chief
 * whether there are batches that no other worker computes. */
#include "base/clock.h"
#include "nn/metrics/metrics.h"
#include "train/step_values.h"

struct sync_strategy {
    struct train_strategy base;
    struct step_values values;
    struct train_step step;
};

static struct sync_strategy *sync_of(struct train_strategy *s)
{
    return (struct sync_strategy *)(void *)s;
}

static int sync_open(struct train_strategy *s, struct err *e)
{
    return step_values_open(&sync_of(s)->values, s, e);
}

static int sync_begin_step(struct train_strategy *s, int64_t ordinal, struct train_step **ret, struct err *e)
{
    struct sync_strategy *p = sync_of(s);
    struct train_step *step = &p->step;
    int begun = step_values_get(&p->values, ordinal, e);
    if (begun != 0)
        return begun;
    if (params_gradients(s->config.params, 0, &step->grads, e) < 0)
        return -1;
    step->ordinal = ordinal;
    step->values = params_vector(s->config.params);
    step->by_variable = true; /* the ps clip the mean of the group */
    step->network_ns = step_values_waited_ns(&p->values);
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

static int sync_submit(struct train_strategy *s, struct train_step *step, struct err *e)
{
    const struct strategy_config *c = &s->config;
    struct step_values *values = &sync_of(s)->values;
    struct push_result pushed = { 0 };
    struct err cause = { 0 }, failure = { 0 };
    uint64_t data_ns = step->data_ns;
    int64_t begun = clock_ns(), next = step_values_want(values, step->ordinal);
    int rc = params_push_start(c->params, step->ordinal, step->grads, true, STRATEGY_PUSH_MS, &cause);
    if (rc == 0) {
        c->in_flight(c->user, step);
        rc = params_push_finish(c->params, &pushed, &cause);
    }
    if (rc == 0 && pushed.has_values)
        step_values_take(values, next);
    if (rc == 0)
        step->network_ns += (uint64_t)(clock_ns() - begun) - (step->data_ns - data_ns);
    else if (!err_is(&cause, ERR_PENDING) && strategy_push_again(s, step, &cause, &pushed, &failure) == 0)
        rc = 0;
    if (rc < 0 && (err_is(&cause, ERR_PENDING) || err_is(&failure, ERR_PENDING)))
        return step_values_later(values,
                                 err_is(&cause, ERR_PENDING) ? &cause : &failure); /* they went back to a checkpoint */
    if (rc < 0)
        return err_set(e, failure.code, "%s", failure.msg);
    strategy_applied(s, step, &pushed);
    return 0;
}

static int sync_finish(struct train_strategy *s, struct err *e)
{
    (void)s, (void)e; /* submit returns when every ps has the gradient */
    return 0;
}

static void sync_close(struct train_strategy *s)
{
    struct sync_strategy *p = sync_of(s);
    params_watch(s->config.params, 0, NULL, NULL);
    free(p->step.sums);
    free(p);
}

static const struct strategy_ops SYNC = {
    .open = sync_open,
    .begin_step = sync_begin_step,
    .gradient_ready = sync_gradient_ready,
    .submit = sync_submit,
    .finish = sync_finish,
    .close = sync_close,
};

struct train_strategy *strategy_sync_new(const struct strategy_config *config)
{
    struct sync_strategy *p = xcalloc(1, sizeof(*p));
    p->base = (struct train_strategy){ .ops = &SYNC, .config = *config };
    p->step = (struct train_step){ .ordinal = -1, .sums = xcalloc(metrics_width(config->model), sizeof(double)) };
    return &p->base;
}
