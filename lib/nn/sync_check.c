/* A norm of the mean of a group needs all segments of a variable, or of the model, before the first is updated. A layer
 * with the statistics of all batches of a step needs steps whose batches are computed at the same time. */
#include "nn/sync_check.h"

static int check_clipping(const struct job *job, const struct model *m, struct err *e)
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

static int check_statistics(const struct job *job, const struct model *m, struct err *e)
{
    const char *layer = model_synchronized(m);
    bool is_async = job->strategy.name == STRATEGY_PARAMETER_SERVER;
    if (layer == NULL || job->strategy.updates == UPDATES_SYNC || job->strategy.name == STRATEGY_SINGLE)
        return 0; /* a step of Single is one batch */
    return node_error(
        &job->model, e,
        "layer '%s' is synchronized: its statistics are those of all batches of a step, and strategy %s%s "
        "computes each batch by itself; remove 'synchronized', or use %sstrategy Mirrored or "
        "MultiWorkerMirrored",
        layer, strategy_name(job->strategy.name), is_async ? " without 'updates: sync'" : "",
        is_async ? "'updates: sync', or " : "");
}

/* A worker may compute all batches of a step at the same time, each with memory of its own. */
static int check_batches(const struct job *job, const struct model *m, struct err *e)
{
    const char *layer = model_synchronized(m);
    int64_t given = job->strategy.replicas_to_aggregate;
    int64_t k = given > 0 ? given : job_default_group(job, job->replicas[ROLE_WORKER].count);
    if (layer == NULL || job->strategy.updates != UPDATES_SYNC || k <= SYNC_BATCHES_MAX)
        return 0;
    return node_error(&job->model, e,
                      "layer '%s' is synchronized: a step can have at most %d batches, and this job has %lld; set "
                      "strategy.replicasToAggregate",
                      layer, SYNC_BATCHES_MAX, (long long)k);
}

int sync_check(const struct job *job, const struct model *m, struct err *e)
{
    if (check_clipping(job, m, e) < 0 || check_statistics(job, m, e) < 0)
        return -1;
    return check_batches(job, m, e);
}
