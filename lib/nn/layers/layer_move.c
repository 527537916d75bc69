/* Permute and RepeatVector: layers that move or repeat values. */
#include "nn/layers/layer_rows.h"

/* ---- Permute ---- */

int permute_read(struct layer *l, const struct node *config, struct err *e)
{
    struct permute *own = l->own = xcalloc(1, sizeof(*own));
    struct node dims = node_get(config, "dims");
    struct arg_list given;
    bool taken[SHAPE_MAX_RANK] = { false };
    if (arg_list_read(&l->row->k, "dims", config, &given, e) < 0)
        return -1;
    own->rank = given.n;
    for (int i = 0; i < given.n; i++) {
        if (given.v[i] > given.n || taken[given.v[i] - 1])
            return node_error(&dims, e, "must have each number of 1 to %d once", given.n);
        taken[given.v[i] - 1] = true;
        own->axis[i] = (int)given.v[i] - 1;
    }
    return 0;
}

int permute_shape(struct layer *l, const struct node *at, struct err *e)
{
    const struct permute *own = l->own;
    char text[128];
    if (l->in[0].rank != own->rank)
        return node_error(at, e, "Permute '%s' needs dims of %d numbers for its input %s, not of %d", l->name,
                          l->in[0].rank, shape_text(&l->in[0], text), own->rank);
    l->out = l->in[0];
    for (int i = 0; i < own->rank; i++)
        l->out.dim[i] = l->in[0].dim[own->axis[i]];
    return 0;
}

void permute_config(const struct layer *l, json_t *config)
{
    const struct permute *own = l->own;
    json_t *dims = json_array();
    for (int i = 0; i < own->rank; i++)
        json_array_append_new(dims, json_integer(own->axis[i] + 1));
    json_object_set_new(config, "dims", dims);
}

/* ---- RepeatVector ---- */

int repeat_vector_shape(struct layer *l, const struct node *at, struct err *e)
{
    char text[128];
    if (l->in[0].rank != 1)
        return node_error(
            at, e, "RepeatVector '%s' needs an input of shape (features,), not %s: a Flatten before it gives one",
            l->name, shape_text(&l->in[0], text));
    l->out = shape_of(2, (int64_t[]){ (int64_t)l->arg[REPEAT_VECTOR_N], l->in[0].dim[0] });
    return 0;
}
