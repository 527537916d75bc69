/* Layers that make one tensor of several: Add, Concatenate. */
#include <string.h>

#include "nn/layers/layer_rows.h"

int add_shape(struct layer *l, const struct node *at, struct err *e)
{
    char want[128], have[128];
    for (size_t k = 1; k < l->nin; k++)
        if (!shape_eq(&l->in[k], &l->in[0]))
            return node_error(at, e, "Add '%s' needs tensors of one shape, not %s and %s", l->name,
                              shape_text(&l->in[0], want), shape_text(&l->in[k], have));
    l->out = l->in[0];
    return 0;
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
