/* The order of the nodes within their layers: sweeps down and up, in which a node moves to the mean place of its
 * neighbours. Of all orders seen the first with the fewest crossings is kept, so the result depends on the graph only.
 */
#include <string.h>

#include "graph_layers.h"

enum { GRAPH_SWEEPS = 12 };

/* Where a node wants to be: sum / n. */
struct graph_wish {
    size_t node, place;
    uint64_t sum, n;
};

static int graph_order_by_wish(const void *a, const void *b)
{
    const struct graph_wish *l = a, *r = b;
    uint64_t left = l->sum * r->n, right = r->sum * l->n;
    if (left != right)
        return left < right ? -1 : 1;
    return l->place < r->place ? -1 : 1;
}

static void graph_order_renumber(struct graph_layers *g)
{
    for (size_t i = 0; i < g->nlayers; i++)
        for (size_t k = g->start[i]; k < g->start[i + 1]; k++)
            g->place[g->order[k]] = k - g->start[i];
}

static void graph_order_layer(struct graph_layers *g, size_t layer, const struct graph_links *links,
                              struct graph_wish *wishes)
{
    size_t *order = g->order + g->start[layer], n = g->start[layer + 1] - g->start[layer];
    for (size_t i = 0; i < n; i++) {
        size_t v = order[i];
        struct graph_wish w = { .node = v, .place = i, .n = links->start[v + 1] - links->start[v] };
        for (size_t k = links->start[v]; k < links->start[v + 1]; k++)
            w.sum += g->place[links->to[k]];
        if (w.n == 0) {
            w.sum = i;
            w.n = 1;
        }
        wishes[i] = w;
    }
    qsort(wishes, n, sizeof(*wishes), graph_order_by_wish);
    for (size_t i = 0; i < n; i++) {
        order[i] = wishes[i].node;
        g->place[order[i]] = i;
    }
}

/* Crossings below one layer: pairs of links whose lower ends are in the other order than their upper ends. `tree` is
 * a Fenwick tree over the places of the lower layer. */
static uint64_t graph_order_crossings_below(const struct graph_layers *g, size_t layer, size_t *tree)
{
    size_t n = g->start[layer + 2] - g->start[layer + 1], seen = 0;
    uint64_t crossings = 0;
    memset(tree, 0, (n + 1) * sizeof(*tree));
    for (size_t i = g->start[layer]; i < g->start[layer + 1]; i++) {
        size_t v = g->order[i], begin = g->down.start[v], end = g->down.start[v + 1];
        for (size_t k = begin; k < end; k++) {
            crossings += seen;
            for (size_t p = g->place[g->down.to[k]] + 1; p > 0; p &= p - 1)
                crossings -= tree[p];
        }
        for (size_t k = begin; k < end; k++) /* links of one node do not cross each other */
            for (size_t p = g->place[g->down.to[k]] + 1; p <= n; p += p & -p)
                tree[p]++;
        seen += end - begin;
    }
    return crossings;
}

static uint64_t graph_order_crossings(const struct graph_layers *g, size_t *tree)
{
    uint64_t crossings = 0;
    for (size_t i = 0; i + 1 < g->nlayers; i++)
        crossings += graph_order_crossings_below(g, i, tree);
    return crossings;
}

static void graph_order_sweep(struct graph_layers *g, bool down, struct graph_wish *wishes)
{
    for (size_t i = 1; i < g->nlayers; i++)
        graph_order_layer(g, down ? i : g->nlayers - 1 - i, down ? &g->up : &g->down, wishes);
}

void graph_order(struct graph_layers *g)
{
    auto_free struct graph_wish *wishes = xcalloc(g->n + 1, sizeof(*wishes));
    auto_free size_t *tree = xcalloc(g->n + 1, sizeof(*tree));
    auto_free size_t *best = xmemdup(g->order, g->n * sizeof(*best));

    graph_order_renumber(g);
    uint64_t fewest = graph_order_crossings(g, tree);
    for (int sweep = 0; sweep < GRAPH_SWEEPS && fewest > 0; sweep++) {
        graph_order_sweep(g, sweep % 2 == 0, wishes);
        uint64_t crossings = graph_order_crossings(g, tree);
        if (crossings < fewest) {
            fewest = crossings;
            memcpy(best, g->order, g->n * sizeof(*best));
        }
    }
    memcpy(g->order, best, g->n * sizeof(*best));
    graph_order_renumber(g);
}
