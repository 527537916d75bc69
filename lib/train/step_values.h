/* step_values - the wait for the values of a step, which the synchronous strategies share: those values are there when
 * the gradients of the step before are. While gradients of others are missing, the ordinal is put back. */
#ifndef TRAINYARD_TRAIN_STEP_VALUES_H
#define TRAINYARD_TRAIN_STEP_VALUES_H

#include "shard/groups.h"
#include "train/strategy_internal.h"

struct step_values {
    struct train_strategy *strategy;
    struct groups groups;
    int64_t at;          /* the vector has the values of the step whose group begins here; -1: of no step */
    uint64_t generation; /* in which they were pulled */
    int64_t patience_ms;
    uint64_t pull_ns; /* that the step has waited for its values */
    struct wait_state wait;
};

/* Before any other call: gets the generation, and prepares params. */
MUST_USE int step_values_open(struct step_values *v, struct train_strategy *s, struct err *e);
/* The values of the ordinal's step. 0, STEP_LATER or STEP_OVER. */
MUST_USE int step_values_get(struct step_values *v, int64_t ordinal, struct err *e);
/* Others must compute first; why: their batches. STEP_LATER. */
int step_values_later(struct step_values *v, const struct err *why);
/* Before the push of an ordinal: when it is the last one of this process in its step, the push brings the values of the
 * next step, if they come in time. That step, by its first ordinal; -1: there is no batch of it yet. */
int64_t step_values_want(struct step_values *v, int64_t ordinal);
/* The vector has the values of the step that begins with the ordinal `at`. */
void step_values_take(struct step_values *v, int64_t at);
uint64_t step_values_waited_ns(struct step_values *v); /* since the last call */

#endif
