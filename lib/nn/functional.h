/* functional - Keras's functional models: the input tensors of each layer, in an order in which all of them are known.
 * One input, one output, and each layer called once; tensors may go to several layers and be joined again.
 */
#ifndef TRAINYARD_NN_FUNCTIONAL_H
#define TRAINYARD_NN_FUNCTIONAL_H

#include "codec/node.h"

struct functional_call {
    size_t item;        /* in config.layers */
    size_t first, nin;  /* its tensors are in[first], ..., of struct functional */
    struct node inputs; /* where they are written, for errors */
};

struct functional {
    struct functional_call *calls; /* calls[0] is the InputLayer, the last one makes the output */
    size_t *in;                    /* tensor = index of the call that makes it */
    size_t n;
};

/* Layers that are in order in the document keep that order. A placed error for shared layers, several inputs or
 * outputs, cycles, layers without a path to the output, and calls with arguments that change what is computed.
 * Linear in the size of the document. */
MUST_USE int functional_read(const struct node *config, struct functional *ret, struct err *e);
void functional_fini(struct functional *f);
DEFINE_AUTO_FINI(functional, functional_fini);

#endif
