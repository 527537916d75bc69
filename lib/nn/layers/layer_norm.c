/* Normalization and BatchNormalization. */
#include <inttypes.h>

#include "base/str.h"
#include "nn/layers/layer_rows.h"

enum { MEAN = NORMALIZATION_MEAN, VARIANCE = NORMALIZATION_VARIANCE };
enum { GAMMA, BETA, MOVING_MEAN, MOVING_VARIANCE };

static const struct initializer ZEROS = { .class_name = "Zeros", .kind = INIT_ZEROS };
static const struct initializer ONES = { .class_name = "Ones", .kind = INIT_CONSTANT, .a = 1 };

/* ---- Normalization ---- */

/* axis None, which Keras 3 writes as an empty list. */
static bool is_whole(const struct node *config)
{
    const json_t *axis = json_object_get(config->v, "axis");
    return json_is_null(axis) || (json_is_array(axis) && json_array_size(axis) == 0);
}

int normalization_read(struct layer *l, const struct node *config, struct err *e)
{
    struct node mean = node_get(config, "mean"), variance = node_get(config, "variance");
    if (node_present(&mean) != node_present(&variance))
        return node_error(config, e, "mean and variance belong together: give both or none");
    struct normalization *own = l->own = xcalloc(1, sizeof(*own));
    own->whole = is_whole(config);
    if (l->arg[NORMALIZATION_INVERT] != 0 && !node_present(&mean))
        return node_error(
            config, e,
            "an inverted Normalization turns outputs back into the units of the labels, so it needs their "
            "mean and variance: they are not in the file, and cannot be learnt from the features");
    if (values_read(&mean, VALUES_ANY, &own->given[MEAN], e) < 0)
        return -1;
    return values_read(&variance, VALUES_NOT_NEGATIVE, &own->given[VARIANCE], e);
}

int normalization_shape(struct layer *l, const struct node *at, struct err *e)
{
    static const char *const NAMES[] = { "mean", "variance" };
    size_t channels = normalization_channels(l);

    if (layer_check_axis(l, at, e) < 0)
        return -1;
    for (size_t i = 0; i < COUNT_OF(NAMES); i++)
        if (values_fit(&normalization_given(l)[i], NAMES[i], channels, at, e) < 0)
            return -1;
    l->out = l->in[0];
    return 0;
}

/* Only an adapted layer has variables; given values are part of the config, as in Keras. */
void normalization_variables(struct layer *l)
{
    const struct normalization *own = l->own;
    int64_t channels = layer_channels(l);
    struct shape shape = own->whole ? shape_of(0, NULL) : shape_of(1, &channels);
    if (own->given[MEAN].n > 0)
        return;
    layer_add_state(l, "mean", shape, &ZEROS, VAR_CONST, 0);
    layer_add_state(l, "variance", shape, &ONES, VAR_CONST, 0);
}

void normalization_config(const struct layer *l, json_t *config)
{
    const struct normalization *own = l->own;
    json_object_set_new(config, "axis", own->whole ? json_null() : json_integer(-1));
    json_object_set_new(config, "mean", values_json(&own->given[MEAN], own->whole));
    json_object_set_new(config, "variance", values_json(&own->given[VARIANCE], own->whole));
}

void normalization_fini(struct layer *l)
{
    struct normalization *own = l->own;
    for (size_t i = 0; i < COUNT_OF(own->given); i++)
        free(own->given[i].v);
}

/* ---- BatchNormalization ---- */

static const struct part PARTS[] = { [GAMMA] = { "gamma", NULL, "ones", false },
                                     [BETA] = { "beta", NULL, "zeros", false },
                                     [MOVING_MEAN] = { "moving_mean", NULL, "zeros", true },
                                     [MOVING_VARIANCE] = { "moving_variance", NULL, "ones", true } };

int batch_normalization_read(struct layer *l, const struct node *config, struct err *e)
{
    l->own = xcalloc(1, sizeof(struct parts));
    return parts_read(config, PARTS, COUNT_OF(PARTS), l->own, e);
}

/* Of layers that normalise the last axis: the shape stays. */
int normalized_axis_shape(struct layer *l, const struct node *at, struct err *e)
{
    if (l->in[0].rank < 1)
        return node_error(at, e, "%s '%s' needs an input of at least one axis", l->row->k.names[0], l->name);
    l->out = l->in[0];
    return layer_check_axis(l, at, e);
}

void batch_normalization_variables(struct layer *l)
{
    const struct parts *own = l->own;
    int64_t channels = layer_channels(l);
    struct shape shape = shape_of(1, &channels);
    float momentum = (float)l->arg[BATCHNORM_MOMENTUM];

    if (l->arg[BATCHNORM_SCALE] != 0)
        parts_add(l, own, GAMMA, shape);
    if (l->arg[BATCHNORM_CENTER] != 0)
        parts_add(l, own, BETA, shape);
    layer_add_state(l, "moving_mean", shape, &own->init[MOVING_MEAN], VAR_MOVING, momentum);
    layer_add_state(l, "moving_variance", shape, &own->init[MOVING_VARIANCE], VAR_MOVING, momentum);
}

bool layer_synchronized(const struct layer *l)
{
    return l->id == LAYER_BATCH_NORMALIZATION && l->trainable && l->arg[BATCHNORM_SYNCHRONIZED] != 0;
}

void batch_normalization_config(const struct layer *l, json_t *config)
{
    json_object_set_new(config, "axis", json_integer(-1));
    parts_config(l->own, config);
    json_object_del(config, "renorm"); /* not known to every Keras 3 */
    json_object_del(config, "renorm_clipping");
}
