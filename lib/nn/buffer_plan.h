/* buffer_plan - the places of the activations and gradients of a pass in one block of memory: buffers whose lifetimes
 * do not overlap share a place. It only plans, from the nodes of the model; exec allocates the memory.
 *
 * Steps of a pass over N nodes: node i computes forward in step i, the loss in step N, and node i backward in step 2N -
 * i.
 */
#ifndef TRAINYARD_NN_BUFFER_PLAN_H
#define TRAINYARD_NN_BUFFER_PLAN_H

#include "nn/model_impl.h"
#include "nn/ops/op.h"

#define BUFFER_NONE SIZE_MAX

struct buffer_life {
    size_t floats, first, last; /* steps, both included */
    bool gradient;
    size_t offset; /* floats, a multiple of VARIABLE_ALIGN */
};

/* Places buffers that are sorted by `first` and returns the total number of floats, SIZE_MAX when that is too large.
 * A buffer uses a free place that is large enough; else it may enlarge a free place of the same kind (gradients, or
 * all others). So a chain needs at most all its activations and twice its largest gradient. */
size_t buffer_lives_place(struct buffer_life *b, size_t n);

struct node_buffers {             /* indexes of buffers, or BUFFER_NONE */
    size_t y;                     /* NONE: a view, which has the memory of its input; or computed by the next node */
    size_t scratch;               /* NONE: the op needs none */
    size_t dy;                    /* gradient of the output, complete; NONE: the node has no backward */
    size_t dx[LAYER_INPUTS_MAX];  /* what backward writes (a view: is dy); NONE: not needed */
    size_t sum[LAYER_INPUTS_MAX]; /* where dx is added then; NONE: dx is the only or first gradient of its tensor */
};

struct buffer_plan {
    struct buffer_life *buffers;
    size_t n, floats; /* floats: in all, SIZE_MAX when they are too many */
    struct node_buffers *nodes;
    size_t *inputs;     /* of each input: floats made of bytes */
    size_t *first_grad; /* of each output: its gradient of the loss; NONE in inference */
    size_t *joined;     /* of each node: the other one of two that are computed together (op_conv_pool.h); NONE */
    size_t rescale;     /* the node that makes floats of bytes as they come, a Rescaling; NONE: there is none */
};

/* For at most max_n examples in a batch. */
void buffer_plan_init(struct buffer_plan *p, const struct model *m, size_t max_n, bool training);
void buffer_plan_fini(struct buffer_plan *p);

#endif
