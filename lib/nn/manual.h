/* manual - docs/layers.md, written from the catalogs: layers, activations, initializers, regularizers, losses,
 * metrics, optimizers and schedules with their arguments and defaults. A unit test fails when the page is not
 * current; `make docs` renews it. */
#ifndef TRAINYARD_NN_MANUAL_H
#define TRAINYARD_NN_MANUAL_H

#include "base/buf.h"

void nn_manual(struct buf *out); /* Markdown */

#endif
