/* The x of the nodes, by the method of Brandes and Koepf: nodes of neighbouring layers are joined to blocks, which
 * stand straight, and the blocks are placed close to each other. This is done four times, from the top and the bottom
 * and from the left and the right; each node gets the mean of the two middle results. As each result keeps the
 * distances of neighbours, so does the mean.
 */
#include <stdint.h>
#include <string.h>

#include "graph_layers.h"

enum { GRAPH_GAP = 28, GRAPH_GAP_POINT = 18, GRAPH_GAP_POINTS = 12 }; /* between two boxes, a box and a point, points */

/* One of the four runs. With `mirrored` left and right change places: x is negated at its end. */
struct graph_run {
    const struct graph_layers *g;
    bool upwards, mirrored;
    size_t *root, *next; /* of each node: the first of its block, and the one after it in a ring */
    const size_t *low, *high;
    const bool *kin_above, *kin_below;
    size_t *pending; /* of each root: blocks to its left that are not placed yet */
    size_t *queue;   /* roots, each after those to its left */
    size_t nqueue;
    int *x;
};

/* Which nodes have a neighbour of their own kind on this side? */
static bool *graph_align_kin(const struct graph_layers *g, const struct graph_links *links)
{
    bool *kin = xcalloc(g->n + 1, sizeof(*kin));
    for (size_t v = 0; v < g->n; v++)
        for (size_t k = links->start[v]; k < links->start[v + 1] && !kin[v]; k++)
            kin[v] = graph_layers_is_box(g, links->to[k]) == graph_layers_is_box(g, v);
    return kin;
}

static int graph_align_distance(const struct graph_layers *g, size_t left, size_t right)
{
    bool l = graph_layers_is_box(g, left), r = graph_layers_is_box(g, right);
    int distance = l && r ? GRAPH_GAP : l || r ? GRAPH_GAP_POINT : GRAPH_GAP_POINTS;
    const struct graph_node *a = l ? &g->boxes[left] : NULL, *b = r ? &g->boxes[right] : NULL;
    bool apart = a == NULL || b == NULL || a->group != b->group;
    if (a != NULL)
        distance += (a->width + 1) / 2 + (apart ? a->beside : 0);
    if (b != NULL)
        distance += (b->width + 1) / 2 + (apart ? b->beside : 0);
    return distance;
}

/* A straight line between two points is worth more than one at a box. low and high are, for each node, the places above
 * it that a link may come from without crossing such a line. */
static void graph_align_limits(const struct graph_layers *g, size_t *low, size_t *high)
{
    for (size_t i = 1; i < g->nlayers; i++) {
        size_t limit = 0;
        for (size_t k = g->start[i]; k < g->start[i + 1]; k++) {
            size_t v = g->order[k], up = g->up.start[v] < g->up.start[v + 1] ? g->up.to[g->up.start[v]] : 0;
            low[v] = limit;
            if (!graph_layers_is_box(g, v) && !graph_layers_is_box(g, up))
                limit = MAX(limit, g->place[up]);
        }
        limit = SIZE_MAX;
        for (size_t k = g->start[i + 1]; k-- > g->start[i];) {
            size_t v = g->order[k], up = g->up.start[v] < g->up.start[v + 1] ? g->up.to[g->up.start[v]] : 0;
            high[v] = limit;
            if (!graph_layers_is_box(g, v) && !graph_layers_is_box(g, up))
                limit = MIN(limit, g->place[up]);
        }
    }
}

/* A box and a point are only joined when neither could be joined to one of its own kind. */
static bool graph_align_may_join(const struct graph_run *r, size_t v, size_t neighbour)
{
    const struct graph_layers *g = r->g;
    size_t upper = r->upwards ? v : neighbour, lower = r->upwards ? neighbour : v;
    bool boxes = graph_layers_is_box(g, upper);
    if (boxes != graph_layers_is_box(g, lower) && (r->kin_below[upper] || r->kin_above[lower]))
        return false;
    if (!boxes && !graph_layers_is_box(g, lower))
        return true;
    return g->place[upper] >= r->low[lower] && g->place[upper] <= r->high[lower];
}

