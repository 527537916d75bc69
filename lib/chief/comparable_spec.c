/* Writes the models of two jobs as the newer manifest has its own, and reduces what cannot be compared argument by
 * argument to the names of classes. */
#include "chief/comparable_spec.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "nn/optimizers/optimizer.h"

/* ---- {Class: {arguments}} ---- */

static json_t *simple(const json_t *v);

static json_t *named(const char *class, const json_t *config)
{
    json_t *v = json_object();
    json_object_set_new(v, class, json_is_object(config) ? simple(config) : json_object());
    return v;
}

/* Keras's serialized objects, {class_name, config, ...} at any depth, as the manifest has them. */
static json_t *simple(const json_t *v)
{
    const char *class = json_string_value(json_object_get(v, "class_name")), *key;
    json_t *item, *copy = NULL;
    size_t i;
    if (class != NULL)
        return named(class, json_object_get(v, "config"));
    if (json_is_object(v)) {
        copy = json_object();
        json_object_foreach((json_t *)(uintptr_t)v, key, item) json_object_set_new(copy, key, simple(item));
    } else if (json_is_array(v)) {
        copy = json_array();
        json_array_foreach(v, i, item) json_array_append_new(copy, simple(item));
    }
    return copy != NULL ? copy : json_deep_copy(v);
}

/* The class of {Class: {arguments}}, or NULL. */
static const char *class_of(const json_t *v)
{
    const char *key = json_object_size(v) == 1 ? json_object_iter_key(json_object_iter((json_t *)(uintptr_t)v)) : NULL;
    return key != NULL && isupper((unsigned char)key[0]) ? key : NULL;
}

static void settle_members(json_t *was, json_t *now);

/* The values under a key, or of an index: only their classes remain when these differ. */
static bool settle(json_t *was, json_t *now, json_t **ret_was, json_t **ret_now)
{
    const char *from = class_of(was), *to = class_of(now);
    if (from == NULL || to == NULL || strcmp(from, to) == 0) {
        settle_members(was, now);
        return false;
    }
    *ret_was = json_string(from);
    *ret_now = json_string(to);
    return true;
}

static void settle_members(json_t *was, json_t *now)
{
    json_t *from, *to, *v;
    const char *key;
    void *next;
    json_object_foreach_safe(was, next, key, v)
    {
        if (!settle(v, json_object_get(now, key), &from, &to))
            continue;
        json_object_set_new(now, key, to);
        json_object_set_new(was, key, from);
    }
    for (size_t i = 0; json_array_size(was) == json_array_size(now) && i < json_array_size(was); i++)
        if (settle(json_array_get(was, i), json_array_get(now, i), &from, &to)) {
            json_array_set_new(was, i, from);
            json_array_set_new(now, i, to);
        }
}

/* ---- the model ---- */

static const char *model_key(const struct comparable *c)
{
    const json_t *model = json_at(c->doc, "spec.model");
    return json_object_get(model, "layers") != NULL      ? "layers"
           : json_object_get(model, "kerasFile") != NULL ? "kerasFile"
                                                         : "keras";
}

static bool is_chain(const json_t *keras)
{
    return strcmp(json_string_value(json_object_get(keras, "class_name")), "Sequential") == 0;
}

static bool begins_with_input(const struct comparable *c)
{
    const json_t *first = json_array_get(json_at(c->doc, "spec.model.layers"), 0);
    const char *class = json_string_value(json_object_get(first, "class_name"));
    return json_object_get(first, "InputLayer") != NULL || (class != NULL && strcmp(class, "InputLayer") == 0);
}

/* inputShape and layers. */
static json_t *short_model(const json_t *keras, bool with_input)
{
    json_t *model = json_object(), *layers = simple(json_at(keras, "config.layers"));
    json_t *shape = json_at(json_array_get(layers, 0), "InputLayer.batch_shape");
    if (shape != NULL && !with_input) {
        json_array_remove(shape, 0); /* of the batch */
        json_object_set(model, "inputShape", shape);
        json_array_remove(layers, 0);
    }
    json_object_set_new(model, "layers", layers);
    return model;
}

static json_t *classes_text(const json_t *layers)
{
    AUTO_FINI(buf) text = BUF_INIT;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const char *class = class_of(json_array_get(layers, i));
        buf_printf(&text, "%s%s", i > 0 ? ", " : "", class != NULL ? class : "?");
    }
    return json_string(text.data != NULL ? text.data : "");
}

static void level_layers(json_t *was, json_t *now)
{
    json_t *a = json_object_get(was, "layers"), *b = json_object_get(now, "layers");
    if (json_array_size(a) == json_array_size(b))
        return;
    json_object_set_new(was, "layers", classes_text(a));
    json_object_set_new(now, "layers", classes_text(b));
}

static json_t *keras_model(const char *key, const json_t *keras)
{
    json_t *model = json_object(), *written = json_object(), *config = json_object();
    json_object_set_new(config, "layers", json_deep_copy(json_at(keras, "config.layers")));
    json_object_set_new(written, "config", config);
    json_object_set_new(model, key, written);
    return model;
}

/* ---- the specs ---- */

static json_t *optimizer_object(const struct optimizer *o)
{
    json_auto_t *config = optimizer_config(o);
    json_t *slots = json_array();
    for (int i = 0; i < optimizer_slots(o); i++)
        json_array_append_new(slots, json_string(optimizer_slot_name(o, i)));
    json_object_set_new(config, "slots", slots);
    return named(optimizer_name(o), config);
}

static json_t *compile_object(const struct model *m, const json_t *keras)
{
    const json_t *compiled = json_object_get(keras, "compile_config");
    json_t *compile = json_object();
    json_object_set_new(compile, "optimizer", optimizer_object(model_optimizer(m)));
    json_object_set_new(compile, "loss", simple(json_object_get(compiled, "loss")));
    if (!json_is_null(json_object_get(compiled, "loss_weights")))
        json_object_set_new(compile, "lossWeights", simple(json_object_get(compiled, "loss_weights")));
    json_object_set_new(compile, "metrics", simple(json_object_get(compiled, "metrics")));
    json_object_set_new(compile, "weightedMetrics", simple(json_object_get(compiled, "weighted_metrics")));
    return compile;
}

void comparable_specs(const struct comparable *was, const struct comparable *now, json_t **ret_was, json_t **ret_now)
{
    json_auto_t *from = model_to_json(was->model), *to = model_to_json(now->model);
    const char *key = model_key(now);
    bool as_layers = strcmp(key, "layers") == 0 && is_chain(from) && is_chain(to), input = begins_with_input(now);
    json_t *a = json_deep_copy(json_object_get(was->doc, "spec")),
           *b = json_deep_copy(json_object_get(now->doc, "spec"));
    json_object_set_new(a, "model", as_layers ? short_model(from, input) : keras_model(key, from));
    json_object_set_new(b, "model", as_layers ? short_model(to, input) : keras_model(key, to));
    json_object_set_new(a, "compile", compile_object(was->model, from));
    json_object_set_new(b, "compile", compile_object(now->model, to));
    if (as_layers)
        level_layers(json_object_get(a, "model"), json_object_get(b, "model"));
    settle_members(json_object_get(a, "model"), json_object_get(b, "model"));
    settle_members(json_object_get(a, "compile"), json_object_get(b, "compile"));
    *ret_was = a;
    *ret_now = b;
}
