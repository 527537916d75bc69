/* Convolutions: kernels that slide over the positions, a bias and an activation. */
#include "nn/layers/layer_rows.h"

struct conv { /* layer.own */
    struct window window;
    struct parts parts;
};

static const struct part CONV_PARTS[] = {
    [KERNEL_PART] = { "kernel", NULL, "glorot_uniform", false }, [BIAS_PART] = { "bias", NULL, "zeros", false }
};
/* What all have: windows, parts and an activation. */
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
        window_check_format(config, e) < 0 || activated_read(l, config, e) < 0)
        return -1;
    bool steps = w->stride[WINDOW_HEIGHT] > 1 || w->stride[WINDOW_WIDTH] > 1;
    bool gaps = w->dilation[WINDOW_HEIGHT] > 1 || w->dilation[WINDOW_WIDTH] > 1;
    return steps && gaps ? node_error(&dilation, e, "goes only with strides of 1, as in Keras") : 0;
}

static int read_parts(struct layer *l, const struct node *config, const struct part *rows, int n, struct err *e)
{
    struct conv *own = l->own;
    return parts_read(config, rows, n, &own->parts, e);
}

/* The sizes of the window, then `channels` and `filters`. */
static struct shape kernel_shape(const struct window *w, int64_t channels, int64_t filters)
{
    struct shape ret = { 0 };
    for (int axis = WINDOW_AXES - w->axes; axis < WINDOW_AXES; axis++)
        ret.dim[ret.rank++] = w->size[axis];
    ret.dim[ret.rank++] = channels;
    ret.dim[ret.rank++] = filters;
    return ret;
}

static void add_bias(struct layer *l, const struct conv *own, int part)
{
    int64_t filters = l->out.dim[own->window.axes];
    if (l->arg[CONV_USE_BIAS] != 0)
        parts_add(l, &own->parts, part, shape_of(1, &filters));
}

void conv_config(const struct layer *l, json_t *config)
{
    const struct conv *own = l->own;
    json_object_set_new(config, "kernel_size", window_sizes_json(&own->window, own->window.size));
    json_object_set_new(config, "strides", window_sizes_json(&own->window, own->window.stride));
    json_object_set_new(config, "dilation_rate", window_sizes_json(&own->window, own->window.dilation));
    json_object_set_new(config, "data_format", json_string("channels_last"));
    activated_config(l, config);
    parts_config(&own->parts, config);
}

/* ---- Conv1D, Conv2D ---- */

int conv1d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_conv(l, config, 1, e) < 0 ? -1 : read_parts(l, config, CONV_PARTS, COUNT_OF(CONV_PARTS), e);
}

int conv2d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_conv(l, config, 2, e) < 0 ? -1 : read_parts(l, config, CONV_PARTS, COUNT_OF(CONV_PARTS), e);
}

int conv_shape(struct layer *l, const struct node *at, struct err *e)
{
    return window_shape(l, (int64_t)l->arg[CONV_FILTERS], at, e);
}

void conv_variables(struct layer *l)
{
    const struct conv *own = l->own;
    int64_t filters = (int64_t)l->arg[CONV_FILTERS];
    parts_add(l, &own->parts, KERNEL_PART, kernel_shape(&own->window, layer_channels(l), filters));
    add_bias(l, own, BIAS_PART);
}

/* ---- Conv1DTranspose, Conv2DTranspose ---- */

int conv_transpose_shape(struct layer *l, const struct node *at, struct err *e)
{
    return window_transposed_shape(l, (int64_t)l->arg[CONV_FILTERS], at, e);
}

/* The kernel of the convolution that it is the transpose of. */
void conv_transpose_variables(struct layer *l)
{
    const struct conv *own = l->own;
    int64_t filters = (int64_t)l->arg[CONV_FILTERS];
    parts_add(l, &own->parts, KERNEL_PART, kernel_shape(&own->window, filters, layer_channels(l)));
    add_bias(l, own, BIAS_PART);
}
