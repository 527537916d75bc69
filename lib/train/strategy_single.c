/* Single-machine training: the optimizer runs in this process, on the vector that the engine computes from. Each update
 * is between two steps: a chief of this process closes the gate while it takes a snapshot. */
#include "train/strategy_internal.h"

static int single_submit(struct train_strategy *s, struct train_step *step, struct err *e)
{
    if (s->config.step_gate == NULL)
        return strategy_local_submit(s, step, e);
    MUTEX_GUARD(s->config.step_gate);
    return strategy_local_submit(s, step, e);
}

static const struct strategy_ops SINGLE = {
    .open = strategy_pull,
    .begin_step = strategy_local_begin_step,
    .submit = single_submit,
    .finish = strategy_local_finish,
    .close = strategy_local_close,
};

struct train_strategy *strategy_single_new(const struct strategy_config *config)
{
    return strategy_local_new(&SINGLE, config);
}
