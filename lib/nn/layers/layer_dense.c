/* Dense: a kernel, a bias and an activation over the last axis. */
#include "nn/layers/layer_rows.h"

static const struct part PARTS[] = { { "kernel", NULL, "glorot_uniform", false }, { "bias", NULL, "zeros", false } };

int activated_read(struct layer *l, const struct node *config, struct err *e)
{
    struct node activation = node_get(config, "activation");
    return activation_parse(&activation, &l->activation, e);
}

void activated_config(const struct layer *l, json_t *config)
{
    json_object_set_new(config, "activation", activation_json(&l->activation));
    json_object_del(config, "activity_regularizer"); /* optional, and not known to every Keras 3 */
}

int dense_read(struct layer *l, const struct node *config, struct err *e)
{
    l->own = xcalloc(1, sizeof(struct parts));
    return activated_read(l, config, e) < 0 ? -1 : parts_read(config, PARTS, COUNT_OF(PARTS), l->own, e);
}

int dense_shape(struct layer *l, const struct node *at, struct err *e)
{
    char text[128];
    if (l->in[0].rank < 1)
        return node_error(at, e, "Dense '%s' needs an input of at least one axis, not %s", l->name,
                          shape_text(&l->in[0], text));
    l->out = l->in[0];
    l->out.dim[l->out.rank - 1] = (int64_t)l->arg[DENSE_UNITS];
    return 0;
}

void dense_variables(struct layer *l)
{
    const int64_t units = (int64_t)l->arg[DENSE_UNITS];
    parts_add(l, l->own, KERNEL_PART, shape_of(2, (int64_t[]){ layer_channels(l), units }));
    if (l->arg[DENSE_USE_BIAS] != 0)
        parts_add(l, l->own, BIAS_PART, shape_of(1, &units));
}

void dense_config(const struct layer *l, json_t *config)
{
    activated_config(l, config);
    parts_config(l->own, config);
    json_object_del(config, "quantization_config");
    json_object_del(config, "lora_rank");
    json_object_del(config, "lora_alpha");
}
