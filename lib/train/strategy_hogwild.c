/* Hogwild: the threads of one process compute and apply their gradients without waiting for each other. The shard
 * applies a gradient segment by segment, under the lock of each, and copies the new values of the segment to the
 * thread. So a batch is computed from values that contain the thread's own last update, and of each segment what the
 * others had applied by then. */
#include "train/strategy_internal.h"

static const struct strategy_ops HOGWILD = {
    .open = strategy_pull,
    .begin_step = strategy_local_begin_step,
    .submit = strategy_local_submit,
    .finish = strategy_local_finish,
    .close = strategy_local_close,
};

struct train_strategy *strategy_hogwild_new(const struct strategy_config *config)
{
    return strategy_local_new(&HOGWILD, config);
}
