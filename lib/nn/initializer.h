/* initializer - Keras's initializers: Zeros Ones Constant RandomUniform RandomNormal TruncatedNormal
 * Glorot{Uniform,Normal} He{Uniform,Normal} Lecun{Uniform,Normal} VarianceScaling Orthogonal Identity.
 * Fans as keras/src/initializers/random_initializers.py compute_fans: rank 2 (in, out); higher ranks times
 * the receptive field. Names in both spellings (glorot_uniform, GlorotUniform). A plain value.
 */
#ifndef TRAINYARD_NN_INITIALIZER_H
#define TRAINYARD_NN_INITIALIZER_H

#include "base/rng.h"
#include "codec/node.h"
#include "tensor/tensor.h"

enum initializer_kind {
    INIT_ZEROS,
    INIT_CONSTANT,         /* Ones too: value 1 */
    INIT_UNIFORM,          /* [a, b) */
    INIT_NORMAL,           /* mean a, standard deviation b */
    INIT_TRUNCATED_NORMAL, /* mean a, deviation b, redrawn beyond two deviations */
    INIT_VARIANCE_SCALING,
    INIT_ORTHOGONAL, /* gain a */
    INIT_IDENTITY    /* gain a */
};

struct initializer {        /* zero is Zeros */
    const char *class_name; /* Keras's, static: "GlorotUniform"; NULL means "Zeros" */
    enum initializer_kind kind;
    double a, b;
    double scale; /* VARIANCE_SCALING and its named forms */
    enum { FAN_IN, FAN_OUT, FAN_AVG } mode;
    enum { DIST_TRUNCATED_NORMAL, DIST_UNTRUNCATED_NORMAL, DIST_UNIFORM } distribution;
    bool has_seed; /* the manifest set a seed: drawn from it instead of the model's */
    int64_t seed;
};

/* Absent or null: `fallback` (a Keras name, e.g. "glorot_uniform"). A name or any map node_named() accepts. */
MUST_USE int initializer_parse(const struct node *n, const char *fallback, struct initializer *ret, struct err *e);
/* Whether it can fill this shape (Identity and Orthogonal need a matrix); message without place. */
MUST_USE int initializer_check(const struct initializer *i, const struct shape *s, struct err *e);
/* Fills all elements of the shape, drawing from r in order (or from its own seed). */
void initializer_draw(const struct initializer *i, const struct shape *s, struct rng *r, float *out);
/* {"module": "keras.initializers", "class_name": ..., "config": {...}, "registered_name": null}; new reference. */
json_t *initializer_json(const struct initializer *i);

#endif
