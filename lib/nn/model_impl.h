/* model_impl - the inside of struct model, for lib/nn only. */
#ifndef TRAINYARD_NN_MODEL_IMPL_H
#define TRAINYARD_NN_MODEL_IMPL_H

#include "job/job.h"
#include "nn/layers/layer.h"
#include "nn/losses/loss.h"
#include "nn/model.h"
#include "nn/model_graph.h"

enum { VARIABLE_ALIGN = 16 };

#define TENSOR_NONE SIZE_MAX

struct model_var { /* beside the public struct variable */
    struct variable v;
    char *name;                  /* v.name */
    const struct var_spec *spec; /* in its layer */
};

struct mask_source { /* a tensor, and the number that is padding in it */
    size_t tensor;
    float padding;
};

/* One call of a layer. The first tensors are the inputs of the model, then the output of each node. */
struct model_node {
    size_t layer;
    /* The layer with the shapes of this call, when the layer was called before: a copy that owns nothing. NULL: the
     * first call, whose shapes the layer has. */
    struct layer *again;
    /* Tensors, of nodes before this one. One more than the layer takes is the mask, and twice as many are the masks of
     * each (model_mask.c). */
    size_t in[LAYER_INPUTS_MAX];
    size_t nin;
    struct mask_source masks[LAYER_INPUTS_MAX];
    size_t nmasks; /* that the mask is made of, as the document says; 0: it says nothing */
    bool last;     /* the layer is not called again */
};

enum mask_kind {
    MASK_ONES,   /* no padding: beside others that are joined */
    MASK_EITHER, /* where one of several masks is; their shapes are aligned from the last axis */
    MASK_UNLIKE, /* in[0] is a tensor; its rows whose numbers all are `padding` are padding */
    MASK_JOINED  /* of tensors that Concatenate joins along that axis */
};
struct model_mask { /* a mask that is computed, of zeros and ones */
    enum mask_kind kind;
    struct shape shape;               /* of one example */
    size_t in[LAYER_INPUTS_MAX], nin; /* masks: tensors of numbers, or computed before this one */
    int axis;
    float padding;
    size_t ready; /* it can be computed when so many nodes are */
};

/* An output, and how it is trained. */
struct model_head {
    struct named_shape out;
    char *name; /* out.name */
    size_t tensor;
    size_t mask;       /* the tensor whose zeros are padding, for loss and metrics; TENSOR_NONE: there is none */
    struct loss *loss; /* NULL without compile, as the metrics */
    double loss_weight;
    struct metric_list *metrics;
};

struct model_measure { /* the loss of the model or of a head, or a metric of a head */
    char *name;
    size_t head;
    int metric; /* -1: a loss */
};

struct model {
    struct model_graph **graphs; /* as the document has them; the first is the model, the others are nested in it */
    size_t ngraphs;
    struct named_shape *inputs;
    size_t ninputs;
    struct model_head *heads;
    size_t nheads;
    struct layer *layers; /* of all graphs, in the order of their first calls; InputLayers are not among them */
    size_t nlayers, cap;
    /* In topological order: a node's inputs are made by nodes before it. A Sequential model is a chain. */
    struct model_node *nodes;
    size_t nnodes, nodes_cap;
    /* Numbered as tensors, behind those of the nodes. A mask that is made of no others is the tensor of the numbers. */
    struct model_mask *masks;
    size_t nmasks;
    struct model_var *vars; /* trainable first */
    size_t nvars, size, trainable_size, params, trainable_params;
    struct optimizer *optimizer; /* NULL without compile */
    struct model_measure *measures;
    size_t nmeasures; /* 0 without compile */
};

/* The layer of a node, with the shapes of that call. */
static inline const struct layer *model_called(const struct model *m, size_t node)
{
    const struct model_node *n = &m->nodes[node];
    return n->again != NULL ? n->again : &m->layers[n->layer];
}
/* The tensor that a node makes. */
static inline size_t model_made(const struct model *m, size_t node)
{
    return m->ninputs + node;
}
static inline size_t model_tensors(const struct model *m)
{
    return m->ninputs + m->nnodes;
}
static inline const struct shape *model_tensor(const struct model *m, size_t tensor)
{
    if (tensor >= model_tensors(m))
        return &m->masks[tensor - model_tensors(m)].shape;
    return tensor < m->ninputs ? &m->inputs[tensor].shape : &model_called(m, tensor - m->ninputs)->out;
}
/* How many inputs of nodes and masks each tensor or mask is. New. */
size_t *model_readers(const struct model *m);

/* The layers can be written as a Sequential model: graph_is_chain(), and none of them joins tensors. */
bool model_is_chain(const struct model *m);
/* The name of an input, a layer or a nested model. */
const char *model_item_name(const struct model *m, const struct model_graph *g, size_t item);

/* "(None, 28, 28)", with the axis of the batch; xmalloc'ed. */
char *model_shape_text(const struct shape *s);

/* What a file of Keras says about optimizer, losses and metrics: the arguments of its compile(). */
struct keras_compile {
    struct node config; /* v NULL: nothing */
    json_t *doc;        /* owned: what config points into; NULL: into the manifest */
    struct source *source;
};
void keras_compile_fini(struct keras_compile *c);
DEFINE_AUTO_FINI(keras_compile, keras_compile_fini);

/* model_read.c: fills graphs, input, layers and nodes from any of the forms of spec.model; shapes are checked, the
 * variables of each layer listed in it. `ret` must be empty. */
MUST_USE int model_read(struct model *m, const struct node *n, const char *base_dir, struct keras_compile *ret,
                        struct err *e);
/* model_compile.c: optimizer, losses, metrics and measures from spec.compile, and where that is silent from `file`, v
 * NULL: there is none. with_output false: the outputs are not known, and only what does not need them is checked. */
MUST_USE int model_compile(struct model *m, const struct node *n, const struct node *file, bool with_output,
                           struct err *e);
/* Losses, metrics and loss weights as Keras's compile() takes them. New reference. */
json_t *model_compile_json(const struct model *m);

/* Only the names and arguments of the layers. */
MUST_USE int model_check_layers(struct model *m, const struct node *n, struct err *e);

/* input_shape.c: the shape of one example from Keras's several spellings of it. */
/* A list of positive numbers, -1 for an axis that is null. With batch its first item is the size of a batch, which does
 * not count. */
MUST_USE int input_shape_read(const struct node *n, bool batch, struct shape *ret, struct err *e);
/* From the config of a layer of that class: batch_shape, batch_input_shape, input_shape, shape or input_dim.
 * *ret_found: whether one of them was present. */
MUST_USE int input_shape_of_layer(const char *class_name, const struct node *config, bool *ret_found, struct shape *ret,
                                  struct err *e);

#endif
