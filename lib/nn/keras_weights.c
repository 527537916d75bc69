/* Names variables as Keras does in its weight files: by layer, and by class with a number. */
#include "nn/keras_weights.h"

#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "nn/model_impl.h"

_Static_assert((int)KERAS_LAYER_VARS >= (int)LAYER_VARS_MAX, "all variables of a layer");

/* "dense", "dense_1", ...: the class in snake case, counted. */
static char *group_of(const char *base, struct map *used)
{
    uintptr_t count = (uintptr_t)map_get(used, base);
    (void)map_put(used, base, (void *)(count + 1)); /* NOLINT: a number in a pointer */
    return count == 0 ? xasprintf("layers/%s", base) : xasprintf("layers/%s_%zu", base, (size_t)count);
}

struct keras_weights keras_weights_of(const struct model *m)
{
    AUTO_FINI(map) used = { 0 };
    struct keras_weights w = { .layers = xcalloc(m->nlayers + 1, sizeof(w.layers[0])), .n = m->nlayers };
    for (size_t i = 0; i < m->nlayers; i++) {
        const struct layer *l = &m->layers[i];
        struct keras_layer *k = &w.layers[i];
        k->name = l->name;
        k->group = group_of(l->row->auto_name, &used);
        k->nvariables = l->nvars;
        k->counts = layer_wants_adapt(l);
        memcpy(k->variable, l->var_index, (size_t)l->nvars * sizeof(k->variable[0]));
    }
    return w;
}

void keras_weights_fini(struct keras_weights *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->layers[i].group);
    free(w->layers);
}
