/* reporter - what the chief reports about training: log lines, TensorBoard summaries, history.json, /progress.
 *
 * The chief's thread calls reporter_*(); reporter_progress() may be called by any thread. A summary that cannot be
 * written is reported once as a warning and never ends training.
 */
#ifndef TRAINYARD_CHIEF_REPORTER_H
#define TRAINYARD_CHIEF_REPORTER_H

#include "base/report.h"
#include "chief/output_dir.h"
#include "coord/coordinator.h"
#include "nn/metrics/metrics.h"
#include "params/ps_set.h"

struct reporter_config {
    const struct job *job; /* borrowed, as all */
    const struct model *model;
    const char *output_dir, *job_uid;
    int64_t batches_per_epoch, total;
    struct ordinal_space space;
    struct groups groups;
    int64_t step_offset; /* global step - groups applied */
    int workers_wanted;
    const struct rates *rates; /* that callbacks set; NULL: none */
    const struct report *report;
};
struct reporter;
/* resumed_step: of the checkpoint that was found, or -1. */
MUST_USE int reporter_new(const struct reporter_config *config, int64_t resumed_step, struct reporter **ret,
                          struct err *e);
/* Call it before anything is recorded. Event files begin with SessionLog START at `step`, the first step that this
 * process may write again. Viewers drop what earlier files have from that step on. */
MUST_USE int reporter_begin(struct reporter *r, int64_t step, struct err *e);
void reporter_free(struct reporter *r);
DEFINE_AUTO(reporter, reporter_free);

/* After each poll of the ps: rates, log line when a multiple of logEverySteps was passed, complete summary windows. */
void reporter_poll(struct reporter *r, const struct ps_set_view *ps_set, const struct coordinator_view *coord,
                   struct coordinator *c, int64_t now_ms);
/* All batches of the epoch (from 0) are done: it is added to the history, without an evaluation for now. */
void reporter_epoch(struct reporter *r, int64_t epoch, struct coordinator *c);
/* The epoch's evaluation, of the values at `step`: model_metrics values, or NULL when there is none. Logs the
 * epoch's line. Epoch -1: the values do not belong to the end of an epoch. */
void reporter_evaluated(struct reporter *r, int64_t epoch, int64_t step, const double *validation);
void reporter_histograms(struct reporter *r, int64_t step, const float *params);
void reporter_checkpoint(struct reporter *r, int64_t step, const char *prefix);
/* One line on what the time went into: "4690 steps in 1.8 s (2605 steps/s): compute 41 %, ...". */
void reporter_shares(struct reporter *r, const struct coordinator_view *coord, uint64_t apply_ns, double seconds,
                     int64_t steps);
/* Reports the end: last windows, final evaluation ("Test loss: 0.0762, Test accuracy: 0.9781"), history.json. An
 * error comes from writing history.json; call it again then. */
MUST_USE int reporter_finish(struct reporter *r, const struct job_result *end, struct coordinator *c,
                             const double *final, struct err *e);
/* An earlier chief has ended the job at this step: /progress shows that, with the metrics of its last epoch and the
 * hash of its weights ("": not known). */
void reporter_finished_before(struct reporter *r, int64_t step, const char *weights_sha256);
/* A callback has ended training: the total number of batches is now this. */
void reporter_ends(struct reporter *r, int64_t batches);
/* The state of the job for /progress: "training", "restoring ps-1", ... */
void reporter_state(struct reporter *r, const char *state, const char *message);
/* "waiting" since then. */
void reporter_waits(struct reporter *r, int64_t since_ms, const char *message);

/* JSON object for GET /progress. */
void reporter_progress(struct reporter *r, int64_t now_ms, struct buf *out);
double reporter_examples_per_second(struct reporter *r);

/* ---- the history: an entry for each epoch in each list, null where nothing is known ---- */

/* Of the entry of an epoch. False: it is not known, as of an epoch that was not evaluated. */
bool reporter_get(const struct reporter *r, int64_t epoch, const char *name, double *ret);
void reporter_set(struct reporter *r, int64_t epoch, const char *name, double value);
int64_t reporter_evaluations(const struct reporter *r); /* entries up to the last one whose evaluation is known */
/* For the checkpoint. */
json_t *reporter_to_json(const struct reporter *r); /* new reference */
/* n: such an object, or absent; it is cut or filled to `entries` entries. */
MUST_USE int reporter_from_json(struct reporter *r, const struct node *n, int64_t entries, struct err *e);
/* Adds the later entries of history.json when it begins with the same ones. Entries beyond `most` are dropped.
 * Returns the number of entries. */
int64_t reporter_resume(struct reporter *r, int64_t most, struct coordinator *c);
/* Writes history.json if it changed; unless `at_once`, once a second at most. */
MUST_USE int reporter_save_history(struct reporter *r, int64_t now_ms, bool at_once, struct err *e);

#endif
