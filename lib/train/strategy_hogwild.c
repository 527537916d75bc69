/* Hogwild: the threads of one process compute and apply their gradients without waiting for each other. The shard
 * applies a gradient segment by segment, under the lock of each, and copies the new values of the segment to the
 * thread. So a batch is computed from values that contain the thread's own last update, and of each segment what the
 * others had applied by then. */
#include "nn/metrics/metrics.h"
#include "train/strategy_internal.h"

struct hogwild_strategy {
    struct train_strategy base;
    struct train_step step;
};

static struct hogwild_strategy *hogwild_of(struct train_strategy *s)
{
    return (struct hogwild_strategy *)(void *)s;
}

static int hogwild_begin_step(struct train_strategy *s, int64_t ordinal, struct train_step **ret, struct err *e)
{
    struct params *params = s->config.params;
    struct train_step *step = &hogwild_of(s)->step;
    if (params_gradients(params, 0, &step->grads, e) < 0)
        return -1;
    step->ordinal = ordinal;
    step->values = params_vector(params);
    step->network_ns = 0;
    params_mark(params);
    *ret = step;
    return 0;
}

static int hogwild_submit(struct train_strategy *s, struct train_step *step, struct err *e)
{
    struct push_result pushed = { 0 };
    if (strategy_push(s, step, &pushed, e) < 0)
        return -1;
    strategy_applied(s, step, &pushed);
    return 0;
}

static int hogwild_finish(struct train_strategy *s, struct err *e)
{
    (void)s, (void)e; /* submit returns when the step is applied */
    return 0;
}

static void hogwild_close(struct train_strategy *s)
{
    params_watch(s->config.params, 0, NULL, NULL);
    free(hogwild_of(s)->step.sums);
    free(s);
}

static const struct strategy_ops HOGWILD = {
    .open = strategy_pull,
    .begin_step = hogwild_begin_step,
    .submit = hogwild_submit,
    .finish = hogwild_finish,
    .close = hogwild_close,
};

struct train_strategy *strategy_hogwild_new(const struct strategy_config *config)
{
    struct hogwild_strategy *p = xcalloc(1, sizeof(*p));
    p->base = (struct train_strategy){ .ops = &HOGWILD, .config = *config };
    p->step = (struct train_step){ .ordinal = -1, .sums = xcalloc(metrics_width(config->model), sizeof(double)) };
    return &p->base;
}
