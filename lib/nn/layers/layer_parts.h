/* layer_parts - the variables of a layer that the user can initialise and regularise: kernel, bias, gamma, ... Part
 * NAME has the arguments NAME_initializer and NAME_regularizer.
 */
#ifndef TRAINYARD_NN_LAYERS_LAYER_PARTS_H
#define TRAINYARD_NN_LAYERS_LAYER_PARTS_H

#include "nn/layers/layer.h"

enum { PARTS_MAX = 4 };

struct part {
    const char *variable; /* its name */
    const char *argument; /* NAME, where it is not that of the variable; NULL: it is */
    const char *fallback; /* the initializer when none is given */
    bool state;           /* has no regularizer */
};

struct parts {
    const struct part *rows;
    int n;
    struct initializer init[PARTS_MAX];
    struct regularizer regularizer[PARTS_MAX];
};

MUST_USE int parts_read(const struct node *config, const struct part *rows, int n, struct parts *ret, struct err *e);
/* The variable of part i, trainable. */
void parts_add(struct layer *l, const struct parts *p, int i, struct shape shape);
void parts_config(const struct parts *p, json_t *config);

#endif
