/* model_graph - a model as Keras's documents have it: inputs, layers and nested models, and the calls that connect
 * them. A layer or a nested model may be called several times (shared layers). model_read.c expands the graphs to the
 * nodes of struct model, which compute; Keras's JSON, the summary and the weight files are written from the graphs.
 */
#ifndef TRAINYARD_NN_MODEL_GRAPH_H
#define TRAINYARD_NN_MODEL_GRAPH_H

#include "codec/node.h"
#include "tensor/tensor.h"

enum graph_item_kind { ITEM_INPUT, ITEM_LAYER, ITEM_MODEL };

struct graph_item {
    enum graph_item_kind kind;
    /* Place in graph.inputs, model.layers or model.graphs; SIZE_MAX: not read yet. */
    size_t index;
    size_t place;         /* in the document's list of layers */
    size_t first, ncalls; /* its calls; an input has one, without tensors */
};

struct graph_tensor { /* an output of a call: several only of a nested model */
    size_t call, output;
    float padding; /* of a mask: the number that is padding in the tensor */
};

struct graph_call {
    size_t item;
    size_t first, n;      /* its tensors are graph.tensors[first], ... */
    size_t masks;         /* so many more are those that its mask is made of, as the document says */
    struct shape *shapes; /* of its outputs, when the graph is called for the first time */
};

struct graph_input {
    char *name;
    struct shape shape;  /* of one example; -1: an axis of any size */
    bool known;          /* false: any shape */
    const char *integer; /* its dtype, when that is one of integers; else NULL */
};

struct model_graph {
    char *name, *scope; /* scope: of the names of its layers, "" or "encoder/" */
    bool sequential, frozen;
    struct graph_item *items; /* in the order of the document */
    size_t nitems;
    size_t hidden;            /* 1: items[0] is the input of a chain whose document has no InputLayer */
    struct graph_call *calls; /* in the order of the items */
    size_t *order;            /* the calls, each after those that make its tensors */
    size_t ncalls;
    struct graph_tensor *tensors, *outputs; /* outputs: of the model */
    size_t ntensors, noutputs;
    struct graph_input *inputs; /* in the order of the model's arguments */
    size_t ninputs;
};

/* config of Model(inputs, outputs): layers with inbound_nodes, input_layers, output_layers. Sets items, calls, order,
 * tensors and outputs; the names and shapes of the inputs are left to the caller, and so are `index` of layers and
 * models. Layers that are in order in the document keep that order. A placed error for cycles, layers without a path
 * to an output, and calls with arguments that change what is computed. Linear in the size of the document. */
MUST_USE int graph_read_functional(const struct node *config, struct model_graph *ret, struct err *e);
/* The list of layers of a Sequential model. */
void graph_read_chain(const struct node *layers, struct model_graph *ret);
/* Where an item and a call are written. */
struct node graph_item_place(const struct model_graph *g, const struct node *layers, size_t item);
struct node graph_call_place(const struct model_graph *g, const struct node *layers, size_t call);
/* One input, and every layer is called once, with one tensor: what the call before it makes. */
bool graph_is_chain(const struct model_graph *g);
bool graph_is_model_class(const char *class_name);
enum graph_item_kind graph_kind_of(const struct node *layer);
void model_graph_fini(struct model_graph *g);
DEFINE_AUTO_FINI(model_graph, model_graph_fini);

#endif
