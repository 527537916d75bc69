/* op - how a layer computes: one row per layer, parallel to layer.h's table. Only exec and tests use it; the operator
 * does not link it.
 *
 * Data is (n examples, l->in[k]) -> (n, l->out), row-major. An op neither allocates nor keeps state: backward gets x, y
 * and scratch from forward. Gradients are written, not added: exec adds up those of a tensor that several nodes read.
 */
#ifndef TRAINYARD_NN_OPS_OP_H
#define TRAINYARD_NN_OPS_OP_H

#include "nn/layers/layer.h"

struct op_ctx { /* one node in one pass */
    const struct layer *l;
    size_t n; /* examples */
    bool training;
    bool logits;                      /* stop before the last activation: the loss does it (op_row.tail) */
    const float *w[LAYER_VARS_MAX];   /* values of the layer's variables */
    float *g[LAYER_VARS_MAX];         /* their gradients (VAR_MOVING: the batch statistic, written by forward);
                                       * NULL: not needed (frozen, or not training) */
    const float *x[LAYER_INPUTS_MAX]; /* inputs */
    float *y;                         /* output; == x[0] for a view */
    float *dy;                        /* gradient of the output; backward may overwrite it */
    float *dx[LAYER_INPUTS_MAX];      /* gradients of the inputs, NULL: not needed; dx[0] may be dy where
                                       * op_row.in_place */
    float *scratch;                   /* op_row.scratch floats, kept from forward to backward */
    double *sums; /* op_row.sums doubles: of all batches of a group; NULL: the op computes with this batch alone */
    const struct op_ctx *joined; /* the other one of two nodes that are computed together (op_conv_pool.h), or NULL */
    /* the names of random draws (base/rng.h): */
    uint64_t seed;
    int64_t epoch, position; /* of the first example of the batch */
    uint32_t node;           /* index in the model */
};

/* For rows whose last activation can be left out for a fused loss (op_ctx.logits). */
enum op_tail {
    TAIL_NONE,   /* no activation in this op */
    TAIL_OUTPUT, /* y holds the logits then (Dense) */
    TAIL_INPUT   /* x[0] is the logits: the op itself is only the activation */
};

/* Writes the sums of this batch to sums, and returns how many there are; 0: none are needed. */
typedef size_t op_sum_fn(const struct op_ctx *c);

struct op_row {
    void (*forward)(const struct op_ctx *c);  /* NULL with view */
    void (*backward)(const struct op_ctx *c); /* NULL with view: dx[0] is dy */
    /* Floats of scratch for at most max_n examples; NULL: none. Passes SIZE_MAX on overflow. */
    size_t (*scratch)(const struct layer *l, size_t max_n, bool training);
    /* Nothing to compute, only another shape: y is x[0]. NULL: never. */
    bool (*view)(const struct layer *l, bool training);
    bool in_place; /* backward works with dx[0] == dy */
    enum op_tail tail;
    /* Of an op that in training may compute with all batches of a group: the most sums of one pass, 0 for a layer that
     * does not. Each is called before the pass itself, which then has the sums over the group. NULL: never. */
    size_t (*sums)(const struct layer *l);
    op_sum_fn *sum_forward, *sum_backward;
};

extern const struct op_row op_rows[LAYER_COUNT];

static inline size_t op_sums_of(const struct layer *l)
{
    return op_rows[l->id].sums != NULL ? op_rows[l->id].sums(l) : 0;
}

/* For rows: the first input seen as (rows, channels), channels being the last axis. */
static inline size_t op_channels(const struct op_ctx *c)
{
    return (size_t)layer_channels(c->l);
}
static inline size_t op_rows_of(const struct op_ctx *c)
{
    return c->n * shape_elements(&c->l->in[0]) / op_channels(c);
}
/* Elements of the first input of all examples. */
static inline size_t op_elements(const struct op_ctx *c)
{
    return c->n * shape_elements(&c->l->in[0]);
}

#endif
