/* layer_values - numbers that a layer keeps from its config: one for all, or one for each channel (entry of the last
 * axis), as of Rescaling's scale.
 */
#ifndef TRAINYARD_NN_LAYERS_LAYER_VALUES_H
#define TRAINYARD_NN_LAYERS_LAYER_VALUES_H

#include "codec/node.h"

struct values { /* n 0: none are given */
    double *v;
    size_t n;
};
enum { VALUES_ANY, VALUES_NOT_NEGATIVE };
/* A number, a list, or a list in a list; also as Keras 3 writes an array. Absent: n 0. */
MUST_USE int values_read(const struct node *n, int range, struct values *ret, struct err *e);
/* One value, or one for each channel. */
MUST_USE int values_fit(const struct values *v, const char *name, size_t channels, const struct node *at,
                        struct err *e);
/* null, or a list; `single`: a number when it is one. */
json_t *values_json(const struct values *given, bool single);
/* Value i of the last axis; one value counts for all. */
static inline float values_at(const struct values *v, size_t i)
{
    return (float)v->v[v->n > 1 ? i : 0];
}

#endif
