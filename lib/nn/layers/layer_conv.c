/* Convolutions: kernels that slide over the positions, a bias and an activation. */
#include "base/str.h"
#include "nn/layers/layer_rows.h"

struct conv { /* layer.own */
    struct window window;
    struct parts parts;
};

enum { SEPARABLE_DEPTHWISE_PART, SEPARABLE_POINTWISE_PART, SEPARABLE_BIAS_PART };

static const struct part CONV_PARTS[] = {
    [KERNEL_PART] = { "kernel", NULL, "glorot_uniform", false }, [BIAS_PART] = { "bias", NULL, "zeros", false }
};
static const struct part DEPTHWISE_PARTS[] = {
    [KERNEL_PART] = { "kernel", "depthwise", "glorot_uniform", false }, [BIAS_PART] = { "bias", NULL, "zeros", false }
};
static const struct part SEPARABLE_PARTS[] = {
    [SEPARABLE_DEPTHWISE_PART] = { "depthwise_kernel", "depthwise", "glorot_uniform", false },
    [SEPARABLE_POINTWISE_PART] = { "pointwise_kernel", "pointwise", "glorot_uniform", false },
    [SEPARABLE_BIAS_PART] = { "bias", NULL, "zeros", false }
};

/* What all have: windows, an activation and the parts `rows`. */
static int read_conv(struct layer *l, const struct node *config, int axes, const struct part *rows, int n,
                     struct err *e)
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
    if (steps && gaps)
        return node_error(&dilation, e, "goes only with strides of 1, as in Keras");
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
    channels_last_config(l, config);
    activated_config(l, config);
    parts_config(&own->parts, config);
}

/* ---- Conv1D, Conv2D ---- */

int conv1d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_conv(l, config, 1, CONV_PARTS, COUNT_OF(CONV_PARTS), e);
}

int conv2d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_conv(l, config, 2, CONV_PARTS, COUNT_OF(CONV_PARTS), e);
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

/* ---- DepthwiseConv1D, DepthwiseConv2D ---- */

int depthwise_conv1d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_conv(l, config, 1, DEPTHWISE_PARTS, COUNT_OF(DEPTHWISE_PARTS), e);
}

int depthwise_conv2d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_conv(l, config, 2, DEPTHWISE_PARTS, COUNT_OF(DEPTHWISE_PARTS), e);
}

/* The kernels keep depth_multiplier values for each value of an example: as many as an output may have. */
static int check_copies(const struct layer *l, int64_t multiplier, const struct node *at, struct err *e)
{
    struct shape s = l->in[0];
    char text[128];
    size_t count;
    s.dim[s.rank - 1] = layer_channels(l) * multiplier;
    if (shape_count(&s, &count, NULL) < 0 || count > INT32_MAX)
        return node_error(at, e, "'%s' needs values of shape %s, which is too large: make depth_multiplier smaller",
                          l->name, shape_text(&s, text));
    return 0;
}

int depthwise_conv_shape(struct layer *l, const struct node *at, struct err *e)
{
    int64_t multiplier = (int64_t)l->arg[DEPTHWISE_MULTIPLIER];
    if (window_shape(l, layer_channels(l) * multiplier, at, e) < 0)
        return -1;
    return check_copies(l, multiplier, at, e);
}

void depthwise_conv_variables(struct layer *l)
{
    const struct conv *own = l->own;
    int64_t multiplier = (int64_t)l->arg[DEPTHWISE_MULTIPLIER];
    parts_add(l, &own->parts, KERNEL_PART, kernel_shape(&own->window, layer_channels(l), multiplier));
    add_bias(l, own, BIAS_PART);
}

/* ---- SeparableConv1D, SeparableConv2D ---- */

/* Keras 2 writes a kernel_initializer that it does not use. */
static int separable_read(struct layer *l, const struct node *config, int axes, struct err *e)
{
    struct node kernel = node_get(config, "kernel_initializer");
    struct initializer unused;
    if (initializer_parse(&kernel, "glorot_uniform", &unused, e) < 0)
        return -1;
    if (!str_eq(unused.class_name, "GlorotUniform"))
        return node_error(&kernel, e, "is not used: set depthwise_initializer and pointwise_initializer");
    return read_conv(l, config, axes, SEPARABLE_PARTS, COUNT_OF(SEPARABLE_PARTS), e);
}

int separable_conv1d_read(struct layer *l, const struct node *config, struct err *e)
{
    return separable_read(l, config, 1, e);
}

int separable_conv2d_read(struct layer *l, const struct node *config, struct err *e)
{
    return separable_read(l, config, 2, e);
}

int separable_conv_shape(struct layer *l, const struct node *at, struct err *e)
{
    int64_t multiplier = (int64_t)l->arg[SEPARABLE_MULTIPLIER];
    return conv_shape(l, at, e) < 0 ? -1 : check_copies(l, multiplier, at, e);
}

void separable_conv_variables(struct layer *l)
{
    const struct conv *own = l->own;
    int64_t multiplier = (int64_t)l->arg[SEPARABLE_MULTIPLIER], between = layer_channels(l) * multiplier;
    struct window point = { .axes = own->window.axes, .size = { 1, 1 } };
    parts_add(l, &own->parts, SEPARABLE_DEPTHWISE_PART, kernel_shape(&own->window, layer_channels(l), multiplier));
    parts_add(l, &own->parts, SEPARABLE_POINTWISE_PART, kernel_shape(&point, between, (int64_t)l->arg[CONV_FILTERS]));
    add_bias(l, own, SEPARABLE_BIAS_PART);
}
