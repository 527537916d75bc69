/* The layout of cli/graph_layout.h, except for the order within the layers (cli/graph_order.c) and for x
 * (cli/graph_align.c): layers, points of long edges, y, and the points of each edge. Memory is bounded by GRAPH_POINTS
 * and by the limits of the header.
 */
#include "graph_layout.h"

#include <stdint.h>
#include <stdlib.h>

#include "graph_layers.h"

enum {
    GRAPH_POINTS = 200000, /* at which long edges pass layers, at most */
    GRAPH_ROOM = 34,       /* between two layers, and more where an edge goes far to the side */
    GRAPH_ROOM_MAX = 110,
    GRAPH_STEEPNESS = 8,   /* pixels to the side for one more pixel of room */
    GRAPH_PORTS = 16,      /* between the ends of two edges at one box, */
    GRAPH_PORTS_SIDE = 10, /* which keep this distance from its sides */
    GRAPH_LANES = 32,      /* at the right side, then they are shared */
    GRAPH_LANE = 8,
};

/* The points of a source's edges: node first is in the layer below it, and so on. */
struct graph_chain {
    size_t first, n;
    int lane; /* x of its edges at the side, or -1 */
};

struct graph_work {
    struct graph_layers g;
    struct graph_chain *chains; /* of each box */
    struct graph_edge *edges;
    size_t nedges, spans_max; /* edges over more layers run at the side */
    int *top, *bottom;        /* of each layer */
};

static void graph_work_fini(struct graph_work *w)
{
    struct graph_layers *g = &w->g;
    free(g->layer);
    free(g->start);
    free(g->order);
    free(g->place);
    free(g->up.start);
    free(g->up.to);
    free(g->down.start);
    free(g->down.to);
    free(g->x);
    free(w->chains);
    free(w->edges);
    free(w->top);
    free(w->bottom);
}
DEFINE_AUTO_FINI(graph_work, graph_work_fini);

void graph_layout_fini(struct graph_layout *l)
{
    free(l->places);
    free(l->edges);
    free(l->points);
}

static int graph_layout_by_index(const void *a, const void *b)
{
    size_t l = *(const size_t *)a, r = *(const size_t *)b;
    return l < r ? -1 : l > r;
}

/* ---- edges and layers ---- */

static int graph_layout_check(const struct graph_node *nodes, size_t n, size_t *ret_edges, struct err *e)
{
    size_t edges = 0;
    if (n > GRAPH_BOXES_MAX)
        return err_set(e, ERR_INPUT, "a graph of %zu boxes is too large to draw, the limit is %d", n, GRAPH_BOXES_MAX);
    for (size_t i = 0; i < n; i++) {
        if (nodes[i].nfrom > GRAPH_EDGES_MAX - edges)
            return err_set(e, ERR_INPUT, "a graph of more than %d edges is too large to draw", GRAPH_EDGES_MAX);
        edges += nodes[i].nfrom;
        for (size_t k = 0; k < nodes[i].nfrom; k++)
            if (nodes[i].from[k] >= i)
                return err_set(e, ERR_INTERNAL, "box %zu of a graph reads box %zu", i, nodes[i].from[k]);
    }
    *ret_edges = edges;
    return 0;
}

/* The edges without duplicates, by target. */
static void graph_layout_collect(struct graph_work *w, size_t most)
{
    auto_free size_t *sources = xcalloc(most + 1, sizeof(*sources));
    w->edges = xcalloc(most + 1, sizeof(*w->edges));
    for (size_t i = 0; i < w->g.nboxes; i++) {
        const struct graph_node *node = &w->g.boxes[i];
        for (size_t k = 0; k < node->nfrom; k++)
            sources[k] = node->from[k];
        qsort(sources, node->nfrom, sizeof(*sources), graph_layout_by_index);
        for (size_t k = 0; k < node->nfrom; k++)
            if (k == 0 || sources[k] != sources[k - 1])
                w->edges[w->nedges++] = (struct graph_edge){ .from = sources[k], .to = i };
    }
}

/* A layer is the longest path from the boxes without a source. Then an input, with the chain that only it feeds, moves
 * down to the box that reads it. `below` is, for each box, the highest layer that reads it. */
