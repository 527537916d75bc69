/* window_runs - the positions that have the same place in their windows, for outputs side by side: the inner loops of
 * pooling and of depthwise convolutions. Pure.
 */
#ifndef TRAINYARD_NN_OPS_WINDOW_RUNS_H
#define TRAINYARD_NN_OPS_WINDOW_RUNS_H

#include "nn/layers/layer_window.h"

struct window_run {
    size_t place;   /* in the window: row * width + column */
    size_t x, step; /* the position of the first output; from one position to the next */
    size_t y, n;    /* the first output; how many */
};
typedef void window_run_fn(const struct window_run *run, void *user);

/* Calls fn for every place in the windows of each line of outputs: by rows, then by columns. Padding is left out. */
void window_runs(const struct window_layout *at, size_t examples, window_run_fn *fn, void *user);

#endif
