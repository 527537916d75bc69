/* evaluate - loss and metrics of a parameter vector over a whole data set. */
#ifndef TRAINYARD_TRAIN_EVALUATE_H
#define TRAINYARD_TRAIN_EVALUATE_H

#include "data/dataset.h"
#include "nn/exec.h"

struct evaluator;
MUST_USE int evaluator_new(const struct model *m, const struct dataset *d, int64_t batch_size, struct evaluator **ret,
                           struct err *e);
void evaluator_free(struct evaluator *v);
DEFINE_AUTO(evaluator, evaluator_free);
/* result[model_metrics(m)]. Blocks for the whole pass; stop (may be NULL) is called between batches. ERR_STOPPED when
 * it returned true. */
MUST_USE int evaluator_run(struct evaluator *v, const float *params, bool (*stop)(void *user), void *user, double *ret,
                           struct err *e);

#endif
