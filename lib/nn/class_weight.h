/* class_weight - Keras's class_weight: a training example counts with the weight of its class.
 *
 * Class numbers are those of a sparse loss; with a categorical loss the place of the largest label (the first one);
 * with an output of one number the label, rounded: 0 or 1. A class that is not named has weight 1. Weights go into the
 * loss of training and compile.weightedMetrics, never into an evaluation. Immutable, shared by threads.
 */
#ifndef TRAINYARD_NN_CLASS_WEIGHT_H
#define TRAINYARD_NN_CLASS_WEIGHT_H

#include "nn/model.h"
#include "tensor/batch.h"

struct class_weights;

/* n: the map of spec.fit.classWeight, class number -> weight; absent: none (*ret NULL). A fault is a placed ERR_INPUT.
 */
MUST_USE int class_weights_parse(const struct node *n, const struct model *m, struct class_weights **ret,
                                 struct err *e);
void class_weights_free(struct class_weights *c);
DEFINE_AUTO(class_weights, class_weights_free);
/* Only checks, and allocates no memory. m NULL: the model is not known, and checks that depend on it are left out. */
MUST_USE int class_weights_check(const struct node *n, const struct model *m, struct err *e);

/* ret[i], i < b->n: the weight of example i, times the one it has in b. */
void class_weights_of(const struct class_weights *c, const struct batch *b, float *ret);

#endif
