/* The list that h5.c, safetensors.c and the readers of weights in lib/chief fill: it owns names, never elements. */
#include "data/named_array.h"

#include "base/mem.h"

struct named_array *named_arrays_add(struct named_arrays *l, char *name, char *owner)
{
    if (l->n == l->cap) {
        l->cap = MAX(2 * l->cap, (size_t)16);
        l->items = xrealloc(l->items, l->cap * sizeof(l->items[0]));
    }
    l->items[l->n] = (struct named_array){ .name = name, .owner = owner };
    return &l->items[l->n++];
}

void named_arrays_fini(struct named_arrays *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->items[i].name);
        free(l->items[i].owner);
    }
    free(l->items);
}
