/* comparable_spec - the specs of two jobs in one form, whatever the form in which each was written and with all
 * defaults, so that rerun_compare() finds what differs and names it as the user wrote it:
 * "model.layers[1].Dense.units", "compile.optimizer.Adam.learning_rate". Pure.
 *
 * A model with `layers` is compared as such, without an InputLayer that only the other form has; any other model as its
 * Keras JSON. A layer, an optimizer or a loss is {Class: {arguments}}, or the name of its class alone where the classes
 * of the two jobs differ. */
#ifndef TRAINYARD_CHIEF_COMPARABLE_SPEC_H
#define TRAINYARD_CHIEF_COMPARABLE_SPEC_H

#include "codec/json.h"
#include "nn/model.h"

struct comparable { /* borrowed */
    const json_t *doc;
    const struct model *model;
};
/* New references. Names are those of `now`. */
void comparable_specs(const struct comparable *was, const struct comparable *now, json_t **ret_was, json_t **ret_now);

#endif
