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

struct evaluation { /* of the values pulled last, in a thread of its own */
    struct thread thread;
    bool running;        /* begun, and its result not taken yet */
    bool final;          /* of the values the job ends with */
    int64_t epoch, step; /* what it is of; epoch -1: of none */
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
    int64_t step_offset; /* global step - ordinals applied; not 0 after a rebase */
    bool reopened;       /* this job had finished, and continues with other settings */
    uint64_t generation;
    bool leads;              /* the generation is one that this process took */
    bool raised_again;       /* a ps refused the first one, see chief_initialise_ps */
    int64_t limit;           /* ordinals below may be leased */
    int64_t recorded_epochs; /* epochs that are in the history */
    struct evaluation evaluation;
    struct decisions decisions; /* of fit.callbacks */
    struct wait_state evaluation_wait, decision_wait, storage_wait, ps_wait, worker_wait;
    int64_t storage_retry_ms;       /* when the end, or a decision, is tried again */
    char *saved_name;               /* of the last checkpoint; NULL: none by this process */
    int64_t saved_step, saved_ms;   /* of the last checkpoint; -1: none by this process */
    bool saved_terminating;         /* a ps that terminates was saved for */
    bool polled;                    /* the last poll saw all that was applied */
    bool began;                     /* the ps were initialised once */
    int64_t begin_step;             /* from which steps are trained again; -1: the ps had kept all */
    double *final;                  /* evaluation of the end, model_metrics values */
    int64_t final_step;             /* that it is of; -1: none yet, or a ps was restored since */
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
/* The newest whole one; *ret NULL: there is none. warn: report newer ones that are damaged. */
MUST_USE int chief_find_checkpoint(const struct chief *c, bool warn, struct checkpoint **ret, struct err *e);
/* The same, checked against the job. *ret_rebase: how to continue when its batches are not those of the job. */
MUST_USE int chief_open_checkpoint(const struct chief *c, bool warn, struct checkpoint **ret, struct rebase *ret_rebase,
                                   struct err *e);
/* Takes history and metrics of the newest one. */
MUST_USE int chief_resume_from(struct chief *c, const struct checkpoint *ck, const struct rebase *rebase,
                               struct err *e);
/* chief_rerun.c */
/* May this job continue what is in the output folder? ERR_INPUT naming the fields that differ, and both uids. Takes
 * the length of the job and where its steps begin. ck: the newest checkpoint, or NULL. Changes nothing on disk. */
MUST_USE int chief_judge_rerun(struct chief *c, const struct checkpoint *ck, struct rebase *ret_rebase, struct err *e);
struct run_spec chief_run_spec(const struct chief *c); /* as previous_run.h wants it */
/* Once this chief is in charge: writes the job into the folder, for later runs. */
MUST_USE int chief_write_job(struct chief *c, struct err *e);
bool chief_worth_waiting(const struct err *e); /* a ps is gone; it may come back */
/* Takes a generation above all known; ERR_FENCED when another chief is in charge, ERR_INPUT when it is of another job.
 */
MUST_USE int chief_raise_generation(struct chief *c, uint64_t seen, struct err *e);
/* Is this chief in charge? By the file of the volume, which must say exactly its own generation and incarnation.
 * complete: all ps were asked and name no other chief, so that a file that is gone may be written again. */
MUST_USE int chief_confirm_file(struct chief *c, bool complete, struct err *e);
/* By what the ps say. */
MUST_USE int chief_confirm_ps_set(struct chief *c, const struct ps_set_view *view, struct err *e);
MUST_USE int chief_initialise_ps(struct chief *c, uint64_t seen, struct err *e); /* waits for the ps, bounded */
/* chief_save.c */
MUST_USE int chief_save(struct chief *c, struct err *e);
/* Storage failed where its success is waited for: says so and makes a deleted folder again. ERR_IO after
 * fit.maxWaitSeconds. */
MUST_USE int chief_await_storage(struct chief *c, const struct err *cause, struct err *e);
/* During training: a failure is a warning, unless training diverged. */
MUST_USE int chief_save_or_warn(struct chief *c, bool *ret_saved, struct err *e);
void chief_await_reports(struct chief *c, int64_t batches);            /* bounded: 1 s */
MUST_USE int chief_confirm(struct chief *c, struct err *e);            /* no newer chief is in charge; all ps answer */
bool chief_blames_storage(const struct chief *c, const struct err *e); /* files could not be written */
/* chief_epoch.c */
int64_t chief_epochs_over(const struct chief *c, int64_t done_low); /* epochs whose batches are all done */
int64_t chief_epoch_end(const struct chief *c, int64_t epoch);      /* the ordinal after its last one */
int64_t chief_epoch_step(const struct chief *c, int64_t epoch);     /* the global step at its end */
int64_t chief_next_limit(const struct chief *c, int64_t over,
                         int64_t done_low); /* how far batches may be leased then */
struct epoch_values {                       /* pulled for the last epoch that is over */
    bool pulled;
    int64_t step; /* smallest version */
    bool exact;   /* the values are those of the epoch's end */
};
/* 1: pulled what is wanted of the epochs that are over; 0: the evaluation of an earlier one is still under way. */
MUST_USE int chief_take_values(struct chief *c, int64_t over, struct epoch_values *ret, struct err *e);
/* Into the history; begins the evaluation of what was pulled. */
MUST_USE int chief_record_epochs(struct chief *c, int64_t over, const struct epoch_values *values, struct err *e);
/* ERR_DIVERGED: not finite. */
MUST_USE int chief_pull(struct chief *c, int64_t *ret_min, int64_t *ret_max, struct err *e);
MUST_USE int chief_evaluation_begin(struct chief *c, int64_t epoch, int64_t step, bool final, struct err *e);
MUST_USE int chief_evaluation_take(struct chief *c, struct err *e); /* the result, when there is one */
void chief_evaluation_stop(struct chief *c);
/* Tells what is waited for: workers and /progress at once, in the report after first_ms and then as base/wait.h says.
 * Returns for how long it has been waited. */
int64_t chief_wait(struct chief *c, struct wait_state *w, int64_t first_ms, const char *text);
void chief_wait_over(struct chief *c, struct wait_state *w);
MUST_USE int chief_check_finite(const struct chief *c, const struct variable *v, const float *values, size_t n,
                                int64_t step, struct err *e);
const char *chief_divergence_cure(const struct chief *c);
/* chief_end.c */
/* Advances the end as far as it can without waiting; *ret: the job has finished. */
MUST_USE int chief_finish(struct chief *c, bool *ret, struct err *e);
/* A ps was restored: what was saved and evaluated as the end is not what it has now. */
void chief_end_again(struct chief *c);
void chief_await_leave(struct chief *c, int64_t at_most_ms); /* workers learn of the end by their next call */
MUST_USE int chief_already_finished(struct chief *c, int64_t step, struct err *e);

#endif
