/* step_engine - computes training steps: the batch of an ordinal, forward, backward. The gradient is passed on as a
 * whole, or variable by variable while backward runs.
 *
 * An engine does not use leases, ps or other workers. The session loop names the ordinal. The strategy
 * (train/strategy.h) provides the values to compute from and the memory for the gradient, and receives the gradient. An
 * engine belongs to one thread. A process may have several, which share the model.
 */
#ifndef TRAINYARD_TRAIN_STEP_ENGINE_H
#define TRAINYARD_TRAIN_STEP_ENGINE_H

#include "data/dataset.h"
#include "nn/class_weight.h"
#include "nn/exec.h"

/* One ordinal between its lease and its report. */
struct train_step {
    int64_t ordinal; /* -1: none */
    /* Given by the strategy: */
    const float *values; /* the parameter vector to compute from */
    float *grads;        /* memory for the gradient, in the model's layout */
    double *sums;        /* memory for the sums of loss and metrics, metrics_width(model) */
    bool by_variable;    /* gradients are passed on as they complete, not only as a whole */
    bool first;          /* of its group, see exec_step */
    /* Written by step_engine_compute: */
    double loss;
    size_t examples;
    /* The time of each part, and the age of the values when the update was applied: for the report. */
    uint64_t data_ns, compute_ns, network_ns, wait_ns;
    int64_t staleness;
};

struct step_engine_config {
    const struct model *model; /* all borrowed */
    const struct dataset *dataset;
    const struct ordinal_space *space;
    const struct class_weights *class_weights; /* NULL: none */
};

struct step_engine;
MUST_USE int step_engine_new(const struct step_engine_config *config, struct step_engine **ret, struct err *e);
void step_engine_free(struct step_engine *g);
DEFINE_AUTO(step_engine, step_engine_free);

/* Reads the batch that step_engine_compute computes next. Errors name the file and the record. */
MUST_USE int step_engine_load(struct step_engine *g, int64_t ordinal, struct err *e);
/* True when a thread of the engine parses records. It must know early which batch follows this one:
 * step_engine_expect, -1: unknown. */
bool step_engine_prefetches(const struct step_engine *g);
void step_engine_expect(struct step_engine *g, int64_t ordinal);
/* Reads a batch ahead in the caller's thread, while nothing is computed. False: it was not read, and step_engine_load
 * gives the error, if there is one. */
bool step_engine_read_ahead(struct step_engine *g, int64_t ordinal);

/* With step->by_variable: the gradient of this variable is complete, finite, and not written any more. Called from the
 * last variable to the first; not at all after one that is not finite. */
typedef void step_gradient_fn(void *user, struct train_step *step, size_t variable);

/* Computes the batch that step_engine_load read. Without step->by_variable the gradient is clipped as the optimizer
 * defines. ERR_DIVERGED: the loss or the gradient is not finite. */
MUST_USE int step_engine_compute(struct step_engine *g, struct train_step *step, step_gradient_fn *ready, void *user,
                                 struct err *e);
/* The same in parts, for a model with synchronized layers (exec_begin, exec_advance). 0: sums over the group are
 * needed; 1: the step is done, and no gradient was passed on. */
void step_engine_begin(struct step_engine *g, struct train_step *step);
MUST_USE int step_engine_advance(struct step_engine *g, struct exec_sums *ret_sums, struct err *e);

#endif
