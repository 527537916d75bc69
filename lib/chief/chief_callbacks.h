/* chief_callbacks - fit.callbacks as the chief carries them out.
 *
 * With callbacks, batches are leased only to the end of an epoch until its decision is made. nn/callback.c makes the
 * decision from the history. It is saved in a checkpoint, with the state of the callbacks and the learning rates,
 * and then sent to every ps. After that the next epoch is opened. So a decision is carried out once, whichever
 * process is killed and when. Before the checkpoint it is made again from the same values; after it, a new chief
 * reads it. */
#ifndef TRAINYARD_CHIEF_CHIEF_CALLBACKS_H
#define TRAINYARD_CHIEF_CHIEF_CALLBACKS_H

#include "base/str.h"
#include "chief/output_dir.h"
#include "nn/callback.h"
#include "shard/rates.h"

struct chief;

struct decided {     /* the result of all decisions; in each checkpoint as "callbacks" */
    int64_t epochs;  /* number of epochs that are decided */
    int64_t stopped; /* the epoch after which training ends, from 0; -1 */
    struct callback_state states[CALLBACKS_MAX];
    char *best[CALLBACKS_MAX]; /* name of the checkpoint that is kept, or NULL */
    bool keeps[CALLBACKS_MAX]; /* the checkpoint that is being saved becomes the best */
    struct rates rates;
    json_t *kept; /* at the end of the job, as struct job_result has it */
};
void decided_fini(struct decided *d);
DEFINE_AUTO_FINI(decided, decided_fini);

struct decisions {
    struct callbacks *list; /* NULL: none */
    struct decided now;     /* saved, or as training begins */
    struct decided *saving; /* while the checkpoint of a decision is written; else NULL */
    struct strlist kept;    /* names of checkpoints that the one being saved must leave */
    bool from_checkpoint;   /* `now` was read from a checkpoint */
    bool announced;         /* every ps has the rates */
    int64_t valued;         /* epochs whose evaluation is known or cannot be obtained */
};
MUST_USE int chief_callbacks_open(struct chief *c, struct err *e);
void chief_callbacks_fini(struct chief *c);
/* From the state of the checkpoint from which training continues. rebased: with other batches. */
MUST_USE int chief_callbacks_restore(struct chief *c, const struct node *state, bool rebased, struct err *e);
/* The first poll of the ps is over: recorded_epochs is known. */
void chief_callbacks_begin(struct chief *c, int64_t step);
/* For the checkpoint called `prefix`: its state, and which older ones it keeps. */
void chief_callbacks_save(struct chief *c, const char *prefix, json_t *state);

/* 1: all recorded epochs are decided; 0: the input of a decision is not available yet. */
MUST_USE int chief_decide(struct chief *c, struct err *e);
/* Ordinals from here on wait for a decision. */
int64_t chief_decided_end(const struct chief *c);
bool chief_decides_epoch(const struct chief *c, int64_t epoch); /* its evaluation is waited for and will be repeated */
/* An evaluation that a decision waits for is neither known nor under way: the values are needed. */
bool chief_wants_values(const struct chief *c, int64_t over);
void chief_decide_again(struct chief *c);  /* a ps was restored: its values are not those that were evaluated */
bool chief_stopped(const struct chief *c); /* a callback ended training */
/* The result of the job, once the final values are evaluated. final: their metrics, replaced by those of the best
 * epoch when that is the result. What ret points to is valid as long as `last`. */
void chief_callbacks_end(struct chief *c, struct decided *last, double *final, struct job_result *ret);

#endif
