/* progress_bar - parses the chief's /progress and formats it as a progress bar. Pure: time is a parameter.
 *
 *     Epoch 2/5 [=========>..........] 450/938  loss 0.1433  accuracy 0.9581  48210 ex/s  ETA 1 s, job 4 s
 */
#ifndef TRAINYARD_CLI_PROGRESS_BAR_H
#define TRAINYARD_CLI_PROGRESS_BAR_H

#include "codec/json.h"

enum { PROGRESS_METRICS_MAX = 8 };

struct job_progress {
    char state[24], message[200];
    int64_t step, epoch, epochs;     /* epoch from 1; epochs 0: not known (steps are given) */
    int64_t epoch_done, epoch_total; /* batches of this epoch */
    int64_t done, total;             /* batches of the job */
    bool looked;                     /* the chief has counted the batches; before that, done is undefined */
    double examples_per_second;
    int64_t workers;
    size_t nmetrics; /* loss first */
    struct {
        char name[32];
        double value;
    } metrics[PROGRESS_METRICS_MAX];
};

/* Missing fields are 0, unknown ones are ignored, "NaN" is NaN. */
MUST_USE int progress_parse(const char *text, size_t n, struct job_progress *ret, struct err *e);

/* progress_rate - batches per second, smoothed over the last few seconds. */
struct progress_rate {
    int64_t at_ms, done;
    double per_second; /* 0: not known yet */
};
/* The batches of an earlier life do not count: the rate begins when the chief has counted the batches. */
void progress_rate_update(struct progress_rate *p, const struct job_progress *seen, int64_t now_ms);

/* One line of at most `width` columns: parts that do not fit are left out, least important first.
 * finished: the epoch is over (full bar, no ETA). */
void progress_bar(const struct job_progress *p, const struct progress_rate *rate, bool finished, size_t width,
                  struct buf *out);

/* The terminal's form of a line of the chief that has the same content as the bar. */
enum line_kind { LINE_SHOW, LINE_STEP, LINE_EPOCH };
enum line_kind progress_line_kind(const char *text);
/* "epoch 2/5 done loss 0.2 val_loss 0.3" -> "Epoch 2/5 [====================] 100%  loss 0.2 val_loss 0.3"; the bar is
 * as long as `width` columns allow, and absent if it does not fit. */
void progress_epoch_line(const char *text, size_t width, struct buf *out);

#endif
