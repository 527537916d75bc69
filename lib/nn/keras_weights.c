/* Names variables as Keras does in its weight files: by layer, and by class with a number. */
#include "nn/keras_weights.h"

#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "nn/model_impl.h"

_Static_assert((int)KERAS_LAYER_VARS >= (int)LAYER_VARS_MAX, "all variables of a layer");

struct keras_naming {
    const struct model *m;
    struct keras_weights w;
};

/* "layers/dense", "layers/dense_1", ...: the class in snake case, counted. */
static char *group_of(const char *within, const char *base, struct map *used)
{
    uintptr_t count = (uintptr_t)map_get(used, base);
    (void)map_put(used, base, (void *)(count + 1)); /* NOLINT: a number in a pointer */
    return count == 0 ? xasprintf("%slayers/%s", within, base)
                      : xasprintf("%slayers/%s_%zu", within, base, (size_t)count);
}

static void name_layer(struct keras_naming *n, size_t layer, const char *path, char *group)
{
    const struct layer *l = &n->m->layers[layer];
    struct keras_layer *k = &n->w.layers[n->w.n++];
    k->name = l->name;
    k->path = xasprintf("%s%s", path, l->name);
    k->group = group;
    k->nvariables = l->nvars;
    k->counts = layer_wants_adapt(l);
    memcpy(k->variable, l->var_index, (size_t)l->nvars * sizeof(k->variable[0]));
}

/* The layers of a graph, in the order of its document; those of nested models are in the group of the model. */
static void name_layers(struct keras_naming *n, const struct model_graph *g, const char *within, const char *path)
{
    AUTO_FINI(map) used = { 0 };
    for (size_t i = 0; i < g->nitems; i++) {
        const struct graph_item *it = &g->items[i];
        if (it->kind == ITEM_LAYER) {
            name_layer(n, it->index, path, group_of(within, n->m->layers[it->index].row->auto_name, &used));
        } else if (it->kind == ITEM_MODEL) {
            const struct model_graph *inner = n->m->graphs[it->index];
            auto_free char *group = group_of(within, inner->sequential ? "sequential" : "functional", &used);
            auto_free char *inner_within = xasprintf("%s/", group), *inner_path = xasprintf("%s%s/", path, inner->name);
            name_layers(n, inner, inner_within, inner_path);
        }
    }
}

struct keras_weights keras_weights_of(const struct model *m)
{
    struct keras_naming n = { .m = m, .w = { .layers = xcalloc(m->nlayers + 1, sizeof(n.w.layers[0])) } };
    name_layers(&n, m->graphs[0], "", "");
    return n.w;
}

void keras_weights_fini(struct keras_weights *w)
{
    for (size_t i = 0; i < w->n; i++) {
        free(w->layers[i].group);
        free(w->layers[i].path);
    }
    free(w->layers);
}