static void graph_layout_layers(struct graph_work *w, size_t *layer)
{
    size_t n = w->g.nboxes;
    auto_free size_t *below = xcalloc(n, sizeof(*below));
    auto_free size_t *readers = xcalloc(n, sizeof(*readers));
    auto_free bool *fixed = xcalloc(n, sizeof(*fixed));

    for (size_t i = 0; i < w->nedges; i++) {
        struct graph_edge *edge = &w->edges[i];
        layer[edge->to] = MAX(layer[edge->to], layer[edge->from] + 1);
        readers[edge->from]++;
    }
    for (size_t i = 0; i < n; i++)
        below[i] = SIZE_MAX;
    for (size_t i = 0; i < w->nedges; i++)
        if (fixed[w->edges[i].from] || readers[w->edges[i].from] > 1)
            fixed[w->edges[i].to] = true;
    size_t edge = w->nedges;
    for (size_t i = n; i-- > 0;) {
        if (!fixed[i] && below[i] != SIZE_MAX)
            layer[i] = below[i] - 1;
        for (; edge > 0 && w->edges[edge - 1].to == i; edge--)
            below[w->edges[edge - 1].from] = MIN(below[w->edges[edge - 1].from], layer[i]);
    }
    for (size_t i = 0; i < n; i++)
        w->g.nlayers = MAX(w->g.nlayers, layer[i] + 1);
}

/* The edges by source, then by the layer of their target. */
static void graph_layout_sort(struct graph_work *w, const size_t *layer)
{
    size_t n = w->g.nboxes, nlayers = w->g.nlayers;
    auto_free size_t *start = xcalloc(MAX(n, nlayers) + 1, sizeof(*start));
    struct graph_edge *by_layer = xcalloc(w->nedges + 1, sizeof(*by_layer));

    for (size_t i = 0; i < w->nedges; i++)
        start[layer[w->edges[i].to] + 1]++;
    for (size_t i = 0; i < nlayers; i++)
        start[i + 1] += start[i];
    for (size_t i = 0; i < w->nedges; i++)
        by_layer[start[layer[w->edges[i].to]]++] = w->edges[i];
    for (size_t i = 0; i <= MAX(n, nlayers); i++)
        start[i] = 0;
    for (size_t i = 0; i < w->nedges; i++)
        start[by_layer[i].from + 1]++;
    for (size_t i = 0; i < n; i++)
        start[i + 1] += start[i];
    for (size_t i = 0; i < w->nedges; i++)
        w->edges[start[by_layer[i].from]++] = by_layer[i];
    free(by_layer);
}

static size_t graph_layout_spans(const size_t *layer, const struct graph_edge *edge)
{
    return layer[edge->to] - layer[edge->from];
}

/* Gives each source the points of its edges, and sends the longest edges to the side until the points are few enough.
 * Returns their number. */
static size_t graph_layout_chains(struct graph_work *w, const size_t *layer)
{
    size_t points, n = w->g.nboxes;
    w->chains = xcalloc(n, sizeof(*w->chains));
    for (w->spans_max = w->g.nlayers;; w->spans_max /= 2) {
        for (size_t i = 0; i < n; i++)
            w->chains[i].n = 0;
        for (size_t i = 0; i < w->nedges; i++) {
            struct graph_chain *chain = &w->chains[w->edges[i].from];
            size_t spans = graph_layout_spans(layer, &w->edges[i]);
            w->edges[i].aside = spans > MAX(w->spans_max, 1);
            if (!w->edges[i].aside)
                chain->n = MAX(chain->n, spans - 1);
        }
        points = 0;
        for (size_t i = 0; i < n; i++) {
            w->chains[i].first = n + points;
            points += w->chains[i].n;
        }
        if (points <= GRAPH_POINTS)
            return points;
    }
}

/* ---- the graph in layers ---- */

/* The node of a source's chain that is `spans` layers below it. */
static size_t graph_layout_chain_node(const struct graph_work *w, size_t source, size_t spans)
{
    return spans == 0 ? source : w->chains[source].first + spans - 1;
}

static void graph_layout_fill_layers(struct graph_work *w, size_t *layer)
{
    struct graph_layers *g = &w->g;
    g->layer = xcalloc(g->n, sizeof(*g->layer));
    g->start = xcalloc(g->nlayers + 1, sizeof(*g->start));
    g->order = xcalloc(g->n, sizeof(*g->order));
    g->place = xcalloc(g->n, sizeof(*g->place));
    g->x = xcalloc(g->n, sizeof(*g->x));
    auto_free size_t *filled = xcalloc(g->nlayers + 1, sizeof(*filled));

    for (size_t i = 0; i < g->nboxes; i++)
        for (size_t k = 0; k <= w->chains[i].n; k++)
            g->layer[graph_layout_chain_node(w, i, k)] = layer[i] + k;
    for (size_t v = 0; v < g->n; v++)
        g->start[g->layer[v] + 1]++;
    for (size_t i = 0; i < g->nlayers; i++)
        filled[i + 1] = g->start[i + 1] += g->start[i];
    for (size_t i = 0; i < g->nboxes; i++)
        for (size_t k = 0; k <= w->chains[i].n; k++) {
            size_t v = graph_layout_chain_node(w, i, k);
            g->order[filled[g->layer[v]]++] = v;
        }
}

