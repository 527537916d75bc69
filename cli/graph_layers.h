/* graph_layers - a graph in layers, which the steps of cli/graph_layout.h share. Its nodes are the boxes, followed by
 * the points at which edges pass a layer. Each link joins two neighbouring layers.
 */
#ifndef TRAINYARD_CLI_GRAPH_LAYERS_H
#define TRAINYARD_CLI_GRAPH_LAYERS_H

#include "graph_layout.h"

/* The neighbours of node v on one side are to[start[v]] to to[start[v + 1] - 1]. */
struct graph_links {
    size_t *start, *to;
};

struct graph_layers {
    const struct graph_node *boxes;
    size_t nboxes, n; /* nodes; those from nboxes on are points */
    size_t nlayers;
    size_t *layer; /* of each node */
    size_t *start,
        *order;    /* the nodes of layer i, from left to right, are order[start[i]] to order[start[i + 1] - 1] */
    size_t *place; /* of each node: from the left within its layer */
    struct graph_links up, down;
    int *x; /* of each node: its middle */
};

static inline bool graph_layers_is_box(const struct graph_layers *g, size_t node)
{
    return node < g->nboxes;
}

/* Orders the nodes within their layers so that few links cross. */
void graph_order(struct graph_layers *g);
/* Chooses each x, without an overlap. */
void graph_align(struct graph_layers *g);

#endif
