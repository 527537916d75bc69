/* chief_internal - what the files of the chief share: chief.c (the loop), chief_start.c (initialising and restoring the
 * ps), chief_rerun.c (an earlier run in the folder), chief_save.c (checkpoints), chief_epoch.c (epochs and their
 * evaluation), chief_callbacks.c, chief_end.c (the end). */
#ifndef TRAINYARD_CHIEF_CHIEF_INTERNAL_H
#define TRAINYARD_CHIEF_CHIEF_INTERNAL_H

#include <stdatomic.h>

#include "base/wait.h"
#include "chief/checkpoint.h"
#include "chief/chief.h"
#include "chief/chief_callbacks.h"
#include "chief/previous_run.h"
#include "chief/rebase.h"
#include "chief/reporter.h"
#include "params/ps_set.h"
#include "train/evaluate.h"

struct evaluation { /* of the values pulled last, in a separate thread */
    struct thread thread;
    bool running;        /* started, and its result not collected yet */
    bool final;          /* of the values the job ends with */
    int64_t epoch, step; /* epoch and step of the values; epoch -1: none */
    double *values;      /* model_metrics */
    int result;
    struct err error;
    _Atomic bool over, cancelled;
};

struct chief {
    struct chief_config config;
    char *checkpoints; /* folder */
    struct ps_set *ps_set;
    struct coordinator *coordinator;
    struct reporter *reporter;
    struct evaluator *evaluator; /* NULL: no validation data */
    int64_t batches_per_epoch, total;
    struct groups groups; /* batches that make one update; of size 1 in asynchronous training */
    int64_t step_offset;  /* global step - groups applied; not 0 after a rebase */
    bool reopened;        /* this job had finished and continues with other settings */
    uint64_t generation;
    bool leads;              /* this process acquired the generation */
    bool raised_again;       /* a ps refused the first one, see chief_initialise_ps */
    int64_t limit;           /* ordinals below may be leased */
    uint64_t stalls_told;    /* of coordinator_view.stalls */
    int64_t recorded_epochs; /* epochs that are in the history */
    struct evaluation evaluation;
    struct decisions decisions; /* of fit.callbacks */
    struct wait_state evaluation_wait, decision_wait, storage_wait, ps_wait, worker_wait, step_wait;
    int64_t storage_retry_ms;       /* when the end, or a decision, is retried */
    int64_t save_at;                /* synchronous training: the step of the checkpoint, by its first ordinal */
    bool stop_told;                 /* of a request to stop */
    char *saved_name;               /* of the last checkpoint; NULL: none by this process */
    int64_t saved_step, saved_ms;   /* of the last checkpoint; -1: none by this process */
    bool saved_terminating;         /* a checkpoint was saved because a ps terminates */
    bool polled;                    /* the last poll covered everything applied */
    bool began;                     /* the ps were initialised once */
    int64_t begin_step;             /* step from which training is repeated; -1: the ps had kept everything */
    double *final;                  /* evaluation of the end, model_metrics values */
    int64_t final_step;             /* its step; -1: none yet, or a ps was restored since */
    bool ending;                    /* nothing is left to train */
    bool end_saved;                 /* a checkpoint holds the state of the end */
    int64_t trained_ms, first_step; /* when the ps first served, and the step then */
    int64_t done_ms;                /* when the last batch was seen done */
    uint64_t apply_ns;              /* of all ps, as of the last poll */
    struct err superseded;          /* by a newer chief, or another job that writes to the same folder */
    _Atomic int64_t step, done;     /* for other threads */
    _Atomic int64_t checkpoint_step;
    _Atomic uint64_t restored, shown_generation;
};

/* chief_start.c */
/* The newest complete checkpoint; *ret NULL: there is none. warn: report why it is not the one that should be. */
MUST_USE int chief_find_checkpoint(const struct chief *c, bool warn, struct checkpoint **ret, struct err *e);
/* The same, checked against the job. *ret_rebase: how to continue when its batches differ from those of the job. */
MUST_USE int chief_open_checkpoint(const struct chief *c, bool warn, struct checkpoint **ret, struct rebase *ret_rebase,
                                   struct err *e);
/* Takes history and metrics of the newest one. */
MUST_USE int chief_resume_from(struct chief *c, const struct checkpoint *ck, const struct rebase *rebase,
                               struct err *e);
/* chief_rerun.c */
/* Checks whether this job may continue the run in the output folder. ERR_INPUT naming the fields that differ, and
 * both uids. Sets the length of the job and its first step. ck: the newest checkpoint, or NULL. Changes nothing on
 * disk. */
MUST_USE int chief_judge_rerun(struct chief *c, const struct checkpoint *ck, struct rebase *ret_rebase, struct err *e);
struct run_spec chief_run_spec(const struct chief *c); /* in the form that previous_run.h requires */
/* Once this chief is in charge: writes the job into the folder, for later runs. */
MUST_USE int chief_write_job(struct chief *c, struct err *e);
bool chief_worth_waiting(const struct err *e); /* a ps is gone; it may come back */
/* Acquires a generation above all known ones. ERR_FENCED when another chief is in charge, ERR_INPUT when that chief
 * belongs to another job.
 */
MUST_USE int chief_raise_generation(struct chief *c, uint64_t seen, struct err *e);
/* The same, and the first time writes the job into the folder. A full disk is waited for. */
MUST_USE int chief_take_lead(struct chief *c, uint64_t seen, struct err *e);
/* Is this chief in charge, according to the file on the volume? The file must contain exactly its own generation and
 * incarnation. complete: all ps were polled and name no other chief, so a missing file may be written again. */
