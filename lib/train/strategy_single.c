/* Single-machine training: the optimizer runs in this process, on the vector that the engine computes from. Each update
 * is between two steps: a chief of this process closes the gate while it takes a snapshot. */
#include "nn/metrics/metrics.h"
#include "train/strategy_internal.h"

struct single_strategy {
    struct train_strategy base;
    struct train_step step;
};

static struct single_strategy *single_of(struct train_strategy *s)
{
    return (struct single_strategy *)(void *)s;
}

static int single_begin_step(struct train_strategy *s, int64_t ordinal, struct train_step **ret, struct err *e)
{
    struct params *params = s->config.params;
    struct train_step *step = &single_of(s)->step;
    if (params_gradients(params, 0, &step->grads, e) < 0)
        return -1;
    step->ordinal = ordinal;
    step->values = params_vector(params);
    step->network_ns = 0;
    params_mark(params);
    *ret = step;
    return 0;
}

static int push_step(struct train_strategy *s, struct train_step *step, struct err *e)
{
    struct push_result pushed = { 0 };
    if (strategy_push(s, step, &pushed, e) < 0)
        return -1;
    strategy_applied(s, step, &pushed);
    return 0;
}

static int single_submit(struct train_strategy *s, struct train_step *step, struct err *e)
{
    if (s->config.step_gate == NULL)
        return push_step(s, step, e);
    MUTEX_GUARD(s->config.step_gate);
    return push_step(s, step, e);
}

static int single_finish(struct train_strategy *s, struct err *e)
{
    (void)s, (void)e; /* submit returns when the step is applied */
    return 0;
}

static void single_close(struct train_strategy *s)
{
    params_watch(s->config.params, 0, NULL, NULL);
    free(single_of(s)->step.sums);
    free(s);
}

static const struct strategy_ops SINGLE = {
    .open = strategy_pull,
    .begin_step = single_begin_step,
    .submit = single_submit,
    .finish = single_finish,
    .close = single_close,
};

struct train_strategy *strategy_single_new(const struct strategy_config *config)
{
    struct single_strategy *p = xcalloc(1, sizeof(*p));
    p->base = (struct train_strategy){ .ops = &SINGLE, .config = *config };
    p->step = (struct train_step){ .ordinal = -1, .sums = xcalloc(metrics_width(config->model), sizeof(double)) };
    return &p->base;
}
