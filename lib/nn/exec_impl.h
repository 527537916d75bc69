/* exec_impl - the inside of exec, for lib/nn's own use: exec.c (buffers, forward, losses), exec_train.c (the training
 * step) and adapt.c. */
#ifndef TRAINYARD_NN_EXEC_IMPL_H
#define TRAINYARD_NN_EXEC_IMPL_H

#include "nn/buffer_plan.h"
#include "nn/exec.h"
#include "nn/model_impl.h"
#include "nn/ops/op.h"

struct node_run { /* one node in one mode */
    struct op_ctx ctx;
    const struct op_row *op;
    bool passes_forward, passes_backward; /* the input is the output; the gradient of the output is that of the input */
    bool fused;                           /* the loss computes its activation */
    float *sum[LAYER_INPUTS_MAX];         /* where ctx.dx is added to; NULL: dx is the gradient */
};

struct pass { /* training or inference */
    struct buffer_plan plan;
    struct node_run *nodes;
    float **inputs;     /* of each: floats made of bytes */
    float **first_grad; /* of each output: its gradient of the loss */
};

struct training { /* the training step that goes on */
    struct exec_step step;
    bool backward;  /* or forward */
    size_t next;    /* the node to compute; backward: the one before it */
    bool summed;    /* its sums are those of the group */
    size_t pending; /* backward: gradients of the variables from here on are complete */
    double loss;
};

struct exec {
    const struct model *m;
    size_t max_batch;
    uint64_t seed;
    struct pass pass[2]; /* [training] */
    struct training training;
    const float **value; /* of each tensor, in the pass that runs, and of each mask */
    float *memory;       /* labels, weights, and the buffers of a pass */
    float *labels, *weights;
    float *masks; /* those that are computed */
    float *again; /* gradients and statistics of a call of a layer that has others: the layer's variables in turn */
    double *sums; /* of the node that waits for those of its group; NULL: no node has any */
};

/* The tensor of that number (struct model_node) in inference mode; valid until the next call. */
const float *exec_forward(struct exec *x, const float *params, const struct batch *b, size_t tensor);

/* Returns the first node to compute. */
size_t exec_begin_forward(struct exec *x, bool training, const struct batch *b);
/* Inputs and variables of the node, before anything of it is computed. grads NULL: inference. */
void exec_bind_node(struct exec *x, size_t node, const float *params, float *grads, const struct batch *b);
/* exec_mask.c: gives the model's masks their memory; computes those that are ready when so many nodes are, for n
 * examples. */
MUST_USE int exec_make_masks(struct exec *x, struct err *e);
void exec_masks(struct exec *x, size_t first, size_t last, size_t n);
void exec_forward_node(struct exec *x, size_t node, bool training, bool logits);
/* The loss that Keras prints: of all outputs by their weights, and regularisation. In training also its gradients. */
double exec_loss(struct exec *x, bool training, const float *params, const struct batch *b, double *acc);

#endif
