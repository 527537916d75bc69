/* Normalization and BatchNormalization. */
#include <inttypes.h>

#include "base/str.h"
#include "nn/layers/layer_rows.h"

enum { MEAN = NORMALIZATION_MEAN, VARIANCE = NORMALIZATION_VARIANCE };
enum { GAMMA, BETA, MOVING_MEAN, MOVING_VARIANCE };

static const struct initializer ZEROS = { .class_name = "Zeros", .kind = INIT_ZEROS };
static const struct initializer ONES = { .class_name = "Ones", .kind = INIT_CONSTANT, .a = 1 };

/* ---- Normalization ---- */

/* A number, a list, or (as Keras writes adapted layers) a list in a list. */
static int read_values(const struct node *n, bool variance, struct values *ret, struct err *e)
{
    struct node list = *n;
    if (!node_present(n)) {
        *ret = (struct values){ .n = 0 };
        return 0;
    }
    while (json_is_array(list.v) && node_size(&list) == 1 && json_is_array(json_array_get(list.v, 0)))
        list = node_item(&list, 0);
    size_t count = json_is_array(list.v) ? node_size(&list) : 1;
    if (count == 0)
        return node_error(n, e, "is empty");
    auto_free float *values = xcalloc(count, sizeof(*values));
    for (size_t i = 0; i < count; i++) {
        struct node item = json_is_array(list.v) ? node_item(&list, i) : list;
        double v = 0;
        if (node_f64(&item, &v, e) < 0)
            return -1;
        if (variance && v < 0)
            return node_error(&item, e, "a variance cannot be negative");
        if (fabs(v) > (double)FLT_MAX)
            return node_error(&item, e, "%.9g is more than a 32-bit float holds", v);
        values[i] = (float)v;
    }
    *ret = (struct values){ .v = TAKE(values), .n = count };
    return 0;
}

int normalization_read(struct layer *l, const struct node *config, struct err *e)
{
    struct node mean = node_get(config, "mean"), variance = node_get(config, "variance");
    if (node_present(&mean) != node_present(&variance))
        return node_error(config, e, "mean and variance belong together: give both or none");
    struct normalization *own = l->own = xcalloc(1, sizeof(*own));
    if (read_values(&mean, false, &own->given[MEAN], e) < 0)
        return -1;
    return read_values(&variance, true, &own->given[VARIANCE], e);
}

int normalization_shape(struct layer *l, const struct node *at, struct err *e)
{
    static const char *const NAMES[] = { "mean", "variance" };
    size_t channels = (size_t)layer_channels(l);

    if (layer_check_axis(l, at, e) < 0)
        return -1;
    for (size_t i = 0; i < COUNT_OF(NAMES); i++) {
        const struct values *given = &normalization_given(l)[i];
        if (given->n != 0 && given->n != 1 && given->n != channels)
            return node_error(at, e, "%s has %zu values, the last axis of the input %zu", NAMES[i], given->n, channels);
    }
    l->out = l->in[0];
    return 0;
}

/* Only an adapted layer has variables; given values are part of the config, as in Keras. */
void normalization_variables(struct layer *l)
{
    int64_t channels = layer_channels(l);
    if (normalization_given(l)[MEAN].n > 0)
        return;
    layer_add_state(l, "mean", shape_of(1, &channels), &ZEROS, VAR_CONST, 0);
    layer_add_state(l, "variance", shape_of(1, &channels), &ONES, VAR_CONST, 0);
}

static json_t *values_json(const struct values *given)
{
    if (given->n == 0)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < given->n; i++)
        json_array_append_new(list, json_real(str_float_decimal(given->v[i])));
    return list;
}

void normalization_config(const struct layer *l, json_t *config)
{
    json_object_set_new(config, "axis", json_integer(-1));
    json_object_set_new(config, "mean", values_json(&normalization_given(l)[MEAN]));
    json_object_set_new(config, "variance", values_json(&normalization_given(l)[VARIANCE]));
}

void normalization_fini(struct layer *l)
{
    struct normalization *own = l->own;
    for (size_t i = 0; i < COUNT_OF(own->given); i++)
        free(own->given[i].v);
}

/* ---- BatchNormalization ---- */

struct batch_normalization { /* layer.own */
    struct initializer init[4];
    struct regularizer regularizer[2];
};

static const struct {
    const char *key, *fallback;
} PARTS[] = {
    [GAMMA] = { "gamma_initializer", "ones" },
    [BETA] = { "beta_initializer", "zeros" },
    [MOVING_MEAN] = { "moving_mean_initializer", "zeros" },
    [MOVING_VARIANCE] = { "moving_variance_initializer", "ones" },
};

int batch_normalization_read(struct layer *l, const struct node *config, struct err *e)
{
    struct node gamma = node_get(config, "gamma_regularizer"), beta = node_get(config, "beta_regularizer");
    struct batch_normalization *own = l->own = xcalloc(1, sizeof(*own));
    for (size_t i = 0; i < COUNT_OF(PARTS); i++) {
        struct node init = node_get(config, PARTS[i].key);
        if (initializer_parse(&init, PARTS[i].fallback, &own->init[i], e) < 0)
            return -1;
    }
    if (regularizer_parse(&gamma, &own->regularizer[GAMMA], e) < 0)
        return -1;
    return regularizer_parse(&beta, &own->regularizer[BETA], e);
}

int batch_normalization_shape(struct layer *l, const struct node *at, struct err *e)
{
    if (l->in[0].rank < 1)
        return node_error(at, e, "BatchNormalization '%s' needs an input of at least one axis", l->name);
    l->out = l->in[0];
    return layer_check_axis(l, at, e);
}

void batch_normalization_variables(struct layer *l)
{
    struct batch_normalization *own = l->own;
    int64_t channels = layer_channels(l);
    struct shape shape = shape_of(1, &channels);
    float momentum = (float)l->arg[BATCHNORM_MOMENTUM];

    if (l->arg[BATCHNORM_SCALE] != 0)
        layer_add_variable(l, "gamma", shape, &own->init[GAMMA], &own->regularizer[GAMMA]);
    if (l->arg[BATCHNORM_CENTER] != 0)
        layer_add_variable(l, "beta", shape, &own->init[BETA], &own->regularizer[BETA]);
    layer_add_state(l, "moving_mean", shape, &own->init[MOVING_MEAN], VAR_MOVING, momentum);
    layer_add_state(l, "moving_variance", shape, &own->init[MOVING_VARIANCE], VAR_MOVING, momentum);
}

void batch_normalization_config(const struct layer *l, json_t *config)
{
    const struct batch_normalization *own = l->own;
    json_object_set_new(config, "axis", json_integer(-1));
    for (size_t i = 0; i < COUNT_OF(PARTS); i++)
        json_object_set_new(config, PARTS[i].key, initializer_json(&own->init[i]));
    json_object_set_new(config, "gamma_regularizer", regularizer_json(&own->regularizer[GAMMA]));
    json_object_set_new(config, "beta_regularizer", regularizer_json(&own->regularizer[BETA]));
    json_object_set_new(config, "synchronized", json_false());
    json_object_del(config, "renorm"); /* not known to every Keras 3 */
    json_object_del(config, "renorm_clipping");
}
