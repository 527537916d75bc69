/* regularizer - Keras's weight penalties: L1 (l1 0.01), L2 (l2 0.01), L1L2 (0, 0). A plain value.
 *   penalty = l1 * sum|w| + l2 * sum w^2
 * OrthogonalRegularizer is refused with a message.
 */
#ifndef TRAINYARD_NN_REGULARIZER_H
#define TRAINYARD_NN_REGULARIZER_H

#include "codec/node.h"

struct regularizer { /* zero: none */
    float l1, l2;
    const char *class_name; /* Keras's, static: "L1", "L2", "L1L2"; NULL: none */
};

/* Absent or null: none. A name ("l2", "L2") or any map node_named() accepts. */
MUST_USE int regularizer_parse(const struct node *n, struct regularizer *ret, struct err *e);
double regularizer_loss(const struct regularizer *r, const float *w, size_t n);
/* g += d penalty / dw; the derivative of |w| at 0 is 0. */
void regularizer_gradient(const struct regularizer *r, const float *w, float *g, size_t n);
/* null, or {"module": "keras.regularizers", ...}; new reference. */
json_t *regularizer_json(const struct regularizer *r);

#endif
