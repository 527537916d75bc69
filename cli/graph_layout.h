/* graph_layout - where the boxes and edges of a directed acyclic graph lie in a picture, from top to bottom (Sugiyama's
 * method). A box lies below all boxes that it reads. Boxes do not overlap, and no edge crosses a box.
 *
 * Edges of one source that span several layers share the points that they pass: it is the same tensor. When these
 * points are too many, the longest edges run along the right side of the picture. Pure, in integers.
 */
#ifndef TRAINYARD_CLI_GRAPH_LAYOUT_H
#define TRAINYARD_CLI_GRAPH_LAYOUT_H

#include <stdbool.h>

#include "base/mem.h"

enum { GRAPH_BOXES_MAX = 100000, GRAPH_EDGES_MAX = 1000000 };

struct graph_node {
    int width, height;
    int above, below, beside; /* additional room, between boxes of different groups only for `beside` */
    size_t group;             /* boxes of one number may stand close to each other */
    const size_t *from;       /* the boxes that it reads, all of smaller index; one may occur twice */
    size_t nfrom;
};

struct graph_place {
    int x, y; /* upper left corner */
};

struct graph_point {
    int x, y;
};

/* Between two points of different x the edge is a curve that is vertical at both, else a straight line. */
struct graph_edge {
    size_t from, to;       /* one edge for all tensors of `from` that `to` reads */
    size_t first, npoints; /* in points; they begin where the edge leaves an earlier edge of this source, or at it */
    bool aside;            /* runs along the right side */
};

struct graph_layout {
    int width, height;          /* of all boxes and edges; the smallest x and y are 0 */
    struct graph_place *places; /* of each box */
    struct graph_edge *edges;   /* by source, then from top to bottom */
    struct graph_point *points;
    size_t nedges, npoints;
};
void graph_layout_fini(struct graph_layout *l);
DEFINE_AUTO_FINI(graph_layout, graph_layout_fini);

/* ERR_INPUT for too large a graph, ERR_INTERNAL when a box reads itself or a later one. */
MUST_USE int graph_layout(const struct graph_node *nodes, size_t n, struct graph_layout *ret, struct err *e);

#endif
