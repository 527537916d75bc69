/* model_reading - the inside of model_read.c: what is known while a model is read. For lib/nn only. */
#ifndef TRAINYARD_NN_MODEL_READING_H
#define TRAINYARD_NN_MODEL_READING_H

#include "base/map.h"
#include "nn/model_impl.h"

struct reading { /* one model being read */
    struct model *m;
    struct node *layers; /* of each graph: its list in the document */
    size_t nested;       /* the number of models around the layer being read, without the outermost */
    const char *scope;   /* their names, as of model_graph.scope */
    bool frozen;         /* one of them is not trainable */
    bool has_input;
    struct node input_shape; /* of the manifest */
    bool open_input;         /* the file has axes of unknown size */
    struct map *names;       /* of layers: name; of their variables, where these differ: scope */
    struct map *numbered;    /* base of an automatic name -> the number to try next */
    bool unshaped;           /* the input is not known: each layer is checked by itself */
    bool failed;             /* shapes are no longer known; only checks of single layers continue (source_collect) */
    bool keras_2;            /* the document is of Keras 2 */
    struct keras_compile *compile;
};

/* The tensors that a layer is called with. */
struct layer_call {
    const size_t *in;
    size_t n;
    struct node at;                  /* where they are written */
    bool listed;                     /* in a functional model, where a layer may join several */
    const struct mask_source *masks; /* that its mask is made of, as the document says */
    size_t nmasks;
};

/* ---- model_layer.c ---- */

/* "dense", "dense_1", ...: the first that is free, as Keras counts; xmalloc'ed. */
char *reading_automatic_name(struct reading *r, const char *base);
/* The name in config, or an automatic one; xmalloc'ed. */
MUST_USE int reading_take_name(struct reading *r, const struct node *config, const char *base, char **ret,
                               struct err *e);
bool reading_is_good_name(const char *s);
MUST_USE int reading_check_dtype(const struct node *config, struct err *e);
/* The shape of an input of the model, from one of several places: they must agree. */
MUST_USE int reading_set_input(struct reading *r, size_t input, const struct node *at, const struct shape *s,
                               struct err *e);
/* Axes of unknown size fit all. */
bool reading_fits(const struct shape *known, const struct shape *s);
/* {"class_name": "InputLayer", "config": {...}} */
MUST_USE int reading_input_layer(struct reading *r, size_t input, const struct node *at, struct graph_input *ret,
                                 struct err *e);
/* Name and config of a layer: {"class_name", "config"}, {Dense: {...}} or Dense. */
MUST_USE int reading_layer_form(const struct node *at, const char **ret_name, struct node *ret_config, struct err *e);
/* Makes a layer, and the node of its first call. After a fault, or with unshaped, only its arguments are checked. */
MUST_USE int reading_new_layer(struct reading *r, const struct node *at, const struct layer_call *call, struct err *e);
/* A further call of a layer. */
MUST_USE int reading_call_again(struct reading *r, size_t layer, const struct node *at, const struct layer_call *call,
                                struct err *e);

/* ---- model_mask.c ---- */

/* Gives the nodes and outputs that leave padding out their masks: the numbers that are 0 where it is, or one that is
 * computed from several. Of the whole model. */
MUST_USE int reading_masks(struct model *m, const struct node *layers, struct err *e);

#endif
