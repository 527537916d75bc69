/* Keras 3's Model.to_json(): keras/src/saving/serialization_lib.py, models/sequential.py. */
#include "nn/model_impl.h"

static json_t *input_layer_json(const struct model *m)
{
    json_t *config = json_pack("{s:o, s:s, s:b, s:b, s:s, s:b}", "batch_shape", shape_json(&m->input, true), "dtype",
                               "float32", "sparse", 0, "ragged", 0, "name", m->input_name, "optional", 0);
    return kind_serialized("keras.layers", "InputLayer", config);
}

static json_t *compile_json(const struct model *m)
{
    json_t *optimizer =
        kind_serialized("keras.optimizers", optimizer_name(m->optimizer), optimizer_config(m->optimizer));
    return json_pack("{s:o, s:o, s:n, s:o, s:o, s:b, s:i, s:b}", "optimizer", optimizer, "loss", loss_json(m->loss),
                     "loss_weights", "metrics", metric_list_json(m->metrics, false), "weighted_metrics",
                     metric_list_json(m->metrics, true), "run_eagerly", 0, "steps_per_execution", 1, "jit_compile", 0);
}

static json_t *sequential_layers(const struct model *m)
{
    json_t *layers = json_array();
    json_array_append_new(layers, input_layer_json(m));
    for (size_t i = 0; i < m->nlayers; i++)
        json_array_append_new(layers, layer_json(&m->layers[i]));
    return layers;
}

/* ---- functional models: keras/src/models/functional.py ---- */

static const char *maker_of(const struct model *m, size_t tensor)
{
    return tensor == 0 ? m->input_name : m->layers[m->nodes[tensor - 1].layer].name;
}

static json_t *history_json(const struct model *m, size_t tensor)
{
    return json_pack("[s, i, i]", maker_of(m, tensor), 0, 0);
}

static json_t *tensor_json(const struct model *m, size_t tensor)
{
    return json_pack("{s:s, s:{s:o, s:s, s:o}}", "class_name", "__keras_tensor__", "config", "shape",
                     shape_json(model_tensor(m, tensor), true), "dtype", "float32", "keras_history",
                     history_json(m, tensor));
}

/* The tensor, or for a layer that joins a list of tensors. */
static json_t *call_json(const struct model *m, const struct model_node *n)
{
    json_t *tensors = json_array();
    for (size_t k = 0; k < n->nin; k++)
        json_array_append_new(tensors, tensor_json(m, n->in[k]));
    if (m->layers[n->layer].row->joins)
        tensors = json_pack("[o]", tensors);
    return json_pack("{s:o, s:{}}", "args", tensors, "kwargs");
}

static json_t *functional_layers(const struct model *m)
{
    json_t *layers = json_array(), *input = input_layer_json(m);
    json_object_set_new(input, "name", json_string(m->input_name));
    json_object_set_new(input, "inbound_nodes", json_array());
    json_array_append_new(layers, input);
    for (size_t i = 0; i < m->nnodes; i++) {
        const struct layer *l = &m->layers[m->nodes[i].layer];
        json_t *layer = layer_json(l);
        json_object_set_new(layer, "name", json_string(l->name));
        json_object_set_new(layer, "inbound_nodes", json_pack("[o]", call_json(m, &m->nodes[i])));
        json_array_append_new(layers, layer);
    }
    return layers;
}

json_t *model_to_json(const struct model *m)
{
    bool chain = model_is_chain(m);
    json_t *dtype = kind_serialized("keras", "DTypePolicy", json_pack("{s:s}", "name", "float32"));
    json_t *config = json_pack("{s:s, s:b, s:o, s:o}", "name", m->name, "trainable", 1, "dtype", dtype, "layers",
                               chain ? sequential_layers(m) : functional_layers(m));
    if (chain) {
        json_object_set_new(config, "build_input_shape", shape_json(&m->input, true));
    } else {
        json_object_del(config, "dtype");
        json_object_set_new(config, "input_layers", json_pack("[o]", history_json(m, 0)));
        json_object_set_new(config, "output_layers", json_pack("[o]", history_json(m, m->nnodes)));
    }
    /* As Keras 3 writes them: it does not export Functional from its public modules. */
    json_t *model =
        kind_serialized(chain ? "keras" : "keras.src.models.functional", chain ? "Sequential" : "Functional", config);
    if (!chain)
        json_object_set_new(model, "registered_name", json_string("Functional"));
    json_object_set_new(model, "build_config", json_pack("{s:o}", "input_shape", shape_json(&m->input, true)));
    if (m->optimizer != NULL)
        json_object_set_new(model, "compile_config", compile_json(m));
    return model;
}
