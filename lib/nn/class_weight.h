/* class_weight - Keras's class_weight: training examples count as much as their class does.
 *
 * Class numbers are those of a sparse loss; with a categorical loss the place of the largest label (the first one);
 * with an output of one number the label, rounded: 0 or 1. A class that is not named weighs 1. Weights go into the
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
/* Judges only, and takes no memory. m NULL: it is not known, and what depends on it is left out. */
MUST_USE int class_weights_check(const struct node *n, const struct model *m, struct err *e);

/* ret[i], i < b->n: the weight of example i, times the one it has in b. */
void class_weights_of(const struct class_weights *c, const struct batch *b, float *ret);

#endif
