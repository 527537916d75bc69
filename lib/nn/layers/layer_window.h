/* layer_window - the windows that convolutions and pooling slide over an image (height, width, channels) or a sequence
 * (steps, channels): their arguments, and where they lie. A sequence is an image of height 1. Pure.
 */
#ifndef TRAINYARD_NN_LAYERS_LAYER_WINDOW_H
#define TRAINYARD_NN_LAYERS_LAYER_WINDOW_H

#include "nn/layers/layer.h"

enum window_padding { WINDOW_VALID, WINDOW_SAME, WINDOW_CAUSAL }; /* the order of WINDOW_PADDINGS */
extern const char *const WINDOW_PADDINGS[];                       /* "valid", "same", NULL */
extern const char *const WINDOW_PADDINGS_OF_STEPS[];              /* "valid", "same", "causal", NULL */

enum { WINDOW_HEIGHT, WINDOW_WIDTH, WINDOW_AXES };

struct window { /* first member of layer.own of a layer with windows */
    int axes;   /* 1: a sequence, 2: an image */
    int64_t size[WINDOW_AXES], stride[WINDOW_AXES], dilation[WINDOW_AXES];
    enum window_padding padding;
};

/* One axis of a layer with its shapes. Window o covers the positions o * stride - before + i * dilation, i < size, of
 * which those outside of 0 .. in - 1 are padding. */
struct window_axis {
    size_t in, out, size, stride, dilation, before;
};
struct window_layout {
    struct window_axis axis[WINDOW_AXES];
    size_t channels, out_channels;
};

static inline size_t divide_up(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

/* Reads the arguments of that name as one number, or one for each axis; absent: `fallback` (NULL: 1). */
MUST_USE int window_read_sizes(const struct layer *l, const struct node *config, const char *name, int axes,
                               const int64_t *fallback, int64_t ret[WINDOW_AXES], struct err *e);
/* data_format: only channels_last. */
MUST_USE int window_check_format(const struct node *config, struct err *e);
/* ERR_INPUT at `at` unless the input has `axes` axes and channels. */
MUST_USE int window_check_input(const struct layer *l, int axes, const struct node *at, struct err *e);
/* Sets l->out: as many positions as there are windows, and so many channels. */
MUST_USE int window_shape(struct layer *l, int64_t channels, const struct node *at, struct err *e);
/* Likewise of the transpose: as many positions as the input of that a convolution with these windows would have whose
 * output is l->in[0]. */
MUST_USE int window_transposed_shape(struct layer *l, int64_t channels, const struct node *at, struct err *e);
struct window_layout window_layout_between(const struct window *w, const struct shape *in, const struct shape *out);
struct window_layout window_layout_of(const struct layer *l); /* between its input and its output */
/* The positions i of window `o` that are not padding: *ret_first <= i < *ret_end. */
void window_inside(const struct window_axis *a, size_t o, size_t *ret_first, size_t *ret_end);
/* A size of each axis as Keras writes it: [3, 3]; new reference. */
json_t *window_sizes_json(const struct window *w, const int64_t sizes[WINDOW_AXES]);

#endif
