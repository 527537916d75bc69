/* recorder_internal - inside of recorder.h: what its files share. */
#ifndef TRAINYARD_CHIEF_RECORDER_INTERNAL_H
#define TRAINYARD_CHIEF_RECORDER_INTERNAL_H

#include "base/thread.h"
#include "chief/recorder.h"

enum { METRICS_MAX = 64 };

struct recorder {
    struct recorder_config config;
    struct event_writer *train, *validation;
    bool warned;
    size_t nmetrics;
    json_t *history;            /* chief/history.h */
    bool history_changed;       /* since it was written */
    int64_t history_ms;         /* when it was written */
    int64_t logged_step;        /* of the last log line */
    int64_t rate_ms, rate_step; /* where the rates were measured last */
    int64_t summary_ms, synced_ms;
    uint64_t rate_pushes, rate_staleness;
    double steps_per_second, examples_per_second, staleness;
    struct mutex lock; /* of what /progress shows */
    struct {
        char state[32], message[240];
        int64_t step, done, checkpoint_step, epoch;
        int64_t epoch_done;
        int64_t end; /* batches that will have been trained: config.total, unless a callback ended training */
        int workers;
        double metrics[METRICS_MAX], validation[METRICS_MAX];
        bool has_validation;
        double updated, stepped; /* wall clock; stepped: the step grew; 0: not yet */
    } now;
};

/* recorder_progress.c; those that change r->now want r->lock held. */
int64_t recorder_epochs(const struct recorder *r);                             /* of the whole job */
json_t *recorder_metrics_json(const struct recorder *r, const double *values); /* {"loss": ...}: a new reference */
void recorder_all_done(struct recorder *r);
/* What is shown becomes the last epoch's, until there is a newer one. */
void recorder_show_history(struct recorder *r);

#endif
