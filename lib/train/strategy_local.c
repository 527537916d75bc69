/* What Single and Hogwild share: a thread of this process has one step at a time, and its update is made when submit
 * returns. */
#include "nn/metrics/metrics.h"
#include "train/strategy_internal.h"

struct local_strategy {
    struct train_strategy base;
    struct train_step step;
};

static struct local_strategy *local_of(struct train_strategy *s)
{
    return (struct local_strategy *)(void *)s;
}

struct train_strategy *strategy_local_new(const struct strategy_ops *ops, const struct strategy_config *config)
{
    struct local_strategy *p = xcalloc(1, sizeof(*p));
    p->base = (struct train_strategy){ .ops = ops, .config = *config };
    p->step = (struct train_step){ .ordinal = -1, .sums = xcalloc(metrics_width(config->model), sizeof(double)) };
    return &p->base;
}

int strategy_local_begin_step(struct train_strategy *s, int64_t ordinal, struct train_step **ret, struct err *e)
{
    struct params *params = s->config.params;
    struct train_step *step = &local_of(s)->step;
    if (params_gradients(params, 0, &step->grads, e) < 0)
        return -1;
    step->ordinal = ordinal;
    step->values = params_vector(params);
    step->network_ns = 0;
    params_mark(params);
    *ret = step;
    return 0;
}

int strategy_local_submit(struct train_strategy *s, struct train_step *step, struct err *e)
{
    struct push_result pushed = { 0 };
    if (strategy_push(s, step, &pushed, e) < 0)
        return -1;
    strategy_applied(s, step, &pushed);
    return 0;
}

int strategy_local_finish(struct train_strategy *s, struct err *e)
{
    (void)s, (void)e; /* submit returns when the step is applied */
    return 0;
}

void strategy_local_close(struct train_strategy *s)
{
    params_watch(s->config.params, 0, NULL, NULL);
    free(local_of(s)->step.sums);
    free(s);
}
