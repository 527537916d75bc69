/* chief_internal - what the files of the chief share: chief.c (the loop), chief_start.c (into service),
 * chief_save.c (checkpoints, evaluation, the end). */
#ifndef TRAINYARD_TRAIN_CHIEF_INTERNAL_H
#define TRAINYARD_TRAIN_CHIEF_INTERNAL_H

#include <stdatomic.h>

#include "train/checkpoint.h"
#include "train/chief.h"
#include "train/evaluate.h"
#include "train/fleet.h"
#include "train/recorder.h"

struct chief {
    struct chief_config config;
    char *checkpoints;               /* folder */
    struct fleet *fleet;
    struct coordinator *desk;
    struct recorder *recorder;
    struct evaluator *evaluator;     /* NULL: no validation data */
    int64_t batches_per_epoch, total;
    uint64_t generation;
    bool leads;                      /* the generation is one that this process took */
    bool raised_again;               /* a ps refused the first one, see chief_bring_up */
    int64_t recorded_epochs;         /* epochs whose end was evaluated and written to the history */
    int64_t saved_step, saved_ms;    /* of the last checkpoint; -1: none by this process */
    bool saved_leaving;              /* a ps that terminates was saved for */
    bool looked;                     /* the last look saw all that was applied */
    bool began;                      /* the ps were brought into service once */
    int64_t begin_step;              /* from which steps are trained again; -1: the ps had kept all */
    double *final;                   /* last evaluation, model_metrics values */
    bool has_final;
    int64_t final_step;
    int64_t trained_ms, first_step;  /* when the ps first served, and the step then */
    int64_t done_ms;                 /* when the last batch was seen done */
    uint64_t apply_ns;               /* of all ps, as the last look saw it */
    int64_t away_since_ms, explained_ms;
    struct err superseded;           /* by a newer chief, or another job that writes to the same folder */
    int64_t alone_since_ms, alone_said_ms; /* no worker is there */
    _Atomic int64_t step, done;      /* for other threads */
    _Atomic int64_t checkpoint_step;
    _Atomic uint64_t restored, shown_generation;
};

/* chief_start.c */
/* The newest whole one, checked against the job; *ret NULL: there is none. say: log it when newer ones are damaged. */
MUST_USE int chief_open_checkpoint(const struct chief *c, bool say, struct checkpoint **ret, struct err *e);
MUST_USE int chief_adopt_checkpoint(struct chief *c, struct err *e);        /* newest one: check it, take its history */
bool chief_worth_waiting(const struct err *e);                              /* a ps is gone; it may come back */
/* Takes a generation above all known; ERR_FENCED when another chief is in charge, ERR_INPUT when it is of another job. */
MUST_USE int chief_raise_generation(struct chief *c, uint64_t seen, struct err *e);
/* Is this chief in charge? By the file of the volume, which must say exactly its own generation and incarnation. complete:
 * all ps were asked and name no other chief, so that a file that is gone may be written again. */
MUST_USE int chief_confirm_file(struct chief *c, bool complete, struct err *e);
/* By what the ps say. */
MUST_USE int chief_confirm_fleet(struct chief *c, const struct fleet_view *view, struct err *e);
MUST_USE int chief_bring_up(struct chief *c, uint64_t seen, struct err *e); /* waits for the ps, bounded */
/* chief_save.c */
MUST_USE int chief_save(struct chief *c, int64_t step, struct err *e);
bool chief_save_or_warn(struct chief *c, int64_t step);
void chief_await_reports(struct chief *c, int64_t batches);                 /* bounded: 1 s */
int64_t chief_epochs_over(const struct chief *c, int64_t done_low);         /* epochs whose batches are all done */
MUST_USE int chief_pull(struct chief *c, struct err *e);                    /* values to evaluate */
MUST_USE int chief_end_epochs(struct chief *c, int64_t over, int64_t step, struct err *e);
MUST_USE int chief_finish(struct chief *c, int64_t step, struct err *e);
void chief_await_leave(struct chief *c, int64_t at_most_ms); /* workers learn of the end by their next call */
MUST_USE int chief_already_finished(struct chief *c, int64_t step, struct err *e);

#endif
