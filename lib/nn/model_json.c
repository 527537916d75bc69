/* Keras 3's Model.to_json(): keras/src/saving/serialization_lib.py, models/sequential.py, models/functional.py. */
#include "nn/model_impl.h"

static json_t *graph_json(const struct model *m, const struct model_graph *g, bool sequential);

static json_t *input_layer_json(const struct graph_input *in)
{
    json_t *config = json_pack("{s:o, s:s, s:b, s:b, s:s, s:b}", "batch_shape", shape_json(&in->shape, true), "dtype",
                               "float32", "sparse", 0, "ragged", 0, "name", in->name, "optional", 0);
    return kind_serialized("keras.layers", "InputLayer", config);
}

static json_t *item_json(const struct model *m, const struct model_graph *g, const struct graph_item *it)
{
    return it->kind == ITEM_INPUT   ? input_layer_json(&g->inputs[it->index])
           : it->kind == ITEM_LAYER ? layer_json(&m->layers[it->index])
                                    : graph_json(m, m->graphs[it->index], m->graphs[it->index]->sequential);
}

/* ---- functional models ---- */

/* [layer, call, output]. first: the number of the first call. */
static json_t *history_json(const struct model *m, const struct model_graph *g, const struct graph_tensor *t,
                            size_t first)
{
    size_t item = g->calls[t->call].item;
    return json_pack("[s, I, I]", model_item_name(m, g, item), (json_int_t)(t->call - g->items[item].first + first),
                     (json_int_t)t->output);
}

static json_t *tensor_json(const struct model *m, const struct model_graph *g, const struct graph_tensor *t)
{
    return json_pack("{s:s, s:{s:o, s:s, s:o}}", "class_name", "__keras_tensor__", "config", "shape",
                     shape_json(&g->calls[t->call].shapes[t->output], true), "dtype", "float32", "keras_history",
                     history_json(m, g, t, 0));
}

/* The tensor, or a list of tensors. */
static json_t *call_json(const struct model *m, const struct model_graph *g, const struct graph_call *c)
{
    const struct graph_item *it = &g->items[c->item];
    json_t *tensors = json_array();
    for (size_t k = 0; k < c->n; k++)
        json_array_append_new(tensors, tensor_json(m, g, &g->tensors[c->first + k]));
    if (c->n > 1 || (it->kind == ITEM_LAYER && m->layers[it->index].row->joins))
        tensors = json_pack("[o]", tensors);
    return json_pack("{s:o, s:{}}", "args", tensors, "kwargs");
}

static void connect_json(const struct model *m, const struct model_graph *g, size_t item, json_t *layer)
{
    const struct graph_item *it = &g->items[item];
    json_t *calls = json_array();
    for (size_t i = 0; i < it->ncalls && it->kind != ITEM_INPUT; i++)
        json_array_append_new(calls, call_json(m, g, &g->calls[it->first + i]));
    json_object_set_new(layer, "name", json_string(model_item_name(m, g, item)));
    json_object_set_new(layer, "inbound_nodes", calls);
}

/* One end alone, as Keras writes Model(x, y); else the list. */
static json_t *one_or_list(json_t *list)
{
    if (json_array_size(list) != 1)
        return list;
    json_t *one = json_incref(json_array_get(list, 0));
    json_decref(list);
    return one;
}

static json_t *inputs_json(const struct model_graph *g)
{
    json_t *list = json_array();
    for (size_t i = 0; i < g->ninputs; i++)
        json_array_append_new(list, json_pack("[s, i, i]", g->inputs[i].name, 0, 0));
    return list;
}

/* Here Keras counts the calls of a nested functional model from 1. */
static json_t *outputs_json(const struct model *m, const struct model_graph *g)
{
    json_t *list = json_array();
    for (size_t i = 0; i < g->noutputs; i++) {
        const struct graph_item *it = &g->items[g->calls[g->outputs[i].call].item];
        bool nested = it->kind == ITEM_MODEL && !m->graphs[it->index]->sequential;
        json_array_append_new(list, history_json(m, g, &g->outputs[i], nested ? 1 : 0));
    }
    return list;
}

/* ---- models ---- */

static json_t *build_shape_json(const struct model_graph *g)
{
    json_t *list = json_array();
    for (size_t i = 0; i < g->ninputs; i++)
        json_array_append_new(list, shape_json(&g->inputs[i].shape, true));
    return one_or_list(list);
}

/* sequential: the graph is a chain, and is written as a Sequential model. */
static json_t *graph_json(const struct model *m, const struct model_graph *g, bool sequential)
{
    json_t *layers = json_array(), *config = json_pack("{s:s, s:b}", "name", g->name, "trainable", !g->frozen);
    for (size_t i = 0; i < g->nitems; i++) {
        size_t item = sequential ? g->calls[g->order[i]].item : i;
        json_t *layer = item_json(m, g, &g->items[item]);
        if (!sequential)
            connect_json(m, g, item, layer);
        json_array_append_new(layers, layer);
    }
    json_object_set_new(config, "layers", layers);
    if (sequential) {
        json_object_set_new(config, "dtype",
                            kind_serialized("keras", "DTypePolicy", json_pack("{s:s}", "name", "float32")));
        json_object_set_new(config, "build_input_shape", shape_json(&g->inputs[0].shape, true));
    } else {
        json_object_set_new(config, "input_layers", one_or_list(inputs_json(g)));
        json_object_set_new(config, "output_layers", one_or_list(outputs_json(m, g)));
    }
    /* As Keras 3 writes them: it does not export Functional from its public modules. */
    json_t *model = kind_serialized(sequential ? "keras" : "keras.src.models.functional",
                                    sequential ? "Sequential" : "Functional", config);
    if (!sequential)
        json_object_set_new(model, "registered_name", json_string("Functional"));
    json_object_set_new(model, "build_config", json_pack("{s:o}", "input_shape", build_shape_json(g)));
    return model;
}

json_t *model_to_json(const struct model *m)
{
    json_t *model = graph_json(m, m->graphs[0], model_is_chain(m));
    if (m->optimizer != NULL)
        json_object_set_new(model, "compile_config", model_compile_json(m));
    return model;
}
