/* A norm of the mean of a group needs all segments of a variable, or of the model, before the first is updated. */
#include "nn/sync_check.h"

int sync_check(const struct job *job, const struct model *m, struct err *e)
{
    struct node optimizer = node_get(&job->compile, "optimizer");
    bool named = job->strategy.name == STRATEGY_MIRRORED || job->strategy.name == STRATEGY_MULTI_WORKER_MIRRORED;
    char strategy[64];
    if (job->strategy.updates != UPDATES_SYNC || !optimizer_clips_norm(model_optimizer(m)))
        return 0;
    str_fmt(strategy, sizeof(strategy), "strategy %s", strategy_name(job->strategy.name));
    return node_error(node_present(&optimizer) ? &optimizer : &job->compile, e,
                      "clipnorm and global_clipnorm are not available with %s in this release; use clipvalue",
                      named ? strategy : "'updates: sync'");
}
