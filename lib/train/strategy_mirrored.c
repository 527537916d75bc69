/* Mirrored: the threads of one process compute the batches of a group from one vector, the shard's own, and the shard
 * makes one update of them, as the ps do in synchronous training. An update changes the vector only when all gradients
 * of the step are there, and each ordinal is computed by one thread (train/claims.h). So no thread reads values while
 * they change, though no thread has a copy. */
#include "nn/metrics/metrics.h"
#include "train/step_values.h"

struct mirrored_strategy {
    struct train_strategy base;
    struct step_values values;
    struct train_step step;
};

static struct mirrored_strategy *mirrored_of(struct train_strategy *s)
{
    return (struct mirrored_strategy *)(void *)s;
}

static int mirrored_open(struct train_strategy *s, struct err *e)
{
    return step_values_open(&mirrored_of(s)->values, s, e);
}

static int mirrored_begin_step(struct train_strategy *s, int64_t ordinal, struct train_step **ret, struct err *e)
{
    struct mirrored_strategy *p = mirrored_of(s);
    struct train_step *step = &p->step;
    int begun = step_values_get(&p->values, ordinal, e);
    if (begun != 0)
        return begun;
    if (!claims_take(s->config.claims, groups_first(&p->values.groups, ordinal), ordinal))
        return STEP_OVER;
    if (params_gradients(s->config.params, 0, &step->grads, e) < 0)
        return -1;
    step->ordinal = ordinal;
    step->values = params_vector(s->config.params);
    step->by_variable = true; /* the shard clips the mean of the group */
    step->network_ns = step_values_waited_ns(&p->values);
    *ret = step;
    return 0;
}

/* A gradient is pushed as a whole: the other threads would only wait for the locks of its segments. */
static void mirrored_gradient_ready(void *user, struct train_step *step, size_t variable)
{
    (void)user, (void)step, (void)variable;
}

static int mirrored_submit(struct train_strategy *s, struct train_step *step, struct err *e)
{
    const struct strategy_config *c = &s->config;
    struct push_result pushed = { 0 };
    if (strategy_push(s, step, &pushed, e) < 0)
        return -1;
    c->in_flight(c->user, step); /* the others may still compute */
    strategy_applied(s, step, &pushed);
    return 0;
}

static int mirrored_finish(struct train_strategy *s, struct err *e)
{
    (void)s, (void)e; /* submit returns when the shard has the gradient */
    return 0;
}

static void mirrored_close(struct train_strategy *s)
{
    struct mirrored_strategy *p = mirrored_of(s);
    params_watch(s->config.params, 0, NULL, NULL);
    free(p->step.sums);
    free(p);
}

static const struct strategy_ops MIRRORED = {
    .open = mirrored_open,
    .begin_step = mirrored_begin_step,
    .gradient_ready = mirrored_gradient_ready,
    .submit = mirrored_submit,
    .finish = mirrored_finish,
    .close = mirrored_close,
};

struct train_strategy *strategy_mirrored_new(const struct strategy_config *config)
{
    struct mirrored_strategy *p = xcalloc(1, sizeof(*p));
    p->base = (struct train_strategy){ .ops = &MIRRORED, .config = *config };
    p->step = (struct train_step){ .ordinal = -1, .sums = xcalloc(metrics_width(config->model), sizeof(double)) };
    return &p->base;
}
