/* Conv1D and Conv2D: a kernel that slides over the positions, a bias and an activation. */
#include "nn/layers/layer_rows.h"

struct conv { /* layer.own */
    struct window window;
    struct weighted weighted;
};

static int read_conv(struct layer *l, const struct node *config, int axes, struct err *e)
{
    struct conv *own = l->own = xcalloc(1, sizeof(*own));
    struct window *w = &own->window;
    struct node dilation = node_get(config, "dilation_rate");
    w->axes = axes;
    w->padding = (enum window_padding)l->arg[CONV_PADDING];
    if (window_read_sizes(l, config, "kernel_size", axes, NULL, w->size, e) < 0 ||
        window_read_sizes(l, config, "strides", axes, NULL, w->stride, e) < 0 ||
        window_read_sizes(l, config, "dilation_rate", axes, NULL, w->dilation, e) < 0 ||
        window_check_format(config, e) < 0 || weighted_read(l, config, &own->weighted, e) < 0)
        return -1;
    bool steps = w->stride[WINDOW_HEIGHT] > 1 || w->stride[WINDOW_WIDTH] > 1;
    bool gaps = w->dilation[WINDOW_HEIGHT] > 1 || w->dilation[WINDOW_WIDTH] > 1;
    return steps && gaps ? node_error(&dilation, e, "goes only with strides of 1, as in Keras") : 0;
}

int conv1d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_conv(l, config, 1, e);
}

int conv2d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_conv(l, config, 2, e);
}

int conv_shape(struct layer *l, const struct node *at, struct err *e)
{
    return window_shape(l, (int64_t)l->arg[CONV_FILTERS], at, e);
}

void conv_variables(struct layer *l)
{
    const struct conv *own = l->own;
    const struct window *w = &own->window;
    struct shape kernel = { 0 };
    for (int axis = WINDOW_AXES - w->axes; axis < WINDOW_AXES; axis++)
        kernel.dim[kernel.rank++] = w->size[axis];
    kernel.dim[kernel.rank++] = layer_channels(l);
    kernel.dim[kernel.rank++] = (int64_t)l->arg[CONV_FILTERS];
    weighted_variables(l, &own->weighted, kernel, l->arg[CONV_USE_BIAS] != 0);
}

void conv_config(const struct layer *l, json_t *config)
{
    const struct conv *own = l->own;
    json_object_set_new(config, "kernel_size", window_sizes_json(&own->window, own->window.size));
    json_object_set_new(config, "strides", window_sizes_json(&own->window, own->window.stride));
    json_object_set_new(config, "dilation_rate", window_sizes_json(&own->window, own->window.dilation));
    json_object_set_new(config, "data_format", json_string("channels_last"));
    json_object_set_new(config, "groups", json_integer(1));
    weighted_config(l, &own->weighted, config);
}
