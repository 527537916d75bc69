/* Pooling: the largest value or the mean of each window, or of all positions, channel by channel. */
#include "nn/layers/layer_rows.h"

static int read_pool(struct layer *l, const struct node *config, int axes, struct err *e)
{
    struct window *w = l->own = xcalloc(1, sizeof(*w));
    static const int64_t TWO[WINDOW_AXES] = { 2, 2 };
    *w = (struct window){ .axes = axes, .dilation = { 1, 1 }, .padding = (enum window_padding)l->arg[POOL_PADDING] };
    if (window_check_format(config, e) < 0 || window_read_sizes(l, config, "pool_size", axes, TWO, w->size, e) < 0)
        return -1;
    return window_read_sizes(l, config, "strides", axes, w->size, w->stride, e);
}

int pool1d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_pool(l, config, 1, e);
}

int pool2d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_pool(l, config, 2, e);
}

int pool_shape(struct layer *l, const struct node *at, struct err *e)
{
    return window_shape(l, layer_channels(l), at, e);
}

void pool_config(const struct layer *l, json_t *config)
{
    const struct window *w = l->own;
    json_object_set_new(config, "pool_size", window_sizes_json(w, w->size));
    json_object_set_new(config, "strides", window_sizes_json(w, w->stride));
    channels_last_config(l, config);
}

static int global_shape(struct layer *l, int axes, const struct node *at, struct err *e)
{
    if (window_check_input(l, axes, at, e) < 0)
        return -1;
    l->out = shape_of(1, (int64_t[]){ layer_channels(l) });
    if (l->arg[GLOBAL_POOL_KEEPDIMS] == 0)
        return 0;
    l->out = l->in[0];
    for (int i = 0; i < axes; i++)
        l->out.dim[i] = 1;
    return 0;
}

int global_pool1d_shape(struct layer *l, const struct node *at, struct err *e)
{
    return global_shape(l, 1, at, e);
}

int global_pool2d_shape(struct layer *l, const struct node *at, struct err *e)
{
    return global_shape(l, 2, at, e);
}
