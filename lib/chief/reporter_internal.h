/* reporter_internal - inside of reporter.h: what its files share. */
#ifndef TRAINYARD_CHIEF_REPORTER_INTERNAL_H
#define TRAINYARD_CHIEF_REPORTER_INTERNAL_H

#include "base/thread.h"
#include "chief/reporter.h"
#include "chief/summary_writer.h"

enum { METRICS_MAX = 64 };

/* What was counted up to a moment; ms 0: no moment. */
struct pace_mark {
    int64_t ms, step;
    uint64_t pushes, staleness; /* of the workers' reports: pushes, and the sum of their staleness */
};
/* What happened between two marks; NaN: not known. */
struct pace {
    double steps_per_second, examples_per_second, staleness;
};

struct reporter {
    struct reporter_config config;
    struct summary_writer *summaries;
    size_t nmetrics;
    json_t *history;      /* chief/history.h */
    bool history_changed; /* since it was written */
    int64_t history_ms;   /* when it was written */
    int64_t logged_step;  /* of the last log line */
    int64_t summary_ms;
    bool stepped; /* training goes on: before, waiting for workers is not part of a rate */
    struct pace_mark logged, written, measured; /* the last log line, the last summaries, the rate of /progress */
    struct pace pace;                           /* of the summaries that come next */
    struct mutex lock;                          /* of what /progress shows */
    double examples_per_second;
    struct {
        char state[32], message[240];
        int64_t waits_ms; /* since when the state is "waiting"; 0: it is not */
        int64_t step, done, checkpoint_step, epoch;
        int64_t epoch_done;
        int64_t end; /* batches that will have been trained: config.total, unless a callback ended training */
        int workers, connected; /* that train; all */
        double metrics[METRICS_MAX], validation[METRICS_MAX];
        bool has_validation;
        char weights_sha256[SHA256_TEXT]; /* of the job's result; "": not finished */
        double updated, stepped;          /* wall clock; stepped: the step grew; 0: not yet */
    } now;
};

/* reporter_progress.c; the callers of functions that change r->now hold r->lock. */
int64_t reporter_epochs(const struct reporter *r);                             /* of the whole job */
json_t *reporter_metrics_json(const struct reporter *r, const double *values); /* {"loss": ...}: a new reference */
void reporter_all_done(struct reporter *r);
/* Shows the values of the last epoch until there is a newer one. */
void reporter_show_history(struct reporter *r);

#endif
