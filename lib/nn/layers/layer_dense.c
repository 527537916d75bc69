/* Dense: a kernel, a bias and an activation over the last axis; and what other layers with these have in common with
 * it. */
#include "nn/layers/layer_rows.h"

int weighted_read(struct layer *l, const struct node *config, struct weighted *ret, struct err *e)
{
    struct node activation = node_get(config, "activation");
    struct node kernel_init = node_get(config, "kernel_initializer"), bias_init = node_get(config, "bias_initializer");
    struct node kernel_reg = node_get(config, "kernel_regularizer"), bias_reg = node_get(config, "bias_regularizer");

    if (activation_parse(&activation, &l->activation, e) < 0 ||
        initializer_parse(&kernel_init, "glorot_uniform", &ret->init[KERNEL_PART], e) < 0 ||
        initializer_parse(&bias_init, "zeros", &ret->init[BIAS_PART], e) < 0 ||
        regularizer_parse(&kernel_reg, &ret->regularizer[KERNEL_PART], e) < 0 ||
        regularizer_parse(&bias_reg, &ret->regularizer[BIAS_PART], e) < 0)
        return -1;
    return 0;
}

void weighted_variables(struct layer *l, const struct weighted *w, struct shape kernel, bool bias)
{
    layer_add_variable(l, "kernel", kernel, &w->init[KERNEL_PART], &w->regularizer[KERNEL_PART]);
    if (bias)
        layer_add_variable(l, "bias", shape_of(1, &kernel.dim[kernel.rank - 1]), &w->init[BIAS_PART],
                           &w->regularizer[BIAS_PART]);
}

void weighted_config(const struct layer *l, const struct weighted *w, json_t *config)
{
    json_object_set_new(config, "activation", activation_json(&l->activation));
    json_object_set_new(config, "kernel_initializer", initializer_json(&w->init[KERNEL_PART]));
    json_object_set_new(config, "bias_initializer", initializer_json(&w->init[BIAS_PART]));
    json_object_set_new(config, "kernel_regularizer", regularizer_json(&w->regularizer[KERNEL_PART]));
    json_object_set_new(config, "bias_regularizer", regularizer_json(&w->regularizer[BIAS_PART]));
    json_object_del(config, "activity_regularizer"); /* optional, and not known to every Keras 3 */
}

int dense_read(struct layer *l, const struct node *config, struct err *e)
{
    l->own = xcalloc(1, sizeof(struct weighted));
    return weighted_read(l, config, l->own, e);
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
    const int64_t kernel[] = { layer_channels(l), (int64_t)l->arg[DENSE_UNITS] };
    weighted_variables(l, l->own, shape_of(2, kernel), l->arg[DENSE_USE_BIAS] != 0);
}

void dense_config(const struct layer *l, json_t *config)
{
    weighted_config(l, l->own, config);
    json_object_del(config, "quantization_config");
    json_object_del(config, "lora_rank");
    json_object_del(config, "lora_alpha");
}
