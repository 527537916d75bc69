/* model_impl - the inside of struct model, for lib/nn only. */
#ifndef TRAINYARD_NN_MODEL_IMPL_H
#define TRAINYARD_NN_MODEL_IMPL_H

#include "job/job.h"
#include "nn/layers/layer.h"
#include "nn/losses/loss.h"
#include "nn/model.h"

enum { VARIABLE_ALIGN = 16 };

struct model_var { /* beside the public struct variable */
    struct variable v;
    char *name;                  /* v.name */
    const struct var_spec *spec; /* in its layer */
};

/* One call of a layer. Tensor 0 is the input of the model, tensor i + 1 the output of node i. */
struct model_node {
    size_t layer;
    size_t in[LAYER_INPUTS_MAX]; /* tensors, of nodes before this one */
    size_t nin;
};

struct model {
    char *name;
    char *input_name; /* of the InputLayer, for Keras's JSON */
    struct shape input, output;
    struct layer *layers; /* InputLayer is not among them */
    size_t nlayers, cap;
    /* In topological order: a node's inputs are made by nodes before it, and the last node makes the output. A
     * Sequential model is a chain. Each layer has one node; layers are in the order of their nodes. */
    struct model_node *nodes;
    size_t nnodes;
    struct model_var *vars; /* trainable first */
    size_t nvars, size, trainable_size, params, trainable_params;
    struct optimizer *optimizer; /* these three NULL without compile */
    struct loss *loss;
    struct metric_list *metrics;
};

static inline const struct shape *model_tensor(const struct model *m, size_t tensor)
{
    return tensor == 0 ? &m->input : &m->layers[m->nodes[tensor - 1].layer].out;
}
/* Every node reads the tensor made just before it, and nothing else. */
bool model_is_chain(const struct model *m);

/* What a file of Keras says about optimizer, loss and metrics: the arguments of its compile(). */
struct keras_compile {
    struct node config; /* v NULL: nothing */
    json_t *doc;        /* owned: what config points into; NULL: into the manifest */
    struct source *source;
};
void keras_compile_fini(struct keras_compile *c);
DEFINE_AUTO_FINI(keras_compile, keras_compile_fini);

/* model_read.c: fills name, input and layers from any of the forms of spec.model; shapes are checked, the
 * variables of each layer listed in it. `ret` must be empty. */
MUST_USE int model_read(struct model *m, const struct node *n, const char *base_dir, struct keras_compile *ret,
                        struct err *e);
/* Only the names and arguments of the layers. */
MUST_USE int model_check_layers(struct model *m, const struct node *n, struct err *e);

/* input_shape.c: the shape of one example from Keras's several spellings of it. */
/* A list of positive numbers, -1 for an axis that is null. With batch its first item is the size of a batch, which does
 * not count. */
MUST_USE int input_shape_read(const struct node *n, bool batch, struct shape *ret, struct err *e);
/* From a layer's config: batch_shape, batch_input_shape, input_shape, shape or input_dim. *ret_found: whether one of
 * them was present. */
MUST_USE int input_shape_of_layer(const struct node *config, bool *ret_found, struct shape *ret, struct err *e);

#endif
