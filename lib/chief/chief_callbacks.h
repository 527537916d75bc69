/* chief_callbacks - fit.callbacks as the chief carries them out.
 *
 * With callbacks batches are leased to the end of an epoch only, until its decision is made. It is made by
 * nn/callback.c, from the history; saved in a checkpoint, with the state of the callbacks and the learning rates; then
 * sent to every ps; then the next epoch is opened. So a decision is carried out once, whoever is killed when: before
 * the checkpoint it is made again from the same values, after it a new chief reads it. */
#ifndef TRAINYARD_CHIEF_CHIEF_CALLBACKS_H
#define TRAINYARD_CHIEF_CHIEF_CALLBACKS_H

#include "base/str.h"
#include "chief/output_dir.h"
#include "nn/callback.h"
#include "shard/rates.h"

struct chief;

struct decided {     /* all that decisions have led to; in each checkpoint as "callbacks" */
    int64_t epochs;  /* so many are decided */
    int64_t stopped; /* the epoch after which training ends, from 0; -1 */
    struct callback_state states[CALLBACKS_MAX];
    char *best[CALLBACKS_MAX]; /* name of the checkpoint that is kept, or NULL */
    bool keeps[CALLBACKS_MAX]; /* the checkpoint that is being saved becomes the best */
    struct rates rates;
};
void decided_fini(struct decided *d);
DEFINE_AUTO_FINI(decided, decided_fini);

struct decisions {
    struct callbacks *list; /* NULL: none */
    struct decided now;     /* saved, or as training begins */
    struct decided *saving; /* while the checkpoint of a decision is written; else NULL */
    struct strlist kept;    /* names of checkpoints that the one being saved must leave */
    bool from_checkpoint;   /* now was read from one */
    bool announced;         /* every ps knows the rates */
    int64_t valued;         /* epochs whose evaluation is known, or cannot be had */
};
MUST_USE int chief_callbacks_open(struct chief *c, struct err *e);
void chief_callbacks_fini(struct chief *c);
/* From the state of the checkpoint that training goes on from. rebased: with other batches. */
MUST_USE int chief_callbacks_restore(struct chief *c, const struct node *state, bool rebased, struct err *e);
/* The first poll of the ps is over: recorded_epochs is known. */
void chief_callbacks_begin(struct chief *c, int64_t step);
/* For the checkpoint called `prefix`: its state, and which older ones it leaves. */
void chief_callbacks_save(struct chief *c, const char *prefix, json_t *state);

/* 1: all epochs that are recorded are decided; 0: what a decision needs is waited for. */
MUST_USE int chief_decide(struct chief *c, struct err *e);
/* Ordinals from here on wait for a decision. */
int64_t chief_decided_end(const struct chief *c);
bool chief_decides_epoch(const struct chief *c, int64_t epoch); /* its evaluation is waited for, and comes again */
/* An evaluation that a decision waits for is neither known nor under way: the values are wanted. */
bool chief_wants_values(const struct chief *c, int64_t over);
void chief_decide_again(struct chief *c);  /* a ps was restored: what was evaluated is not what it has */
bool chief_stopped(const struct chief *c); /* a callback ended training */
/* What the job ends with, once the final values are evaluated; final: their metrics, replaced by those of the best
 * epoch when that is the result. The names in ret live as long as `last`. */
void chief_callbacks_end(struct chief *c, struct decided *last, double *final, struct job_result *ret);

#endif
