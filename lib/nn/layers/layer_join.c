/* Layers that make one tensor of several: Add and its like, Concatenate. */
#include <inttypes.h>
#include <string.h>

#include "nn/layers/layer_rows.h"

/* a becomes the shape of both, as NumPy aligns them: from the last axis, and axes of size 1 are repeated. */
static bool join_shapes(struct shape *a, const struct shape *b)
{
    const struct shape *longer = a->rank >= b->rank ? a : b, *other = longer == a ? b : a;
    struct shape both = *longer;
    for (int i = 0; i < other->rank; i++) {
        int64_t size = other->dim[i], *to = &both.dim[both.rank - other->rank + i];
        if (*to != size && *to != 1 && size != 1)
            return false;
        *to = *to == 1 ? size : *to;
    }
    *a = both;
    return true;
}

int merge_shape(struct layer *l, const struct node *at, struct err *e)
{
    char have[128], want[128];
    l->out = l->in[0];
    for (size_t k = 1; k < l->nin; k++)
        if (!join_shapes(&l->out, &l->in[k]))
            return node_error(at, e,
                              "%s '%s' cannot be called with %s and %s: shapes are aligned from their last axis, and "
                              "axes must be equal, or one of them 1",
                              l->row->k.names[0], l->name, shape_text(&l->out, want), shape_text(&l->in[k], have));
    return 0;
}

static int two_tensors(const struct layer *l, const struct node *at, struct err *e)
{
    return l->nin == 2 ? 0
                       : node_error(at, e, "%s '%s' takes two tensors, not %zu", l->row->k.names[0], l->name, l->nin);
}

int subtract_shape(struct layer *l, const struct node *at, struct err *e)
{
    return two_tensors(l, at, e) < 0 ? -1 : merge_shape(l, at, e);
}

int concatenate_shape(struct layer *l, const struct node *at, struct err *e)
{
    struct node given = node_get(at, "axis");
    const struct node *place = node_present(&given) ? &given : at;
    double value = l->arg[CONCATENATE_AXIS];
    char want[128], have[128];

    if (value < -l->in[0].rank || value > l->in[0].rank || value == 0) /* Keras counts the batch axis */
        return node_error(place, e, "axis %g is not one of an example of shape %s", value, shape_text(&l->in[0], want));
    int axis = concatenate_axis(l);
    l->out = l->in[0];
    for (size_t k = 1; k < l->nin; k++) {
        struct shape other = l->in[k];
        if (other.rank == l->out.rank)
            other.dim[axis] = l->in[0].dim[axis];
        if (!shape_eq(&other, &l->in[0]))
            return node_error(at, e, "Concatenate '%s' cannot join %s and %s along axis %d", l->name,
                              shape_text(&l->in[0], want), shape_text(&l->in[k], have), axis + 1);
        l->out.dim[axis] += l->in[k].dim[axis];
    }
    return 0;
}

/* ---- Dot ---- */

int dot_read(struct layer *l, const struct node *config, struct err *e)
{
    struct arg_list *axes = l->own = xcalloc(1, sizeof(*axes));
    return arg_list_read(&l->row->k, "axes", config, axes, e);
}

/* Keras counts the batch axis, which cannot be multiplied along. */
static int dot_check_axis(const struct layer *l, size_t k, const struct node *at, struct err *e)
{
    const struct arg_list *axes = l->own;
    const struct node given = node_get(at, "axes"), *place = node_present(&given) ? &given : at;
    int64_t axis = axes->v[k];
    char text[128];
    if (axis != 0 && axis >= -l->in[k].rank && axis <= l->in[k].rank)
        return 0;
    return node_error(place, e,
                      "axis %" PRId64 " does not exist: an example has shape %s, whose axes are counted from 1", axis,
                      shape_text(&l->in[k], text));
}

int dot_shape(struct layer *l, const struct node *at, struct err *e)
{
    char first[128], second[128];
    if (two_tensors(l, at, e) < 0 || dot_check_axis(l, 0, at, e) < 0 || dot_check_axis(l, 1, at, e) < 0)
        return -1;
    int a = dot_axis(l, 0), b = dot_axis(l, 1);
    if (l->in[0].dim[a] != l->in[1].dim[b])
        return node_error(at, e, "Dot '%s' cannot multiply %s along axis %d with %s along axis %d: their sizes differ",
                          l->name, shape_text(&l->in[0], first), a + 1, shape_text(&l->in[1], second), b + 1);
    if (l->in[0].rank + l->in[1].rank - 2 > SHAPE_MAX_RANK)
        return node_error(at, e, "the output of Dot '%s' has more than %d axes", l->name, SHAPE_MAX_RANK);
    l->out = (struct shape){ 0 };
    for (size_t k = 0; k < 2; k++)
        for (int i = 0; i < l->in[k].rank; i++)
            if (i != dot_axis(l, k))
                l->out.dim[l->out.rank++] = l->in[k].dim[i];
    if (l->out.rank == 0)
        l->out = (struct shape){ .rank = 1, .dim = { 1 } };
    return 0;
}

void dot_config(const struct layer *l, json_t *config)
{
    const struct arg_list *axes = l->own;
    json_int_t a = axes->v[0], b = axes->v[1];
    json_object_set_new(config, "axes", a == b ? json_integer(a) : json_pack("[I, I]", a, b));
}
