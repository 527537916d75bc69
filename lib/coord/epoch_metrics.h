/* epoch_metrics - loss and metrics of the job, summed by batch ordinal: the first report of an ordinal counts, so a
 * batch that was computed twice is shown once, and a resumed run shows the same sums as one that never stopped.
 *
 * Keeps sums for each epoch in work, for windows of `window` consecutive ordinals (one point of the training
 * curve each), and for everything since the last epoch_metrics_take_recent() (log lines). Pure; not thread-safe.
 */
#ifndef TRAINYARD_COORD_EPOCH_METRICS_H
#define TRAINYARD_COORD_EPOCH_METRICS_H

#include "nn/metrics/metrics.h"
#include "shard/ordinal_set.h"

struct epoch_metrics;
/* window 0: no windows are kept. */
struct epoch_metrics *epoch_metrics_new(const struct model *m, int64_t batches_per_epoch, int64_t total,
                                        int64_t window);
void epoch_metrics_free(struct epoch_metrics *t);
DEFINE_AUTO(epoch_metrics, epoch_metrics_free);

/* sums: metrics_width(m) doubles of that batch. True when it counted. */
bool epoch_metrics_add(struct epoch_metrics *t, int64_t ordinal, const double *sums);

/* result[model_metrics(m)] and the number of batches they are made of; NaN where there is none. */
int64_t epoch_metrics_of(const struct epoch_metrics *t, int64_t epoch, double *ret);
int64_t epoch_metrics_recent(const struct epoch_metrics *t, double *ret); /* since the last take */
int64_t epoch_metrics_take_recent(struct epoch_metrics *t, double *ret);
/* Closes the epochs before this one: drops their sums, and no longer waits for reports that were lost. */
void epoch_metrics_forget_before(struct epoch_metrics *t, int64_t epoch);

/* The oldest window that is complete (or unlikely to become complete, because newer ones have been waiting): 1 and
 * the step of its last ordinal + 1. 0 when there is none. flush, at the end of training: incomplete ones that are not
 * the last one, and the only one. */
int epoch_metrics_take_window(struct epoch_metrics *t, bool flush, int64_t *ret_step, double *ret);

/* Number of ordinals that were reported; those of dropped epochs count. */
int64_t epoch_metrics_reported(const struct epoch_metrics *t);

/* Part of the checkpoint's state. Windows of another length than those of `t` are ignored; after an error `t` is
 * unchanged. */
json_t *epoch_metrics_to_json(const struct epoch_metrics *t); /* new reference */
MUST_USE int epoch_metrics_from_json(struct epoch_metrics *t, const struct node *n, struct err *e);

#endif
