/* batch - the examples of one training step from the data library: named, typed inputs and labels. A batch never owns
 * its memory.
 */
#ifndef TRAINYARD_TENSOR_BATCH_H
#define TRAINYARD_TENSOR_BATCH_H

#include "tensor/tensor.h"

enum { BATCH_TENSORS_MAX = 64 }; /* inputs of a batch, and as many labels */

struct batch {
    size_t n;                /* examples; the last batch of an epoch may be short */
    int64_t ordinal;         /* its name; -1 for evaluation */
    int64_t epoch, position; /* position of its first example within the epoch (names the random draws) */
    /* DT_FLOAT [n, features...], or DT_UINT8 (pixels): a quarter of the memory traffic */
    struct tensor x[BATCH_TENSORS_MAX];
    /* DT_INT32 [n] for integer labels, else DT_FLOAT [n, labels...] */
    struct tensor y[BATCH_TENSORS_MAX];
    const char *x_name[BATCH_TENSORS_MAX], *y_name[BATCH_TENSORS_MAX]; /* borrowed */
    size_t nx, ny;       /* x[0], y[0]: the only ones of most data; ny 0: without labels (y[0].data is NULL) */
    const float *weight; /* [n], of the examples; or NULL */
};

/* Makes *b a batch without tensors; what it held is not touched. */
void batch_clear(struct batch *b);
MUST_USE int batch_add_input(struct batch *b, const char *name, struct tensor t, struct err *e);
MUST_USE int batch_add_label(struct batch *b, const char *name, struct tensor t, struct err *e);

#endif