/* Two joined nodes of neighbouring layers. */
struct graph_link {
    size_t upper, lower;
};

static size_t graph_layout_list_links(const struct graph_work *w, struct graph_link *links)
{
    const struct graph_layers *g = &w->g;
    size_t n = 0;
    for (size_t i = 0; i < g->nboxes; i++)
        for (size_t k = 0; k < w->chains[i].n; k++)
            links[n++] = (struct graph_link){ graph_layout_chain_node(w, i, k), graph_layout_chain_node(w, i, k + 1) };
    for (size_t i = 0; i < w->nedges; i++) {
        const struct graph_edge *edge = &w->edges[i];
        size_t spans = graph_layout_spans(g->layer, edge);
        if (!edge->aside)
            links[n++] = (struct graph_link){ graph_layout_chain_node(w, edge->from, spans - 1), edge->to };
    }
    return n;
}

static void graph_layout_link(struct graph_work *w)
{
    struct graph_layers *g = &w->g;
    auto_free struct graph_link *links = xcalloc(g->n + w->nedges, sizeof(*links));
    auto_free size_t *up = xcalloc(g->n + 1, sizeof(*up)), *down = xcalloc(g->n + 1, sizeof(*down));
    size_t n = graph_layout_list_links(w, links);

    g->up = (struct graph_links){ xcalloc(g->n + 1, sizeof(size_t)), xcalloc(n + 1, sizeof(size_t)) };
    g->down = (struct graph_links){ xcalloc(g->n + 1, sizeof(size_t)), xcalloc(n + 1, sizeof(size_t)) };
    for (size_t i = 0; i < n; i++) {
        g->down.start[links[i].upper + 1]++;
        g->up.start[links[i].lower + 1]++;
    }
    for (size_t v = 0; v < g->n; v++) {
        up[v + 1] = g->up.start[v + 1] += g->up.start[v];
        down[v + 1] = g->down.start[v + 1] += g->down.start[v];
    }
    for (size_t i = 0; i < n; i++) {
        g->down.to[down[links[i].upper]++] = links[i].lower;
        g->up.to[up[links[i].lower]++] = links[i].upper;
    }
}

/* Sorts the neighbours `to` of each node from left to right. `back` has the same links from the other end. */
static void graph_layout_sort_links(const struct graph_layers *g, struct graph_links *to,
                                    const struct graph_links *back)
{
    auto_free size_t *filled = xmemdup(to->start, (g->n + 1) * sizeof(*filled));
    for (size_t i = 0; i < g->n; i++) {
        size_t v = g->order[i];
        for (size_t k = back->start[v]; k < back->start[v + 1]; k++)
            to->to[filled[back->to[k]]++] = v;
    }
}

/* ---- places ---- */

/* How far an edge goes to the side below each layer. */
static void graph_layout_reaches(const struct graph_work *w, int *reach)
{
    const struct graph_layers *g = &w->g;
    for (size_t v = 0; v < g->n; v++)
        for (size_t k = g->down.start[v]; k < g->down.start[v + 1]; k++)
            reach[g->layer[v]] = MAX(reach[g->layer[v]], abs(g->x[v] - g->x[g->down.to[k]]));
    for (size_t i = 0; i < w->nedges; i++)
        if (w->edges[i].aside)
            reach[g->layer[w->edges[i].from]] = reach[g->layer[w->edges[i].to] - 1] = GRAPH_STEEPNESS * GRAPH_ROOM;
}

