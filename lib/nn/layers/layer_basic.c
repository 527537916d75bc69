/* Layers without variables: Flatten, Reshape, Dropout, Rescaling and the activations. */
#include "nn/layers/layer_rows.h"

/* ---- Flatten, Reshape ---- */

int flatten_shape(struct layer *l, const struct node *at, struct err *e)
{
    if (window_check_format(at, e) < 0)
        return -1;
    l->out = shape_of(1, (int64_t[]){ (int64_t)shape_elements(&l->in[0]) });
    return 0;
}

int same_steps_shape(struct layer *l, const struct node *at, struct err *e)
{
    l->out = l->in[0];
    return window_check_input(l, 1, at, e);
}

int same_image_shape(struct layer *l, const struct node *at, struct err *e)
{
    l->out = l->in[0];
    return window_check_input(l, 2, at, e);
}

int channels_last_read(struct layer *l UNUSED, const struct node *config, struct err *e)
{
    return window_check_format(config, e);
}

void channels_last_config(const struct layer *l UNUSED, json_t *config)
{
    json_object_set_new(config, "data_format", json_string("channels_last"));
}

int reshape_read(struct layer *l, const struct node *config, struct err *e)
{
    struct shape *wanted = l->own = xcalloc(1, sizeof(*wanted));
    struct arg_list given;
    if (arg_list_read(&l->row->k, "target_shape", config, &given, e) < 0)
        return -1;
    *wanted = shape_of(given.n, given.v);
    return 0;
}

int reshape_shape(struct layer *l, const struct node *at, struct err *e)
{
    const struct shape *wanted = l->own;
    struct shape known = { 0 };
    int open = -1;
    char in[128], want[128];
    size_t have = shape_elements(&l->in[0]), count = 0;

    for (int i = 0; i < wanted->rank; i++) {
        if (wanted->dim[i] == -1 && open >= 0)
            return node_error(at, e, "target_shape has more than one -1");
        if (wanted->dim[i] == -1)
            open = i;
        else
            known.dim[known.rank++] = wanted->dim[i];
    }
    if (shape_count(&known, &count, e) < 0)
        return -1;
    if (open >= 0 ? have % count != 0 : have != count)
        return node_error(at, e, "an input of shape %s (%zu elements) cannot be reshaped to %s",
                          shape_text(&l->in[0], in), have, shape_text(wanted, want));
    l->out = *wanted;
    if (open >= 0)
        l->out.dim[open] = (int64_t)(have / count);
    return 0;
}

void reshape_config(const struct layer *l, json_t *config)
{
    json_object_set_new(config, "target_shape", shape_json(l->own, false));
}

/* ---- activations ---- */

int activation_read(struct layer *l, const struct node *config, struct err *e)
{
    struct node activation = node_get(config, "activation");
    return activation_parse(&activation, &l->activation, e);
}

void activation_config(const struct layer *l, json_t *config)
{
    json_object_set_new(config, "activation", activation_json(&l->activation));
}

int relu_read(struct layer *l, const struct node *config UNUSED, struct err *e UNUSED)
{
    l->activation = activation_of(ACT_RELU);
    if (!isnan(l->arg[RELU_MAX]))
        l->activation.max_value = (float)l->arg[RELU_MAX];
    l->activation.negative_slope = (float)l->arg[RELU_SLOPE];
    l->activation.threshold = (float)l->arg[RELU_THRESHOLD];
    return 0;
}

int leaky_relu_read(struct layer *l, const struct node *config, struct err *e)
{
    struct node alpha = node_get(config, "alpha");
    if (node_present(&alpha) && node_f64(&alpha, &l->arg[SLOPE], e) < 0)
        return -1;
    l->activation = activation_of(ACT_LEAKY_RELU);
    l->activation.negative_slope = (float)l->arg[SLOPE];
    return 0;
}

int elu_read(struct layer *l, const struct node *config UNUSED, struct err *e UNUSED)
{
    l->activation = activation_of(ACT_ELU);
    l->activation.negative_slope = (float)l->arg[SLOPE];
    return 0;
}

int softmax_read(struct layer *l, const struct node *config, struct err *e)
{
    l->activation = activation_of(ACT_SOFTMAX);
    return layer_check_axis(l, config, e);
}

void axis_config(const struct layer *l UNUSED, json_t *config)
{
    json_object_set_new(config, "axis", json_integer(-1));
}

/* ---- Rescaling ---- */

int rescaling_read(struct layer *l, const struct node *config, struct err *e)
{
    struct node scale = node_get(config, "scale"), offset = node_get(config, "offset");
    struct rescaling *own = l->own = xcalloc(1, sizeof(*own));
    if (values_read(&scale, VALUES_ANY, &own->scale, e) < 0 || values_read(&offset, VALUES_ANY, &own->offset, e) < 0)
        return -1;
    if (own->offset.n == 0)
        own->offset = (struct values){ .v = xcalloc(1, sizeof(double)), .n = 1 };
    return 0;
}

int rescaling_shape(struct layer *l, const struct node *at, struct err *e)
{
    const struct rescaling *own = l->own;
    size_t channels = (size_t)layer_channels(l);
    if (values_fit(&own->scale, "scale", channels, at, e) < 0 ||
        values_fit(&own->offset, "offset", channels, at, e) < 0)
        return -1;
    return layer_same_shape(l, at, e);
}

void rescaling_config(const struct layer *l, json_t *config)
{
    json_object_set_new(config, "scale", values_json(&rescaling_of(l)->scale, true));
    json_object_set_new(config, "offset", values_json(&rescaling_of(l)->offset, true));
}

void rescaling_fini(struct layer *l)
{
    struct rescaling *own = l->own;
    free(own->scale.v);
    free(own->offset.v);
}

/* ---- Dropout ---- */

int dropout_read(struct layer *l, const struct node *config, struct err *e)
{
    if (l->arg[NOISE_RATE] >= 1)
        return node_error(config, e, "rate 1 would drop everything");
    return 0;
}

/* ---- SpatialDropout ---- */

int spatial_dropout2d_read(struct layer *l, const struct node *config, struct err *e)
{
    return window_check_format(config, e) < 0 ? -1 : dropout_read(l, config, e);
}

/* Keras 3 cannot make one that has `trainable`. */
void spatial_dropout_config(const struct layer *l, json_t *config)
{
    json_object_del(config, "trainable");
    if (l->id == LAYER_SPATIAL_DROPOUT_2D)
        channels_last_config(l, config);
}
