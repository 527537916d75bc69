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

json_t *model_to_json(const struct model *m)
{
    json_t *layers = json_array();
    json_array_append_new(layers, input_layer_json(m));
    for (size_t i = 0; i < m->nlayers; i++)
        json_array_append_new(layers, layer_json(&m->layers[i]));

    json_t *dtype = kind_serialized("keras", "DTypePolicy", json_pack("{s:s}", "name", "float32"));
    json_t *config = json_pack("{s:s, s:b, s:o, s:o, s:o}", "name", m->name, "trainable", 1, "dtype", dtype, "layers",
                               layers, "build_input_shape", shape_json(&m->input, true));
    json_t *model = kind_serialized("keras", "Sequential", config);
    json_object_set_new(model, "build_config", json_pack("{s:o}", "input_shape", shape_json(&m->input, true)));
    if (m->optimizer != NULL)
        json_object_set_new(model, "compile_config", compile_json(m));
    return model;
}
