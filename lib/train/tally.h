/* tally - loss and metrics of the job, summed by batch ordinal: the first report of an ordinal counts, so a batch
 * that was computed twice is shown once, and a resumed run shows the same sums as one that never stopped.
 *
 * Keeps sums for each epoch in work, for windows of `window` consecutive ordinals (one point of the training
 * curve each), and for everything since the last tally_take_recent() (log lines). Pure; not thread-safe.
 */
#ifndef TRAINYARD_TRAIN_TALLY_H
#define TRAINYARD_TRAIN_TALLY_H

#include "nn/metrics.h"
#include "train/applied.h"

struct tally;
/* window 0: no windows are kept. */
struct tally *tally_new(const struct model *m, int64_t batches_per_epoch, int64_t total, int64_t window);
void tally_free(struct tally *t);
DEFINE_AUTO(tally, tally_free)

/* sums: metrics_width(m) doubles of that batch. True when it counted. */
bool tally_add(struct tally *t, int64_t ordinal, const double *sums);

/* result[model_metrics(m)] and the number of batches they are made of; NaN where there is none. */
int64_t tally_epoch(const struct tally *t, int64_t epoch, double *ret);
int64_t tally_recent(const struct tally *t, double *ret);      /* since the last take */
int64_t tally_take_recent(struct tally *t, double *ret);
/* Epochs before this one are history: forgets their sums, and no longer waits for reports that were lost. */
void tally_forget_before(struct tally *t, int64_t epoch);

/* The oldest window that is complete (or will hardly become so: newer ones have been waiting): 1 and the step of
 * its last ordinal + 1; 0 when there is none. flush: take incomplete ones too (the end of training). */
int tally_take_window(struct tally *t, bool flush, int64_t *ret_step, double *ret);

/* How many ordinals were reported; those of forgotten epochs count. */
int64_t tally_reported(const struct tally *t);

/* Part of the checkpoint's state. Windows of another length than this tally's are not taken over; after an error the
 * tally is as it was. */
json_t *tally_to_json(const struct tally *t); /* new reference */
MUST_USE int tally_from_json(struct tally *t, const struct node *n, struct err *e);

#endif
