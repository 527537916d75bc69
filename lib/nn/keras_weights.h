/* keras_weights - where Keras keeps a model's variables in model.weights.h5 (keras/src/saving/saving_lib.py). Each
 * layer has a group, named after its class and a number ("layers/dense_1"), never after the layer. The group has
 * datasets vars/0, vars/1, ...
 */
#ifndef TRAINYARD_NN_KERAS_WEIGHTS_H
#define TRAINYARD_NN_KERAS_WEIGHTS_H

#include "nn/model.h"

enum { KERAS_LAYER_VARS = 8 };

struct keras_layer {
    const char *name;                  /* the layer's own; borrowed from the model */
    char *path;                        /* its name after those of the nested models around it: "encoder/dense" */
    char *group;                       /* "layers/dense_1"; in a nested model "layers/sequential/layers/dense_1" */
    size_t variable[KERAS_LAYER_VARS]; /* places in the model of vars/0, vars/1, ... */
    int nvariables;
    bool counts; /* after them an integer that is never read: how often Normalization was adapted */
};
struct keras_weights {
    struct keras_layer *layers; /* all of the model, also those without variables */
    size_t n;
};

struct keras_weights keras_weights_of(const struct model *m);
void keras_weights_fini(struct keras_weights *w);
DEFINE_AUTO_FINI(keras_weights, keras_weights_fini);

#endif
