/* callback - fit.callbacks: Keras's callbacks that make decisions at the end of an epoch: EarlyStopping,
 * ReduceLROnPlateau and ModelCheckpoint, with Keras's names, arguments, defaults and decisions
 * (test/data/nn/callbacks).
 *
 * callback_decide() is pure: it computes a verdict and the next state from the metrics of an epoch and a state. The
 * chief carries out the verdicts and keeps the states in its checkpoints (chief/chief_callbacks.c). As in Keras, values
 * are compared and learning rates computed in float32.
 */
#ifndef TRAINYARD_NN_CALLBACK_H
#define TRAINYARD_NN_CALLBACK_H

#include "nn/model.h"

enum { CALLBACKS_MAX = 16 };

struct callbacks; /* immutable */

/* n: the list of spec.fit.callbacks; absent: none (*ret NULL). evaluates: there is validation data. Every fault is a
 * placed ERR_INPUT: an unknown callback or argument, a metric that is not measured, a mode that Keras cannot derive
 * from the metric, ReduceLROnPlateau with a schedule. m NULL: the model is not known here, and checks that need it are
 * left out.
 */
MUST_USE int callbacks_parse(const struct node *n, const struct model *m, bool evaluates, struct callbacks **ret,
                             struct err *e);
/* Only judges. */
MUST_USE int callbacks_check(const struct node *n, const struct model *m, bool evaluates, struct err *e);
void callbacks_free(struct callbacks *c);
DEFINE_AUTO(callbacks, callbacks_free);

size_t callbacks_count(const struct callbacks *c);                 /* 0 for NULL */
const char *callback_name(const struct callbacks *c, size_t i);    /* "EarlyStopping" */
const char *callback_monitor(const struct callbacks *c, size_t i); /* "val_loss"; NULL: it reads nothing */
json_t *callback_json(const struct callbacks *c, size_t i);        /* all its arguments, new reference */
bool callbacks_read_evaluation(const struct callbacks *c);         /* one of them reads val_... */
bool callbacks_set_rate(const struct callbacks *c);                /* one of them may change the learning rate */
/* The EarlyStopping with restore_best_weights whose best epoch is the job's result (Keras: of several the last one), or
 * -1. */
int callbacks_restoring(const struct callbacks *c);

struct callback_state { /* zero-initialised is "training begins" */
    bool has_best;
    double best;
    int64_t wait, cooldown, best_epoch; /* best_epoch: from 0 */
};
struct callback_epoch { /* what there is to decide by */
    int64_t epoch;      /* from 0 */
    bool known;         /* the metric was measured */
    double value;
    double rate; /* the learning rate now */
};
struct callback_verdict {
    bool stop; /* end training after this epoch */
    bool keep; /* the values of this epoch are the best so far: keep their checkpoint */
    bool set_rate;
    double rate; /* from the next epoch on, with set_rate */
};
struct callback_verdict callback_decide(const struct callbacks *c, size_t i, const struct callback_epoch *epoch,
                                        struct callback_state *s);

#endif
