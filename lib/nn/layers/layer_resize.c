/* ZeroPadding, Cropping and UpSampling: layers that add, remove or repeat positions. */
#include "nn/layers/layer_rows.h"

/* ---- ZeroPadding, Cropping ---- */

/* n, or [before, after]. */
static int read_margin(const struct node *n, int64_t ret[2], struct err *e)
{
    struct node first = *n, second = *n;
    if (json_is_array(n->v)) {
        if (node_size(n) != 2)
            return node_error(n, e, "has %zu entries; it must be a number, or [before, after]", node_size(n));
        first = node_item(n, 0);
        second = node_item(n, 1);
    }
    return node_i64(&first, 0, INT32_MAX, &ret[0], e) < 0 ? -1 : node_i64(&second, 0, INT32_MAX, &ret[1], e);
}

/* Of a sequence a number or [before, after]; of an image a number for all sides, or a number or [before, after] for
 * each axis. */
static int read_margins(struct layer *l, const struct node *config, int axes, struct err *e)
{
    struct margins *own = l->own = xcalloc(1, sizeof(*own));
    bool crops = l->id == LAYER_CROPPING_1D || l->id == LAYER_CROPPING_2D;
    struct node given = node_get(config, crops ? "cropping" : "padding");
    own->axes = axes;
    if (window_check_format(config, e) < 0)
        return -1;
    for (int axis = WINDOW_AXES - axes; axis < WINDOW_AXES; axis++)
        own->at[axis][0] = own->at[axis][1] = !crops || axes == 1 ? 1 : 0;
    if (!node_present(&given))
        return 0;
    if (axes == 2 && json_is_array(given.v) && node_size(&given) != 2)
        return node_error(&given, e, "has %zu entries; it must be a number, or one entry for each axis",
                          node_size(&given));
    for (int axis = WINDOW_AXES - axes; axis < WINDOW_AXES; axis++) {
        struct node one = axes == 2 && json_is_array(given.v) ? node_item(&given, (size_t)axis) : given;
        if (read_margin(&one, own->at[axis], e) < 0)
            return -1;
    }
    return 0;
}

int margins1d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_margins(l, config, 1, e);
}

int margins2d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_margins(l, config, 2, e);
}

int zero_padding_shape(struct layer *l, const struct node *at, struct err *e)
{
    const struct margins *own = l->own;
    if (window_check_input(l, own->axes, at, e) < 0)
        return -1;
    l->out = l->in[0];
    for (int i = 0; i < own->axes; i++) {
        const int64_t *margin = own->at[WINDOW_AXES - own->axes + i];
        l->out.dim[i] += margin[0] + margin[1];
    }
    return 0;
}

int cropping_shape(struct layer *l, const struct node *at, struct err *e)
{
    const struct margins *own = l->own;
    char text[128];
    if (window_check_input(l, own->axes, at, e) < 0)
        return -1;
    l->out = l->in[0];
    for (int i = 0; i < own->axes; i++) {
        const int64_t *margin = own->at[WINDOW_AXES - own->axes + i];
        l->out.dim[i] -= margin[0] + margin[1];
        if (l->out.dim[i] < 1)
            return node_error(at, e, "%s '%s' leaves nothing of its input %s", l->row->k.names[0], l->name,
                              shape_text(&l->in[0], text));
    }
    return 0;
}

void margins_config(const struct layer *l, json_t *config)
{
    const struct margins *own = l->own;
    bool crops = l->id == LAYER_CROPPING_1D || l->id == LAYER_CROPPING_2D;
    json_t *sides = json_array();
    for (int axis = WINDOW_AXES - own->axes; axis < WINDOW_AXES; axis++)
        json_array_append_new(sides, json_pack("[I, I]", (json_int_t)own->at[axis][0], (json_int_t)own->at[axis][1]));
    if (own->axes == 1) {
        json_t *only = json_incref(json_array_get(sides, 0));
        json_decref(sides);
        sides = only;
    }
    json_object_set_new(config, crops ? "cropping" : "padding", sides);
    if (own->axes == 2)
        channels_last_config(l, config);
}

/* ---- UpSampling ---- */

static int read_scales(struct layer *l, const struct node *config, int axes, struct err *e)
{
    static const int64_t TWO[WINDOW_AXES] = { 2, 2 };
    struct scales *own = l->own = xcalloc(1, sizeof(*own));
    own->axes = axes;
    return window_check_format(config, e) < 0 ? -1 : window_read_sizes(l, config, "size", axes, TWO, own->by, e);
}

int up_sampling1d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_scales(l, config, 1, e);
}

int up_sampling2d_read(struct layer *l, const struct node *config, struct err *e)
{
    return read_scales(l, config, 2, e);
}

int up_sampling_shape(struct layer *l, const struct node *at, struct err *e)
{
    const struct scales *own = l->own;
    if (window_check_input(l, own->axes, at, e) < 0)
        return -1;
    l->out = l->in[0];
    for (int i = 0; i < own->axes; i++)
        l->out.dim[i] *= own->by[WINDOW_AXES - own->axes + i];
    return 0;
}

void up_sampling_config(const struct layer *l, json_t *config)
{
    const struct scales *own = l->own;
    if (own->axes == 1) {
        json_object_set_new(config, "size", json_integer(own->by[WINDOW_WIDTH]));
        return;
    }
    json_object_set_new(config, "size", json_pack("[I, I]", (json_int_t)own->by[0], (json_int_t)own->by[1]));
    channels_last_config(l, config);
}
