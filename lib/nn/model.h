/* model - the model that spec.model and spec.compile describe, checked and laid out: layers, variables, loss, metrics,
 * optimizer. Immutable after model_build; shared by threads. No arithmetic on data happens here and no BLAS is linked
 * by it: the operator and `trainyard validate` use it to check manifests.
 *
 * Parameter vector (design part 1): ONE flat float32 array, variables in creation order, trainable ones first, then
 * non-trainable state. A variable begins at a multiple of 16 floats (cache line, AVX-512); the gaps hold zeros, belong
 * to no variable and are never sent.
 */
#ifndef TRAINYARD_NN_MODEL_H
#define TRAINYARD_NN_MODEL_H

#include "codec/node.h"
#include "nn/losses/loss.h"
#include "nn/metrics/metric_list.h"
#include "nn/optimizers/optimizer.h"
#include "tensor/batch.h"

enum variable_kind {
    VAR_TRAINABLE, /* updated by the optimizer from gradients */
    VAR_MOVING,    /* moving average of batch statistics: v = v*momentum + batch*(1-momentum) */
    VAR_CONST      /* set at Init (Normalization's mean and variance), never updated */
};
struct variable {
    const char *name; /* "dense/kernel", Keras/TF1 names */
    struct shape shape;
    size_t offset, count; /* floats in the parameter vector */
    enum variable_kind kind;
    float momentum; /* VAR_MOVING */
    int layer;
    int pin; /* `device: ps:N` of its layer: N + 1; 0: strategy.placement decides */
};

struct model;

/* spec.model is the short form without inputShape, and its first layer has no shape either: that of the data counts
 * (data/job_learn.h). */
bool model_input_is_open(const struct node *model);

/* Either spec.model (short form {inputShape, layers} | {keras: {...} or JSON text} | {kerasFile: path}) with
 * spec.compile. Keras files are read relative to base_dir. Every fault is a placed ERR_INPUT: unknown layer or
 * argument (with suggestion), impossible shape (with both shapes), layer of a later release (the message states
 * that). What compile does not have is taken from the compile_config of a compiled Keras model; without a loss in
 * either it is an error. compile NULL: loss, metrics and optimizer are NULL/0, and only the layers can be used. */
MUST_USE int model_build(const struct node *model, const struct node *compile, const char *base_dir, struct model **ret,
                         struct err *e);
/* Of a model whose input is open: the names and arguments of its layers, optimizer, loss and metrics, without their
 * shapes. Faults as of model_build(). */
MUST_USE int model_check(const struct node *model, const struct node *compile, struct err *e);
/* Of a model in a file that is not here: the optimizer, the losses and the metrics, where they are given. */
MUST_USE int model_check_compile(const struct node *compile, struct err *e);
void model_free(struct model *m);
DEFINE_AUTO(model, model_free);

size_t model_size(const struct model *m);   /* floats in the parameter vector, gaps included */
size_t model_params(const struct model *m); /* Keras's count_params: without gaps */
size_t model_variables(const struct model *m);
const struct variable *model_variable(const struct model *m, size_t i);
const struct optimizer *model_optimizer(const struct model *m);
const char *model_name(const struct model *m);
/* What the model is called with, by the names of its InputLayers, and what it computes, by the names of the layers (of
 * the second with a name NAME_1). At least one of each. */
enum { MODEL_INPUTS_MAX = BATCH_TENSORS_MAX, MODEL_OUTPUTS_MAX = BATCH_TENSORS_MAX };
size_t model_inputs(const struct model *m);
const struct named_shape *model_input(const struct model *m, size_t i);
size_t model_outputs(const struct model *m);
const struct named_shape *model_output(const struct model *m, size_t i);
bool model_wants_adapt(const struct model *m); /* a Normalization layer without mean/variance */
/* The name of the first layer that is trained with the statistics of all batches of a step; NULL: there is none. */
const char *model_synchronized(const struct model *m);

/* Loss and metrics by name, for logs and summaries: "loss", "accuracy", "mean_squared_error", ... in the
 * order of the result vector (nn/metrics/metrics.h). Index 0 is always "loss". Of a model with several outputs: "loss",
 * the loss of each ("price_loss"), and their metrics ("price_mae"). */
size_t model_metrics(const struct model *m);
const char *model_metric_name(const struct model *m, size_t i);
/* By its name or its class's ("mae" for mean_absolute_error); -1: it is not measured. */
int model_metric_find(const struct model *m, const char *name);
enum better model_metric_better(const struct model *m, size_t i);

/* Whether data of that shape fit an input. Of a model with one input `features` is the whole example. */
MUST_USE int model_check_input(const struct model *m, size_t input, const struct shape *features, struct err *e);
/* Shape of one example's label that the loss of an output requires: sparse_* -> () integer; others -> the output's
 * shape. labels NULL: the data have none. */
MUST_USE int model_check_label(const struct model *m, size_t output, const struct shape *labels, bool integer,
                               struct err *e);
/* The labels of which the loss of an output can be computed; without a loss any finite number. */
struct label_range model_label_range(const struct model *m, size_t output);

/* The numbers of an input that go into an Embedding or a CategoryEncoding are whole, from 0 to rows - 1. */
struct index_range {
    int64_t rows; /* 0: any numbers */
    const char *class_name;
    const char *layer;    /* its name; borrowed from the model */
    const char *argument; /* of the layer, with the value rows */
};
struct index_range model_index_range(const struct model *m, size_t input);

/* What the first output says about classes (nn/losses/loss.h); without a loss nothing. */
enum class_output model_class_output(const struct model *m, bool *ret_logits);

/* Initial values of all variables: a pure function of (model, seed): variable i draws from
 * Philox(seed, RNG_INIT, i). Gaps are zero. */
void model_init(const struct model *m, uint64_t seed, float *ret_values);

/* Keras 3's Model.to_json(): Sequential when the model is a chain, else Functional; new reference. */
json_t *model_to_json(const struct model *m);
/* Keras's model.summary() table. */
void model_summary(const struct model *m, struct buf *out);

#endif
