/* PReLU: a relu whose slope below 0 is learnt, one for each value of an example, or shared along axes. */
#include "nn/layers/layer_rows.h"

static const struct part PARTS[] = { { "alpha", NULL, "zeros", false } };

int prelu_read(struct layer *l, const struct node *config, struct err *e)
{
    struct prelu *own = l->own = xcalloc(1, sizeof(*own));
    if (arg_list_read(&l->row->k, "shared_axes", config, &own->shared, e) < 0)
        return -1;
    return parts_read(config, PARTS, COUNT_OF(PARTS), &own->parts, e);
}

int prelu_shape(struct layer *l, const struct node *at, struct err *e)
{
    struct prelu *own = l->own;
    struct node axes = node_get(at, "shared_axes");
    char text[128];
    own->alpha = l->in[0];
    for (int i = 0; i < own->shared.n; i++) {
        if (own->shared.v[i] > l->in[0].rank)
            return node_error(&axes, e, "has axis %lld, and the last axis of the input %s is %d",
                              (long long)own->shared.v[i], shape_text(&l->in[0], text), l->in[0].rank);
        own->alpha.dim[own->shared.v[i] - 1] = 1;
    }
    return layer_same_shape(l, at, e);
}

void prelu_variables(struct layer *l)
{
    const struct prelu *own = l->own;
    parts_add(l, &own->parts, 0, own->alpha);
}

void prelu_config(const struct layer *l, json_t *config)
{
    const struct prelu *own = l->own;
    json_t *axes = own->shared.n > 0 ? json_array() : json_null();
    for (int i = 0; i < own->shared.n; i++)
        json_array_append_new(axes, json_integer(own->shared.v[i]));
    json_object_set_new(config, "shared_axes", axes);
    parts_config(&own->parts, config);
}