/* The place in the order of this run. */
static size_t graph_align_place(const struct graph_run *r, size_t v)
{
    size_t layer = r->g->layer[v], size = r->g->start[layer + 1] - r->g->start[layer];
    return r->mirrored ? size - 1 - r->g->place[v] : r->g->place[v];
}

/* The neighbours to which v may be joined: of its own kind when it has some, so that chains of boxes and long edges
 * both stand straight. They are in the order of this run. */
static size_t graph_align_neighbours(const struct graph_run *r, size_t v, size_t *ret)
{
    const struct graph_layers *g = r->g;
    const struct graph_links *links = r->upwards ? &g->down : &g->up;
    size_t all = links->start[v + 1] - links->start[v], n = 0;
    const size_t *to = links->to + links->start[v];
    for (size_t k = 0; k < all; k++)
        if (graph_layers_is_box(g, to[k]) == graph_layers_is_box(g, v))
            ret[n++] = to[k];
    for (size_t k = 0; n == 0 && k < all; k++)
        ret[k] = to[k];
    n = n == 0 ? all : n;
    for (size_t k = 0; r->mirrored && k < n / 2; k++) {
        size_t other = ret[k];
        ret[k] = ret[n - 1 - k];
        ret[n - 1 - k] = other;
    }
    return n;
}

/* Joins the nodes of one layer to those of the layer before it in this run, without crossings. */
static void graph_align_layer(struct graph_run *r, size_t layer, size_t *neighbours)
{
    const struct graph_layers *g = r->g;
    size_t begin = g->start[layer], end = g->start[layer + 1], free_from = 0;
    for (size_t i = begin; i < end; i++) {
        size_t v = g->order[r->mirrored ? begin + end - 1 - i : i], n = graph_align_neighbours(r, v, neighbours);
        for (size_t k = n > 0 ? (n - 1) / 2 : 0; n > 0 && k <= n / 2 && r->next[v] == v; k++) {
            size_t u = neighbours[k], place = graph_align_place(r, u);
            if (place < free_from || !graph_align_may_join(r, v, u))
                continue;
            r->next[u] = v;
            r->root[v] = r->root[u];
            r->next[v] = r->root[v];
            free_from = place + 1;
        }
    }
}

/* The node to the right (or, with a negative step, to the left) of v in this run. */
static bool graph_align_beside(const struct graph_run *r, size_t v, int step, size_t *ret)
{
    const struct graph_layers *g = r->g;
    size_t layer = g->layer[v], at = g->start[layer] + g->place[v];
    bool right = (step > 0) != r->mirrored;
    if (right ? at + 1 >= g->start[layer + 1] : at == g->start[layer])
        return false;
    *ret = g->order[right ? at + 1 : at - 1];
    return true;
}

static void graph_align_queue(struct graph_run *r)
{
    const size_t n = r->g->n;
    size_t w;
    memset(r->pending, 0, n * sizeof(*r->pending));
    for (size_t v = 0; v < n; v++)
        if (graph_align_beside(r, v, -1, &w))
            r->pending[r->root[v]]++;
    r->nqueue = 0;
    for (size_t v = 0; v < n; v++)
        if (r->root[v] == v && r->pending[v] == 0)
            r->queue[r->nqueue++] = v;
    for (size_t i = 0; i < r->nqueue; i++) {
        size_t v = r->queue[i];
        do {
            if (graph_align_beside(r, v, 1, &w) && --r->pending[r->root[w]] == 0)
                r->queue[r->nqueue++] = r->root[w];
            v = r->next[v];
        } while (v != r->queue[i]);
    }
}

