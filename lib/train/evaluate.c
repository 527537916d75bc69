/* One pass over a data set in its own order, with the metrics of all examples. The same values give the same result,
 * whichever process computes it. */
#include "train/evaluate.h"

#include <string.h>

struct evaluator {
    const struct model *m;
    struct ordinal_space space;
    struct exec *exec;
    struct loader *loader;
    double *sums;
};

int evaluator_new(const struct model *m, const struct dataset *d, int64_t batch_size, struct evaluator **ret,
                  struct err *e)
{
    AUTO(evaluator) *v = xcalloc(1, sizeof(*v));
    v->m = m;
    v->space = (struct ordinal_space){
        .fingerprint = dataset_fingerprint(d), .examples = dataset_size(d), .batch_size = batch_size, .shuffle = false
    };
    v->sums = xcalloc(metrics_width(m), sizeof(*v->sums));
    if (exec_new(m, ordinal_space_rows(&v->space), 0, &v->exec, e) < 0 ||
        loader_new(d, &v->space, m, &v->loader, e) < 0)
        return -1;
    *ret = TAKE(v);
    return 0;
}

void evaluator_free(struct evaluator *v)
{
    if (v == NULL)
        return;
    exec_free(v->exec);
    loader_free(v->loader);
    free(v->sums);
    free(v);
}

int evaluator_run(struct evaluator *v, const float *params, bool (*stop)(void *user), void *user, double *ret,
                  struct err *e)
{
    memset(v->sums, 0, metrics_width(v->m) * sizeof(*v->sums));
    int64_t batches = ordinal_space_batches(&v->space);
    for (int64_t i = 0; i < batches; i++) {
        struct batch b;
        if (stop != NULL && stop(user))
            return err_set(e, ERR_STOPPED, "evaluation was stopped");
        if (loader_get(v->loader, i, &b, e) < 0)
            return err_wrap(e, "validation data");
        loader_hint(v->loader, i + 1 < batches ? i + 1 : -1);
        exec_evaluate(v->exec, params, &b, v->sums);
    }
    metrics_result(v->m, v->sums, ret);
    return 0;
}