static void graph_layout_rows(struct graph_work *w)
{
    const struct graph_layers *g = &w->g;
    auto_free int *reach = xcalloc(g->nlayers, sizeof(*reach));
    int y = 0, below = 0;

    w->top = xcalloc(g->nlayers, sizeof(*w->top));
    w->bottom = xcalloc(g->nlayers, sizeof(*w->bottom));
    graph_layout_reaches(w, reach);
    for (size_t i = 0; i < g->nlayers; i++) {
        int above = 0, height = 0, below_last = below;
        below = 0;
        for (size_t k = g->start[i]; k < g->start[i + 1]; k++) {
            const struct graph_node *box = &g->boxes[g->order[k]];
            if (!graph_layers_is_box(g, g->order[k]))
                continue;
            above = MAX(above, box->above);
            below = MAX(below, box->below);
            height = MAX(height, box->height);
        }
        if (i > 0)
            y += above + below_last + MIN(GRAPH_ROOM + reach[i - 1] / GRAPH_STEEPNESS, GRAPH_ROOM_MAX);
        w->top[i] = y;
        w->bottom[i] = y += height;
    }
}

static void graph_layout_boxes(const struct graph_work *w, struct graph_layout *ret)
{
    const struct graph_layers *g = &w->g;
    ret->places = xcalloc(g->nboxes, sizeof(*ret->places));
    for (size_t i = 0; i < g->nboxes; i++) {
        const struct graph_node *box = &g->boxes[i];
        int row = w->bottom[g->layer[i]] - w->top[g->layer[i]];
        ret->places[i].x = g->x[i] - box->width / 2;
        ret->places[i].y = w->top[g->layer[i]] + (row - box->height) / 2;
        ret->width = MAX(ret->width, ret->places[i].x + box->width);
    }
    for (size_t v = 0; v < g->n; v++)
        ret->width = MAX(ret->width, g->x[v] + 1);
    ret->height = w->bottom[g->nlayers - 1];
}

static void graph_layout_lanes(struct graph_work *w, struct graph_layout *ret)
{
    int used = 0, left = ret->width + GRAPH_ROOM / 2;
    for (size_t i = 0; i < w->g.nboxes; i++)
        w->chains[i].lane = -1;
    for (size_t i = 0; i < w->nedges; i++) {
        struct graph_chain *chain = &w->chains[w->edges[i].from];
        if (!w->edges[i].aside || chain->lane >= 0)
            continue;
        chain->lane = left + used++ % GRAPH_LANES * GRAPH_LANE;
        ret->width = MAX(ret->width, chain->lane + 1);
    }
}

/* ---- the points of edges ---- */

/* An edge that ends at a box, with the x that it comes from. */
struct graph_arrival {
    size_t edge;
    int x;
};

static int graph_layout_by_x(const void *a, const void *b)
{
    const struct graph_arrival *l = a, *r = b;
    if (l->x != r->x)
        return l->x < r->x ? -1 : 1;
    return l->edge < r->edge ? -1 : l->edge > r->edge;
}

static int graph_layout_comes_from(const struct graph_work *w, const struct graph_edge *edge)
{
    if (edge->aside)
        return w->chains[edge->from].lane;
    return w->g.x[graph_layout_chain_node(w, edge->from, graph_layout_spans(w->g.layer, edge) - 1)];
}

/* Where the edges of one box end at its top: one from straight above in its middle, the others on their own side of it.
 */
static void graph_layout_ports(const struct graph_work *w, size_t box, struct graph_arrival *in, size_t n, int *ports)
{
    const int middle = w->g.x[box], half = MAX(w->g.boxes[box].width / 2 - GRAPH_PORTS_SIDE, 0);
    size_t left = 0, right = 0;
    qsort(in, n, sizeof(*in), graph_layout_by_x);
    for (size_t i = 0; i < n; i++) {
        left += in[i].x < middle;
        right += in[i].x > middle;
    }
    bool straight = left + right < n;
    for (size_t i = 0; i < n; i++) { /* halves of the distance between two ports */
        int64_t halves = 2 * (int64_t)i - (int64_t)(n - 1), most = (int64_t)n - 1;
        if (straight) {
            halves = i < left        ? 2 * ((int64_t)i - (int64_t)left)
                     : i < n - right ? 0
                                     : 2 * (int64_t)(i - (n - right) + 1);
            most = 2 * (int64_t)MAX(left, right);
        }
        int64_t offset = halves * GRAPH_PORTS / 2;
        if (most * GRAPH_PORTS / 2 > half)
            offset = halves * half / most;
        ports[in[i].edge] = middle + (int)offset;
    }
}