/* Places each block as far left as those to its left allow, and then as far right as those to its right allow. */
static void graph_align_compact(struct graph_run *r)
{
    const struct graph_layers *g = r->g;
    size_t w;
    for (size_t i = 0; i < r->nqueue; i++) {
        size_t v = r->queue[i];
        int x = 0;
        do {
            if (graph_align_beside(r, v, -1, &w))
                x = MAX(x, r->x[r->root[w]] + graph_align_distance(g, w, v));
            v = r->next[v];
        } while (v != r->queue[i]);
        r->x[v] = x;
    }
    for (size_t i = r->nqueue; i-- > 0;) {
        size_t v = r->queue[i];
        int x = INT32_MAX;
        do {
            if (graph_align_beside(r, v, 1, &w))
                x = MIN(x, r->x[r->root[w]] - graph_align_distance(g, v, w));
            v = r->next[v];
        } while (v != r->queue[i]);
        if (x != INT32_MAX)
            r->x[v] = MAX(r->x[v], x);
    }
    for (size_t v = 0; v < g->n; v++)
        r->x[v] = r->x[r->root[v]];
    for (size_t v = 0; r->mirrored && v < g->n; v++)
        r->x[v] = -r->x[v];
}

static void graph_align_run(struct graph_run *r)
{
    const struct graph_layers *g = r->g;
    auto_free size_t *neighbours = xcalloc(g->n + 1, sizeof(*neighbours));
    for (size_t v = 0; v < g->n; v++)
        r->root[v] = r->next[v] = v;
    for (size_t i = 1; i < g->nlayers; i++)
        graph_align_layer(r, r->upwards ? g->nlayers - 1 - i : i, neighbours);
    graph_align_queue(r);
    graph_align_compact(r);
}

struct graph_extent {
    int left, right;
};

static struct graph_extent graph_align_extent(const struct graph_layers *g, const int *x)
{
    struct graph_extent extent = { INT32_MAX, INT32_MIN };
    for (size_t v = 0; v < g->n; v++) {
        int half = graph_layers_is_box(g, v) ? (g->boxes[v].width + 1) / 2 : 0;
        extent.left = MIN(extent.left, x[v] - half);
        extent.right = MAX(extent.right, x[v] + half);
    }
    return extent;
}

/* Moves the results so that those from the left have the left end of the narrowest one, and the others its right. */
static void graph_align_match(const struct graph_layers *g, int *const x[4])
{
    struct graph_extent extents[4];
    size_t narrowest = 0;
    for (size_t i = 0; i < 4; i++) {
        extents[i] = graph_align_extent(g, x[i]);
        if (extents[i].right - extents[i].left < extents[narrowest].right - extents[narrowest].left)
            narrowest = i;
    }
    for (size_t i = 0; i < 4; i++) {
        bool mirrored = i % 2 == 1;
        int move = mirrored ? extents[narrowest].right - extents[i].right : extents[narrowest].left - extents[i].left;
        for (size_t v = 0; v < g->n; v++)
            x[i][v] += move;
    }
}

static int graph_align_middle(int a, int b, int c, int d)
{
    int low = MAX(MIN(a, b), MIN(c, d)), high = MIN(MAX(a, b), MAX(c, d));
    return (low + high) / 2;
}

void graph_align(struct graph_layers *g)
{
    const size_t n = g->n;
    auto_free size_t *indices = xcalloc(n + 1, 6 * sizeof(*indices));
    auto_free int *all = xcalloc(n + 1, 4 * sizeof(*all));
    int *const x[4] = { all, all + n, all + 2 * n, all + 3 * n };
    size_t *low = indices, *high = indices + n;
    auto_free bool *kin_above = graph_align_kin(g, &g->up), *kin_below = graph_align_kin(g, &g->down);

    memset(high, 0xff, n * sizeof(*high));
    graph_align_limits(g, low, high);
    for (size_t i = 0; i < 4; i++) {
        struct graph_run r = { .g = g,
                               .upwards = i >= 2,
                               .mirrored = i % 2 == 1,
                               .low = low,
                               .high = high,
                               .kin_above = kin_above,
                               .kin_below = kin_below,
                               .root = indices + 2 * n,
                               .next = indices + 3 * n,
                               .pending = indices + 4 * n,
                               .queue = indices + 5 * n,
                               .x = x[i] };
        graph_align_run(&r);
    }
    graph_align_match(g, x);
    for (size_t v = 0; v < n; v++)
        g->x[v] = graph_align_middle(x[0][v], x[1][v], x[2][v], x[3][v]);
    int left = graph_align_extent(g, g->x).left;
    for (size_t v = 0; v < n; v++)
        g->x[v] -= left;
}
