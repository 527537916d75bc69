/* What graphs of both kinds share: chains, places, release. */
#include "nn/model_graph.h"

#include "base/str.h"

bool graph_is_model_class(const char *class_name)
{
    return str_eq(class_name, "Sequential") || str_eq(class_name, "Functional") || str_eq(class_name, "Model");
}

/* The class of a layer: {class_name: Dense}, {Dense: {...}} or Dense alone. */
static const char *class_of_layer(const struct node *layer)
{
    struct node class_name = node_get(layer, "class_name");
    if (json_is_string(layer->v))
        return json_string_value(layer->v);
    return node_present(&class_name) ? json_string_value(class_name.v) : node_key(layer, 0);
}

enum graph_item_kind graph_kind_of(const struct node *layer)
{
    const char *class_name = class_of_layer(layer);
    return str_eq(class_name, "InputLayer") ? ITEM_INPUT : graph_is_model_class(class_name) ? ITEM_MODEL : ITEM_LAYER;
}

void graph_read_chain(const struct node *layers, struct model_graph *g)
{
    struct node first = node_item(layers, 0);
    size_t hidden = node_size(layers) > 0 && graph_kind_of(&first) == ITEM_INPUT ? 0 : 1;
    size_t n = node_size(layers) + hidden;

    *g = (struct model_graph){ .sequential = true,
                               .hidden = hidden,
                               .nitems = n,
                               .ncalls = n,
                               .ntensors = n - 1,
                               .ninputs = 1,
                               .noutputs = 1,
                               .items = xcalloc(n, sizeof(g->items[0])),
                               .calls = xcalloc(n, sizeof(g->calls[0])),
                               .order = xcalloc(n, sizeof(g->order[0])),
                               .tensors = xcalloc(n, sizeof(g->tensors[0])),
                               .inputs = xcalloc(1, sizeof(g->inputs[0])),
                               .outputs = xcalloc(1, sizeof(g->outputs[0])) };
    g->outputs[0].call = n - 1;
    for (size_t i = 0; i < n; i++) {
        struct node layer = node_item(layers, i - hidden);
        g->order[i] = i;
        g->items[i] = (struct graph_item){ .kind = i == 0 ? ITEM_INPUT : graph_kind_of(&layer),
                                           .index = i == 0 ? 0 : SIZE_MAX,
                                           .place = MAX(i, hidden) - hidden,
                                           .first = i,
                                           .ncalls = 1 };
        g->calls[i].item = i;
        if (i == 0)
            continue;
        g->calls[i].first = i - 1;
        g->calls[i].n = 1;
        g->tensors[i - 1].call = i - 1;
    }
}

bool graph_is_chain(const struct model_graph *g)
{
    for (size_t i = 0; i < g->ncalls; i++) {
        const struct graph_call *c = &g->calls[g->order[i]];
        if (g->items[c->item].ncalls != 1 || c->n != (i > 0))
            return false;
        if (i > 0 && g->tensors[c->first].call != g->order[i - 1])
            return false;
    }
    return g->noutputs == 1;
}

struct node graph_item_place(const struct model_graph *g, const struct node *layers, size_t item)
{
    return item < g->hidden ? *layers : node_item(layers, g->items[item].place);
}

struct node graph_call_place(const struct model_graph *g, const struct node *layers, size_t call)
{
    size_t item = g->calls[call].item;
    struct node layer = graph_item_place(g, layers, item), calls = node_get(&layer, "inbound_nodes");
    return g->sequential ? layer : node_item(&calls, call - g->items[item].first);
}

void model_graph_fini(struct model_graph *g)
{
    for (size_t i = 0; i < g->ninputs && g->inputs != NULL; i++)
        free(g->inputs[i].name);
    for (size_t i = 0; i < g->ncalls; i++)
        free(g->calls[i].shapes);
    free(g->name);
    free(g->scope);
    free(g->items);
    free(g->calls);
    free(g->order);
    free(g->tensors);
    free(g->outputs);
    free(g->inputs);
}
