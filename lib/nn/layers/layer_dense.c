/* Dense: a kernel, a bias and an activation over the last axis. */
#include "nn/layers/layer_rows.h"

enum { KERNEL_PART, BIAS_PART };

struct dense { /* layer.own */
    struct initializer init[2];
    struct regularizer regularizer[2];
};

int dense_read(struct layer *l, const struct node *config, struct err *e)
{
    struct node activation = node_get(config, "activation");
    struct node kernel_init = node_get(config, "kernel_initializer"), bias_init = node_get(config, "bias_initializer");
    struct node kernel_reg = node_get(config, "kernel_regularizer"), bias_reg = node_get(config, "bias_regularizer");
    struct dense *own = l->own = xcalloc(1, sizeof(*own));

    if (activation_parse(&activation, &l->activation, e) < 0 ||
        initializer_parse(&kernel_init, "glorot_uniform", &own->init[KERNEL_PART], e) < 0 ||
        initializer_parse(&bias_init, "zeros", &own->init[BIAS_PART], e) < 0 ||
        regularizer_parse(&kernel_reg, &own->regularizer[KERNEL_PART], e) < 0 ||
        regularizer_parse(&bias_reg, &own->regularizer[BIAS_PART], e) < 0)
        return -1;
    return 0;
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
    struct dense *own = l->own;
    int64_t units = (int64_t)l->arg[DENSE_UNITS];
    layer_add_variable(l, "kernel", shape_of(2, (int64_t[]){ layer_channels(l), units }), &own->init[KERNEL_PART],
                       &own->regularizer[KERNEL_PART]);
    if (l->arg[DENSE_USE_BIAS] != 0)
        layer_add_variable(l, "bias", shape_of(1, &units), &own->init[BIAS_PART], &own->regularizer[BIAS_PART]);
}

void dense_config(const struct layer *l, json_t *config)
{
    const struct dense *own = l->own;
    json_object_set_new(config, "activation", activation_json(&l->activation));
    json_object_set_new(config, "kernel_initializer", initializer_json(&own->init[KERNEL_PART]));
    json_object_set_new(config, "bias_initializer", initializer_json(&own->init[BIAS_PART]));
    json_object_set_new(config, "kernel_regularizer", regularizer_json(&own->regularizer[KERNEL_PART]));
    json_object_set_new(config, "bias_regularizer", regularizer_json(&own->regularizer[BIAS_PART]));
    json_object_del(config, "activity_regularizer"); /* optional, and not known to every Keras 3 */
    json_object_del(config, "quantization_config");
    json_object_del(config, "lora_rank");
    json_object_del(config, "lora_alpha");
}