static void graph_layout_all_ports(const struct graph_work *w, int *ports)
{
    size_t n = w->g.nboxes;
    auto_free size_t *start = xcalloc(n + 2, sizeof(*start));
    auto_free struct graph_arrival *in = xcalloc(w->nedges + 1, sizeof(*in));
    for (size_t i = 0; i < w->nedges; i++)
        start[w->edges[i].to + 2]++;
    for (size_t i = 0; i <= n; i++)
        start[i + 1] += start[i];
    for (size_t i = 0; i < w->nedges; i++)
        in[start[w->edges[i].to + 1]++] =
            (struct graph_arrival){ .edge = i, .x = graph_layout_comes_from(w, &w->edges[i]) };
    for (size_t i = 0; i < n; i++)
        graph_layout_ports(w, i, in + start[i], start[i + 1] - start[i], ports);
}

/* Adds a point. A point equal to the last one, or between two on one vertical line, adds nothing. */
static void graph_layout_add_point(struct graph_layout *l, struct graph_edge *edge, int x, int y)
{
    struct graph_point *last = l->points + l->npoints - 1;
    if (edge->npoints > 0 && last->x == x && last->y == y)
        return;
    if (edge->npoints > 1 && last->x == x && last[-1].x == x) {
        last->y = y;
        return;
    }
    l->points[l->npoints++] = (struct graph_point){ x, y };
    edge->npoints++;
}

/* The part of an edge that an earlier edge of its source, over `drawn` spans, does not have. */
static void graph_layout_route(const struct graph_work *w, struct graph_layout *l, struct graph_edge *edge,
                               size_t drawn, int port)
{
    const struct graph_layers *g = &w->g;
    const size_t above = g->layer[edge->from], last = g->layer[edge->to];
    edge->first = l->npoints;
    if (drawn == 0 || edge->aside) {
        graph_layout_add_point(l, edge, g->x[edge->from], l->places[edge->from].y + g->boxes[edge->from].height);
        graph_layout_add_point(l, edge, g->x[edge->from], w->bottom[above]);
    }
    if (edge->aside) {
        graph_layout_add_point(l, edge, w->chains[edge->from].lane, w->top[above + 1]);
        graph_layout_add_point(l, edge, w->chains[edge->from].lane, w->bottom[last - 1]);
    }
    for (size_t k = drawn; !edge->aside && k < last - above; k++) {
        int x = g->x[graph_layout_chain_node(w, edge->from, k)];
        if (k > drawn)
            graph_layout_add_point(l, edge, x, w->top[above + k]);
        if (k > 0)
            graph_layout_add_point(l, edge, x, w->bottom[above + k]);
    }
    graph_layout_add_point(l, edge, port, w->top[last]);
    graph_layout_add_point(l, edge, port, l->places[edge->to].y);
}

static void graph_layout_edges(struct graph_work *w, struct graph_layout *ret)
{
    auto_free int *ports = xcalloc(w->nedges + 1, sizeof(*ports));
    size_t drawn = 0; /* spans of this source's last edge, less one */

    graph_layout_all_ports(w, ports);
    ret->points = xcalloc(2 * w->g.n + 6 * w->nedges + 1, sizeof(*ret->points));
    for (size_t i = 0; i < w->nedges; i++) {
        struct graph_edge *edge = &w->edges[i];
        if (i == 0 || w->edges[i - 1].from != edge->from)
            drawn = 0;
        graph_layout_route(w, ret, edge, drawn, ports[i]);
        if (!edge->aside)
            drawn = graph_layout_spans(w->g.layer, edge) - 1;
    }
    ret->nedges = w->nedges;
    ret->edges = TAKE(w->edges);
}

int graph_layout(const struct graph_node *nodes, size_t n, struct graph_layout *ret, struct err *e)
{
    AUTO_FINI(graph_work) w = { .g = { .boxes = nodes, .nboxes = n } };
    AUTO_FINI(graph_layout) l = { .width = 0 };
    auto_free size_t *layer = xcalloc(n + 1, sizeof(*layer));
    size_t edges;

    if (graph_layout_check(nodes, n, &edges, e) < 0)
        return -1;
    if (n > 0) {
        graph_layout_collect(&w, edges);
        graph_layout_layers(&w, layer);
        graph_layout_sort(&w, layer);
        w.g.n = n + graph_layout_chains(&w, layer);
        graph_layout_fill_layers(&w, layer);
        graph_layout_link(&w);
        graph_order(&w.g);
        graph_layout_sort_links(&w.g, &w.g.up, &w.g.down);
        graph_layout_sort_links(&w.g, &w.g.down, &w.g.up);
        graph_align(&w.g);
        graph_layout_rows(&w);
        graph_layout_boxes(&w, &l);
        graph_layout_lanes(&w, &l);
        graph_layout_edges(&w, &l);
    }
    *ret = l;
    l = (struct graph_layout){ .width = 0 };
    return 0;
}
