/* functional - Keras's functional models: the order of their layers. Only a chain can be trained yet: each layer is
 * called once, with the output of the one before it. Such a model is a Sequential one in another notation.
 */
#ifndef TRAINYARD_NN_FUNCTIONAL_H
#define TRAINYARD_NN_FUNCTIONAL_H

#include "codec/node.h"

/* The indexes in config.layers from the input to the output; free(). A placed error for branches, shared layers,
 * several inputs or outputs, and calls with arguments that change what is computed. Linear in the size of the document.
 */
MUST_USE int functional_chain(const struct node *config, size_t **ret_order, size_t *ret_n, struct err *e);

#endif
