/* Finds the model in the documents that tools around Keras write. */
#include "nn/keras_document.h"

#include <string.h>

#include "base/str.h"

/* {"format": "layers-model", "modelTopology": {"keras_version": ..., "model_config": {...}}, "weightsManifest": ...} */
static int enter_tfjs(struct node *n, struct err *e)
{
    struct node topology = node_get(n, "modelTopology"), graph = node_get(&topology, "node");
    if (!node_present(&topology))
        return 0;
    if (node_present(&graph))
        return node_error(n, e,
                          "this is a graph of TensorFlow.js, which has no layers any more; use the Keras model "
                          "from which it was converted (model.to_json())");
    *n = topology;
    return 0;
}

/* Of a Sequential of Keras 2.0 to 2.2, config is the list itself. */
static struct node layers_of(const struct node *n)
{
    struct node config = node_get(n, "config");
    return json_is_array(config.v) ? config : node_get(&config, "layers");
}

/* Keys of Keras 1 that later ones have renamed, in one of the first layers. */
static bool looks_like_keras_1(const struct node *n)
{
    static const char *const KEYS[] = { "W_regularizer", "b_regularizer", "W_constraint", "b_constraint", "init" };
    struct node layers = layers_of(n);
    for (size_t i = 0; i < node_size(&layers) && i < 4; i++) {
        struct node layer = node_item(&layers, i), own = node_get(&layer, "config");
        for (size_t k = 0; k < COUNT_OF(KEYS); k++)
            if (json_object_get(own.v, KEYS[k]) != NULL)
                return true;
    }
    return false;
}

/* Keras 3 names the module of each object, and writes no version into the text of a model. */
static bool looks_like_keras_2(const struct node *n)
{
    struct node layers = layers_of(n), first = node_item(&layers, 0);
    return json_object_get(first.v, "module") == NULL;
}

int keras_document_model(struct node *n, bool *ret_keras_2, struct err *e)
{
    n->lenient = true;
    if (enter_tfjs(n, e) < 0)
        return -1;
    struct node version = node_get(n, "keras_version"), inner = node_get(n, "model_config");
    if (json_is_object(inner.v))
        *n = inner;
    if (!node_present(&version))
        version = node_get(n, "keras_version");
    const char *text = json_string_value(version.v);
    if (text != NULL ? strncmp(text, "1.", 2) == 0 : looks_like_keras_1(n))
        return node_error(text != NULL ? &version : n, e,
                          "this is a model of Keras %.20s, whose format is not read; load it with Keras 2 and write it "
                          "again (model.to_json())",
                          text != NULL ? text : "1");
    *ret_keras_2 = text != NULL ? text[0] != '3' : looks_like_keras_2(n);
    return 0;
}
