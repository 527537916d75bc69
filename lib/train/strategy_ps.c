/* Asynchronous training with parameter servers: each worker pushes its gradient to every ps and gets the new values in
 * return. A batch is computed from values that contain the worker's own last push. With strategy.overlap the next batch
 * is computed while a push is in flight, from values that lack it. */
#include "base/clock.h"
#include "nn/metrics/metrics.h"
#include "train/strategy_internal.h"

struct ps_strategy {
    struct train_strategy base;
    struct train_step steps[PARAMS_GRADIENTS]; /* being computed, and in flight */
    int current;
    bool by_variable;
};

static struct ps_strategy *ps_of(struct train_strategy *s)
{
    return (struct ps_strategy *)(void *)s;
}

static int ps_begin_step(struct train_strategy *s, int64_t ordinal, struct train_step **ret, struct err *e)
{
    struct ps_strategy *p = ps_of(s);
    struct params *params = s->config.params;
    struct train_step *step = &p->steps[p->current];
    if (params_gradients(params, p->current, &step->grads, e) < 0)
        return -1;
    step->ordinal = ordinal;
    step->values = params_vector(params);
    step->by_variable = p->by_variable;
    step->network_ns = 0;
    params_mark(params);
    *ret = step;
    return 0;
}

static void ps_gradient_ready(void *user, struct train_step *step, size_t variable)
{
    const struct train_strategy *s = user;
    size_t from = model_variable(s->config.model, variable)->offset;
    if (from > 0)
        params_push_early(s->config.params, step->ordinal, step->grads, from, STRATEGY_PUSH_MS);
}

/* ---- without overlap ---- */

static int ps_submit(struct train_strategy *s, struct train_step *step, struct err *e)
{
    const struct strategy_config *c = &s->config;
    struct push_result pushed = { 0 };
    struct err cause = { 0 };
    uint64_t data_ns = step->data_ns;
    int64_t begun = clock_ns();
    int rc = params_push_start(c->params, step->ordinal, step->grads, true, STRATEGY_PUSH_MS, &cause);
    if (rc == 0) {
        c->in_flight(c->user, step);
        rc = params_push_finish(c->params, &pushed, &cause);
    }
    if (rc == 0)
        step->network_ns += (uint64_t)(clock_ns() - begun) - (step->data_ns - data_ns);
    else if (strategy_push_again(s, step, &cause, &pushed, e) < 0)
        return -1;
    strategy_applied(s, step, &pushed);
    return 0;
}

static int ps_finish(struct train_strategy *s, struct err *e)
{
    (void)s, (void)e; /* submit returns when the step is applied */
    return 0;
}

static void ps_close(struct train_strategy *s)
{
    struct ps_strategy *p = ps_of(s);
    params_watch(s->config.params, 0, NULL, NULL);
    for (int i = 0; i < PARAMS_GRADIENTS; i++)
        free(p->steps[i].sums);
    free(p);
}

static const struct strategy_ops PS = {
    .open = strategy_pull,
    .begin_step = ps_begin_step,
    .gradient_ready = ps_gradient_ready,
    .submit = ps_submit,
    .finish = ps_finish,
    .close = ps_close,
};

/* ---- with overlap ---- */

static int overlap_finish(struct train_strategy *s, struct err *e)
{
    struct ps_strategy *p = ps_of(s);
    struct train_step *step = &p->steps[1 - p->current];
    if (step->ordinal < 0)
        return 0;
    struct push_result pushed = { 0 };
    struct err cause = { 0 };
    int64_t begun = clock_ns();
    if (params_push_finish(s->config.params, &pushed, &cause) < 0 &&
        strategy_push_again(s, step, &cause, &pushed, e) < 0)
        return -1;
    step->network_ns += (uint64_t)(clock_ns() - begun);
    strategy_applied(s, step, &pushed);
    return 0;
}

static int overlap_submit(struct train_strategy *s, struct train_step *step, struct err *e)
{
    struct ps_strategy *p = ps_of(s);
    struct push_result pushed = { 0 };
    struct err cause = { 0 };
    if (overlap_finish(s, e) < 0)
        return -1;
    int64_t begun = clock_ns();
    if (params_push_start(s->config.params, step->ordinal, step->grads, false, STRATEGY_PUSH_MS, &cause) == 0) {
        step->network_ns += (uint64_t)(clock_ns() - begun);
        p->current = 1 - p->current;
        return 0;
    }
    if (strategy_push_again(s, step, &cause, &pushed, e) < 0)
        return -1;
    strategy_applied(s, step, &pushed);
    return 0;
}

/* A push that is still under way reads the gradient: waits for it, bounded by its deadline. */
static void overlap_close(struct train_strategy *s)
{
    struct ps_strategy *p = ps_of(s);
    struct push_result ignored;
    struct err none;
    if (p->steps[1 - p->current].ordinal >= 0)
        (void)!params_push_finish(s->config.params, &ignored, &none);
    ps_close(s);
}

static const struct strategy_ops OVERLAP = {
    .open = strategy_pull,
    .begin_step = ps_begin_step,
    .submit = overlap_submit,
    .finish = overlap_finish,
    .close = overlap_close,
};

struct train_strategy *strategy_ps_new(const struct strategy_config *config)
{
    struct ps_strategy *p = xcalloc(1, sizeof(*p));
    p->base = (struct train_strategy){ .ops = config->overlap ? &OVERLAP : &PS, .config = *config };
    /* Gradients go out as layers complete unless a decision needs the whole gradient, or an earlier push is in flight.
     */
    p->by_variable = !config->overlap && !optimizer_clips(model_optimizer(config->model));
    for (int i = 0; i < PARAMS_GRADIENTS; i++)
        p->steps[i] =
            (struct train_step){ .ordinal = -1, .sums = xcalloc(metrics_width(config->model), sizeof(double)) };
    return &p->base;
}
