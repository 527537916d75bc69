/* optimizer - Keras's optimizers: arguments, defaults, formulas (golden/keras, runtimes.md 3.0).
 *
 * Pure element-wise updates of any range of the parameter vector, so a ps can apply a gradient directly from received
 * bytes, range by range, while the scalars of the step are computed once:
 *
 *     struct opt_step step;
 *     optimizer_begin(o, &state, &step);                 // state.t updates were applied before
 *     optimizer_apply(o, &step, w + a, slots_at_a, g + a, n);   // any ranges, each element once
 *     optimizer_end(o, &state);                          // t + 1
 *
 * Gradient clipping (clipnorm, clipvalue, global_clipnorm) happens at the worker: optimizer_clip().
 */
#ifndef TRAINYARD_NN_OPTIMIZERS_OPTIMIZER_H
#define TRAINYARD_NN_OPTIMIZERS_OPTIMIZER_H

#include "codec/node.h"

enum { OPTIMIZER_MAX_SLOTS = 3 };

struct optimizer; /* immutable, shared */

/* A name or a map (node_named): SGD Adam AdamW RMSprop Adagrad Adadelta Adamax Nadam Ftrl Lion, and Counting (adds 1 to
 * every cell: the tests' proof of exactly-once). learning_rate: a number or a schedule (ExponentialDecay,
 * PiecewiseConstantDecay, PolynomialDecay, InverseTimeDecay, CosineDecay, CosineDecayRestarts). */
MUST_USE int optimizer_parse(const struct node *n, struct optimizer **ret, struct err *e);
void optimizer_free(struct optimizer *o);
DEFINE_AUTO(optimizer, optimizer_free);

const char *optimizer_name(const struct optimizer *o); /* "Adam" */
json_t *optimizer_config(const struct optimizer *o);   /* all arguments, new reference (hparams, model.json) */
int optimizer_slots(const struct optimizer *o);
/* TensorFlow 1's suffix: "Adam", "Adam_1", "Momentum", "RMSProp", ... : slot of dense/kernel is "dense/kernel/Adam". */
const char *optimizer_slot_name(const struct optimizer *o, int slot);
float optimizer_slot_init(const struct optimizer *o, int slot);
/* Scalars that TensorFlow stores with the slots after t updates: beta1_power, beta2_power (Adam family). Returns their
 * number.
 */
int optimizer_scalars(const struct optimizer *o, int64_t t, const char *ret_name[2], float ret_value[2]);
double optimizer_learning_rate(const struct optimizer *o, int64_t t); /* for the update after t updates */
bool optimizer_has_schedule(const struct optimizer *o);               /* the learning rate is not a number */

struct opt_state { /* of one segment; zero-initialised is "no updates yet" */
    int64_t t;     /* updates applied */
    double aux;    /* Nadam's running product of u_t; 0 means 1 (nothing applied) */
};
struct opt_step { /* scalars of one update, computed once */
    float lr, a, b, c, d;
    float ordinals; /* that the update is made of; 1, unless it is a group's */
    int64_t t;
};
void optimizer_seek(const struct optimizer *o, int64_t t, struct opt_state *ret); /* state after t updates */
void optimizer_begin(const struct optimizer *o, const struct opt_state *s, struct opt_step *ret);
/* The same with another learning rate than the optimizer's (nn/callback.h). */
void optimizer_begin_at(const struct optimizer *o, const struct opt_state *s, double rate, struct opt_step *ret);
/* w, slots[i], g: ranges of the same n elements; g need not be aligned to 4 bytes (it is read from the wire). The
 * result does not depend on how a vector is cut into ranges. */
void optimizer_apply(const struct optimizer *o, const struct opt_step *step, float *w, float *const slots[],
                     const void *g, size_t n);
void optimizer_end(const struct optimizer *o, struct opt_state *s);

bool optimizer_clips(const struct optimizer *o);
bool optimizer_clips_norm(const struct optimizer *o); /* clipnorm or global_clipnorm: needs whole variables */
void optimizer_clip_values(const struct optimizer *o, float *g, size_t n); /* clipvalue, of any range */
/* Clips gradients of the variables given as (offset, count) pairs, in place. */
void optimizer_clip(const struct optimizer *o, float *grads, const size_t offsets[], const size_t counts[],
                    size_t nvars);

#endif
