/* Windows: how many there are, and where each begins. keras/src/ops/operation_utils.py, TensorFlow's "SAME". */
#include "nn/layers/layer_window.h"

#include <inttypes.h>

#include "base/str.h"

const char *const WINDOW_PADDINGS[] = { "valid", "same", NULL };
const char *const WINDOW_PADDINGS_OF_STEPS[] = { "valid", "same", "causal", NULL };

int window_read_sizes(const struct layer *l, const struct node *config, const char *name, int axes,
                      const int64_t *fallback, int64_t ret[WINDOW_AXES], struct err *e)
{
    struct arg_list given;
    if (arg_list_read(&l->row->k, name, config, &given, e) < 0)
        return -1;
    ret[WINDOW_HEIGHT] = 1;
    for (int i = 0; i < axes; i++) {
        int axis = WINDOW_AXES - axes + i;
        ret[axis] = given.n > 0 ? given.v[i] : fallback != NULL ? fallback[axis] : 1;
    }
    return 0;
}

int window_check_format(const struct node *config, struct err *e)
{
    struct node format = node_get(config, "data_format");
    if (node_present(&format) && !str_eq(json_string_value(format.v), "channels_last"))
        return node_error(&format, e, "only channels_last is supported");
    return 0;
}

int window_check_input(const struct layer *l, int axes, const struct node *at, struct err *e)
{
    const char *needed = axes == 1 ? "(steps, channels)" : "(height, width, channels)";
    struct shape cure = l->in[0];
    char is[128], with_channel[128];
    shape_text(&l->in[0], is);
    if (l->in[0].rank == axes + 1)
        return 0;
    if (l->in[0].rank != axes)
        return node_error(at, e, "%s '%s' needs an input of shape %s, not %s", l->row->k.names[0], l->name, needed, is);
    cure.dim[cure.rank++] = 1;
    return node_error(at, e, "%s '%s' needs an input of shape %s, not %s: a Reshape to %s gives it one channel",
                      l->row->k.names[0], l->name, needed, is, shape_text(&cure, with_channel));
}

/* What a window spans, with the gaps of its dilation. */
static int64_t span_of(const struct window *w, int axis)
{
    return (w->size[axis] - 1) * w->dilation[axis] + 1;
}

/* Sets l->out but for its positions. */
static int check_and_begin(struct layer *l, int64_t channels, const struct node *at, struct err *e)
{
    const struct window *w = l->own;
    if (window_check_input(l, w->axes, at, e) < 0)
        return -1;
    l->out = l->in[0];
    l->out.dim[w->axes] = channels;
    return 0;
}

int window_shape(struct layer *l, int64_t channels, const struct node *at, struct err *e)
{
    const struct window *w = l->own;
    if (check_and_begin(l, channels, at, e) < 0)
        return -1;
    for (int i = 0; i < w->axes; i++) {
        int axis = WINDOW_AXES - w->axes + i;
        int64_t n = l->in[0].dim[i], span = span_of(w, axis);
        if (w->padding == WINDOW_VALID && n < span)
            return node_error(at, e,
                              "%s '%s' has windows of %" PRId64 " positions, and its input has %" PRId64
                              ": make the window smaller, or set padding: same",
                              l->row->k.names[0], l->name, span, n);
        int64_t first = w->padding == WINDOW_VALID ? n - span : n - 1; /* of the last window */
        l->out.dim[i] = first / w->stride[axis] + 1;
    }
    return 0;
}

int window_transposed_shape(struct layer *l, int64_t channels, const struct node *at, struct err *e)
{
    const struct window *w = l->own;
    if (check_and_begin(l, channels, at, e) < 0)
        return -1;
    for (int i = 0; i < w->axes; i++) {
        int axis = WINDOW_AXES - w->axes + i;
        int64_t span = span_of(w, axis), beyond = MAX(span - w->stride[axis], 0);
        l->out.dim[i] = l->in[0].dim[i] * w->stride[axis] + (w->padding == WINDOW_VALID ? beyond : 0);
    }
    return 0;
}

static size_t padding_before(const struct window *w, int axis, size_t in, size_t out)
{
    size_t span = (size_t)span_of(w, axis), end = (out - 1) * (size_t)w->stride[axis] + span;
    if (w->padding == WINDOW_CAUSAL)
        return span - 1;
    return w->padding == WINDOW_SAME && end > in ? (end - in) / 2 : 0;
}

struct window_layout window_layout_between(const struct window *w, const struct shape *in, const struct shape *out)
{
    struct window_layout ret = { .channels = (size_t)in->dim[w->axes], .out_channels = (size_t)out->dim[w->axes] };
    for (int axis = 0; axis < WINDOW_AXES; axis++) {
        int i = axis - (WINDOW_AXES - w->axes);
        struct window_axis *a = &ret.axis[axis];
        *a = (struct window_axis){ .in = i < 0 ? 1 : (size_t)in->dim[i],
                                   .out = i < 0 ? 1 : (size_t)out->dim[i],
                                   .size = (size_t)w->size[axis],
                                   .stride = (size_t)w->stride[axis],
                                   .dilation = (size_t)w->dilation[axis] };
        a->before = i < 0 ? 0 : padding_before(w, axis, a->in, a->out);
    }
    return ret;
}

struct window_layout window_layout_of(const struct layer *l)
{
    return window_layout_between(l->own, &l->in[0], &l->out);
}

void window_inside(const struct window_axis *a, size_t o, size_t *ret_first, size_t *ret_end)
{
    size_t start = o * a->stride;   /* of the window, `before` later */
    size_t end = a->in + a->before; /* of the input, likewise */
    *ret_first = start >= a->before ? 0 : divide_up(a->before - start, a->dilation);
    *ret_end = start >= end ? 0 : MIN(a->size, divide_up(end - start, a->dilation));
}

json_t *window_sizes_json(const struct window *w, const int64_t sizes[WINDOW_AXES])
{
    json_t *list = json_array();
    for (int axis = WINDOW_AXES - w->axes; axis < WINDOW_AXES; axis++)
        json_array_append_new(list, json_integer(sizes[axis]));
    return list;
}