MUST_USE int chief_confirm_file(struct chief *c, bool complete, struct err *e);
/* According to the ps. */
MUST_USE int chief_confirm_ps_set(struct chief *c, const struct ps_set_view *view, struct err *e);
/* Another chief is in charge, as `why` shows: returns -1 with the error that ends this one, and keeps it. */
MUST_USE int chief_superseded(struct chief *c, const struct err *why, struct err *e);
MUST_USE int chief_initialise_ps(struct chief *c, uint64_t seen, struct err *e); /* waits for the ps, bounded */
/* chief_step.c: synchronous training, where a checkpoint is of one step of all segments */
/* While the chief waits for something else: what the ps have applied, at which step all are (*ret_step), and which
 * workers are gone. Others wait for those. ERR_LOST: a ps is lost. */
MUST_USE int chief_observe(struct chief *c, int64_t *ret_step, struct err *e);
/* Announces the snapshot of a step that no ps has passed, and waits until all ps are there, bounded. Training goes on.
 * Sets c->save_at. ERR_TIMEOUT, ERR_LOST: no checkpoint now. */
MUST_USE int chief_await_step(struct chief *c, struct err *e);
/* The same at the end of this process: no further batches are leased, and the wait is short. */
void chief_settle_step(struct chief *c);
/* All pushes are fenced: the step at which all ps are. ERR_LOST: they are at different ones. */
MUST_USE int chief_find_step(struct chief *c, struct err *e);
/* chief_save.c */
MUST_USE int chief_save(struct chief *c, struct err *e);
/* Synchronous training: of the step c->save_at. */
MUST_USE int chief_save_step(struct chief *c, struct err *e);
/* Storage failed where its success is required: reports that and recreates a deleted folder. ERR_IO after
 * fit.maxWaitSeconds; what: the purpose, such as "at the end of the job". */
MUST_USE int chief_await_storage(struct chief *c, const char *what, const struct err *cause, struct err *e);
/* The same while no other work is possible: returns when the next attempt is due. Every other error than a full disk
 * is passed on; ERR_STOPPED after a signal. chief_wait_over(storage_wait) follows the success. */
MUST_USE int chief_await_space(struct chief *c, const struct err *cause, struct err *e);
/* The first checkpoint shows whether the storage works. A full disk is waited for, while training continues. */
MUST_USE int chief_save_first(struct chief *c, struct err *e);
/* During training: a failure is a warning, unless training diverged. */
MUST_USE int chief_save_or_warn(struct chief *c, bool *ret_saved, struct err *e);
void chief_await_reports(struct chief *c, int64_t batches);            /* bounded: 1 s */
MUST_USE int chief_confirm(struct chief *c, struct err *e);            /* no newer chief is in charge; all ps answer */
bool chief_blames_storage(const struct chief *c, const struct err *e); /* files could not be written */
/* chief_epoch.c */
int64_t chief_epochs_over(const struct chief *c, int64_t done_low); /* epochs whose batches are all done */
int64_t chief_epoch_end(const struct chief *c, int64_t epoch);      /* the ordinal after its last one */
int64_t chief_epoch_step(const struct chief *c, int64_t epoch);     /* the global step at its end */
bool chief_synchronous(const struct chief *c);
bool chief_exact(const struct chief *c);         /* one thread trains: checkpoints fall between two of its steps */
bool chief_deterministic(const struct chief *c); /* synchronous, and one result is promised */
int64_t chief_next_limit(const struct chief *c, int64_t over,
                         int64_t done_low); /* limit up to which batches may be leased then */
struct epoch_values {                       /* pulled for the last epoch that is over */
    bool pulled;
    int64_t step; /* smallest version */
    bool exact;   /* the values are those of the epoch's end */
};
/* 1: pulled the values needed for the epochs that are over; 0: the evaluation of an earlier one is still running. */
MUST_USE int chief_take_values(struct chief *c, int64_t over, struct epoch_values *ret, struct err *e);
/* Records the epoch in the history and starts the evaluation of the pulled values. */
MUST_USE int chief_record_epochs(struct chief *c, int64_t over, const struct epoch_values *values, struct err *e);
/* ERR_DIVERGED: not finite. */
MUST_USE int chief_pull(struct chief *c, int64_t *ret_min, int64_t *ret_max, struct err *e);
MUST_USE int chief_evaluation_begin(struct chief *c, int64_t epoch, int64_t step, bool final, struct err *e);
MUST_USE int chief_evaluation_take(struct chief *c, struct err *e); /* the result, when there is one */
void chief_evaluation_stop(struct chief *c);
/* Publishes what the chief waits for: to workers and /progress at once, in the report after first_ms and then at the
 * times of base/wait.h. Returns the duration of the wait so far. */
int64_t chief_wait(struct chief *c, struct wait_state *w, int64_t first_ms, const char *text);
void chief_wait_over(struct chief *c, struct wait_state *w);
MUST_USE int chief_check_finite(const struct chief *c, const struct variable *v, const float *values, size_t n,
                                int64_t step, struct err *e);
const char *chief_divergence_cure(const struct chief *c);
/* chief_end.c */
/* Advances the end of the job as far as possible without waiting; *ret: the job has finished. */
MUST_USE int chief_finish(struct chief *c, bool *ret, struct err *e);
/* A ps was restored: its values are no longer those saved and evaluated as the end. */
void chief_end_again(struct chief *c);
void chief_await_leave(struct chief *c, int64_t at_most_ms); /* workers are notified of the end by their next call */
MUST_USE int chief_already_finished(struct chief *c, int64_t step, struct err *e);

#endif
