/* layer_reference - docs/layers.md, written from the catalogs: layers, activations, initializers, regularizers,
 * losses, metrics, optimizers and schedules with their arguments and defaults. A unit test fails when the page is
 * not current; `make docs` updates it. */
#ifndef TRAINYARD_NN_LAYER_REFERENCE_H
#define TRAINYARD_NN_LAYER_REFERENCE_H

#include "base/buf.h"

void layer_reference_write(struct buf *out); /* Markdown */

#endif
