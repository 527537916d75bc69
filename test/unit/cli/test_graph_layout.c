/* What a reader of a picture relies on: boxes do not overlap, each edge is there and goes down, and none crosses a box.
 * Chains stand straight, and the size of a graph is bounded. */
#include "check_main.h"
#include "cli/graph_layout.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 6000, EDGES = 60000 };

/* For inner loops: ck_assert writes a message to a pipe even when it holds. */
#define WANT(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            ck_abort_msg("%s", #condition);                                                                            \
    } while (0)

/* A graph under construction: every box is 100 x 50. */
struct test_graph {
    struct graph_node nodes[MOST];
    size_t n, sources[EDGES], nsources;
};

static struct test_graph *graph_of(void)
{
    return xcalloc(1, sizeof(struct test_graph));
}

static size_t box(struct test_graph *g)
{
    g->nodes[g->n] = (struct graph_node){ .width = 100, .height = 50, .from = g->sources + g->nsources };
    return g->n++;
}

/* The last box reads this one. */
static void reads(struct test_graph *g, size_t from)
{
    g->sources[g->nsources++] = from;
    g->nodes[g->n - 1].nfrom++;
}

static void chain(struct test_graph *g, size_t boxes)
{
    for (size_t i = 0; i < boxes; i++) {
        size_t b = box(g);
        if (i > 0)
            reads(g, b - 1);
    }
}

static bool is_strictly_within(int x, int y, const struct graph_place *p, const struct graph_node *n)
{
    return x > p->x && x < p->x + n->width && y > p->y && y < p->y + n->height;
}

static void check_boxes(const struct test_graph *g, const struct graph_layout *l)
{
    for (size_t i = 0; i < g->n; i++) {
        const struct graph_place *a = &l->places[i];
        ck_assert(a->x >= 0 && a->y >= 0);
        ck_assert(a->x + g->nodes[i].width <= l->width && a->y + g->nodes[i].height <= l->height);
        for (size_t k = 0; k < i; k++) {
            const struct graph_place *b = &l->places[k];
            WANT(a->x >= b->x + g->nodes[k].width || b->x >= a->x + g->nodes[i].width ||
                 a->y >= b->y + g->nodes[k].height || b->y >= a->y + g->nodes[i].height);
        }
    }
}

/* A line or curve stays within the rectangle of its two ends. */
static void check_piece(const struct test_graph *g, const struct graph_layout *l, const struct graph_point *a)
{
    const int left = MIN(a[0].x, a[1].x), right = MAX(a[0].x, a[1].x);
    ck_assert_int_le(a[0].y, a[1].y);
    for (size_t i = 0; i < g->n; i++) {
        const struct graph_place *p = &l->places[i];
        if (a[0].y >= p->y + g->nodes[i].height || a[1].y <= p->y)
            continue;
        WANT(right <= p->x || left >= p->x + g->nodes[i].width);
    }
}

/* An edge begins at its source, or where it leaves an earlier edge of this source. */
static bool begins_well(const struct test_graph *g, const struct graph_layout *l, size_t edge)
{
    const struct graph_edge *e = &l->edges[edge];
    const struct graph_point *at = &l->points[e->first];
    const struct graph_place *p = &l->places[e->from];
    if (at->x == p->x + g->nodes[e->from].width / 2 && at->y == p->y + g->nodes[e->from].height)
        return true;
    for (; edge-- > 0 && l->edges[edge].from == e->from;)
        for (size_t k = 1; k < l->edges[edge].npoints; k++) {
            const struct graph_point *b = &l->points[l->edges[edge].first + k];
            if (b->x == at->x && (b->y == at->y || (b[-1].x == at->x && b[-1].y <= at->y && at->y <= b->y)))
                return true;
        }
    return false;
}

static void check_edge(const struct test_graph *g, const struct graph_layout *l, size_t edge)
{
    const struct graph_edge *e = &l->edges[edge];
    const struct graph_place *to = &l->places[e->to];
    ck_assert_uint_ge(e->npoints, 2);
    ck_assert_uint_le(e->first + e->npoints, l->npoints);
    const struct graph_point *points = &l->points[e->first], *last = points + e->npoints - 1;
    ck_assert_msg(begins_well(g, l, edge), "%zu -> %zu begins at %d %d", e->from, e->to, points->x, points->y);
    ck_assert_int_eq(last->y, to->y);
    ck_assert(last->x > to->x && last->x < to->x + g->nodes[e->to].width);
    ck_assert_int_lt(l->places[e->from].y + g->nodes[e->from].height, to->y);
    for (size_t k = 0; k + 1 < e->npoints; k++)
        check_piece(g, l, points + k);
    for (size_t k = 0; k < e->npoints; k++) {
        ck_assert(points[k].x >= 0 && points[k].x <= l->width && points[k].y >= 0 && points[k].y <= l->height);
        for (size_t i = 0; i < g->n; i++)
            WANT(!is_strictly_within(points[k].x, points[k].y, &l->places[i], &g->nodes[i]));
    }
}

/* Each pair of a source and a box that reads it has one edge. */
static void check_edges(const struct test_graph *g, const struct graph_layout *l)
{
    size_t wanted = 0;
    auto_free size_t *seen = xcalloc(g->n + 1, sizeof(*seen));
    for (size_t i = 0; i < g->n; i++)
        for (size_t k = 0; k < g->nodes[i].nfrom; k++) {
            wanted += seen[g->nodes[i].from[k]] != i + 1;
            seen[g->nodes[i].from[k]] = i + 1;
        }
    ck_assert_uint_eq(l->nedges, wanted);
    for (size_t i = 0; i < l->nedges; i++) {
        const struct graph_edge *e = &l->edges[i];
        bool found = false;
        for (size_t k = 0; k < g->nodes[e->to].nfrom; k++)
            found = found || g->nodes[e->to].from[k] == e->from;
        WANT(found);
        if (i > 0)
            ck_assert(e[-1].from < e->from || (e[-1].from == e->from && e[-1].to != e->to));
        check_edge(g, l, i);
    }
}

static void lay_out(const struct test_graph *g, struct graph_layout *ret)
{
    struct err e = { 0 };
    AUTO_FINI(graph_layout) again = { 0 };
    ck_ok_e(graph_layout(g->nodes, g->n, ret, &e));
    ck_ok_e(graph_layout(g->nodes, g->n, &again, &e));
    ck_assert(ret->npoints == again.npoints && ret->nedges == again.nedges);
    if (g->n > 0)
        ck_assert_int_eq(memcmp(ret->places, again.places, g->n * sizeof(*again.places)), 0);
    if (ret->npoints > 0)
        ck_assert_int_eq(memcmp(ret->points, again.points, again.npoints * sizeof(*again.points)), 0);
    check_boxes(g, ret);
    check_edges(g, ret);
}

static int middle(const struct test_graph *g, const struct graph_layout *l, size_t box)
{
    return l->places[box].x + g->nodes[box].width / 2;
}

START_TEST(a_chain_is_one_column)
{
    auto_free struct test_graph *g = graph_of();
    AUTO_FINI(graph_layout) l = { 0 };
    chain(g, 10);
    g->nodes[3].width = 240;
    g->nodes[7].height = 90;
    lay_out(g, &l);
    for (size_t i = 1; i < g->n; i++)
        ck_assert_int_eq(middle(g, &l, i), middle(g, &l, 0));
    ck_assert_int_eq(l.width, 240);
    for (size_t i = 0; i < l.nedges; i++)
        ck_assert_uint_eq(l.edges[i].npoints, 2);
}
END_TEST

START_TEST(a_diamond_is_symmetric)
{
    auto_free struct test_graph *g = graph_of();
    AUTO_FINI(graph_layout) l = { 0 };
    chain(g, 2);
    box(g);
    reads(g, 0);
    box(g);
    reads(g, 1);
    reads(g, 2);
    reads(g, 1); /* the same tensor twice is one edge */
    lay_out(g, &l);
    ck_assert_int_eq(l.places[1].y, l.places[2].y);
    ck_assert_int_eq(middle(g, &l, 0), middle(g, &l, 3));
    ck_assert_int_eq(2 * middle(g, &l, 0), middle(g, &l, 1) + middle(g, &l, 2));
}
END_TEST

/* The branch of two boxes stands straight, and the skip passes it at its side. */
START_TEST(a_skip_leaves_the_chain_straight)
{
    auto_free struct test_graph *g = graph_of();
    AUTO_FINI(graph_layout) l = { 0 };
    for (size_t block = 0; block < 5; block++) {
        size_t first = g->n;
        for (size_t i = 0; i < 4; i++) {
            size_t b = box(g);
            if (b > 0)
                reads(g, b - 1);
        }
        reads(g, first);
    }
    lay_out(g, &l);
    for (size_t i = 1; i < g->n; i++)
        ck_assert_int_eq(middle(g, &l, i), middle(g, &l, 0));
    ck_assert_int_gt(l.width, 100);
}
END_TEST

/* An input that is read late stands above the box that reads it, with the chain that only it feeds. */
START_TEST(inputs_and_outputs)
{
    auto_free struct test_graph *g = graph_of();
    AUTO_FINI(graph_layout) l = { 0 };
    chain(g, 4);
    size_t input = box(g), dense = box(g);
    reads(g, input);
    size_t add = box(g);
    reads(g, 3);
    reads(g, dense);
    for (int i = 0; i < 2; i++) {
        box(g);
        reads(g, add);
    }
    lay_out(g, &l);
    ck_assert_int_eq(l.places[dense].y, l.places[3].y);
    ck_assert_int_eq(l.places[input].y, l.places[2].y);
    ck_assert_int_eq(l.places[add + 1].y, l.places[add + 2].y);
}
END_TEST

/* Two parallel chains whose ends are listed in the other order do not cross. */
START_TEST(crossings_are_avoided)
{
    auto_free struct test_graph *g = graph_of();
    AUTO_FINI(graph_layout) l = { 0 };
    for (int i = 0; i < 6; i++)
        box(g);
    for (size_t i = 0; i < 6; i++) {
        box(g);
        reads(g, 5 - i);
    }
    lay_out(g, &l);
    for (size_t i = 0; i < l.nedges; i++)
        ck_assert_int_eq(middle(g, &l, l.edges[i].from), middle(g, &l, l.edges[i].to));
}
END_TEST

/* Room that is asked for is there: above and below the layer, and beside a box of another group. */
START_TEST(boxes_have_the_room_they_ask_for)
{
    auto_free struct test_graph *g = graph_of();
    AUTO_FINI(graph_layout) plain = { 0 }, l = { 0 };
    chain(g, 3);
    box(g);
    reads(g, 0);
    lay_out(g, &plain);
    g->nodes[1].group = 1;
    g->nodes[1].beside = 40;
    g->nodes[1].above = 30;
    g->nodes[1].below = 20;
    lay_out(g, &l);
    ck_assert_int_ge(l.places[1].y, plain.places[1].y + 30);
    ck_assert_int_ge(l.places[2].y, plain.places[2].y + 50);
    ck_assert_int_eq(l.width, plain.width + 40);
}
END_TEST

START_TEST(a_box_may_stand_alone)
{
    auto_free struct test_graph *g = graph_of();
    AUTO_FINI(graph_layout) l = { 0 }, none = { 0 };
    lay_out(g, &none);
    ck_assert(none.width == 0 && none.height == 0 && none.nedges == 0);
    box(g);
    box(g);
    lay_out(g, &l);
    ck_assert_int_eq(l.height, 50);
    ck_assert_uint_eq(l.nedges, 0);
}
END_TEST

START_TEST(each_reads_the_sixteen_before_it)
{
    auto_free struct test_graph *g = graph_of();
    AUTO_FINI(graph_layout) l = { 0 };
    for (size_t i = 0; i < 300; i++) {
        box(g);
        for (size_t k = i > 16 ? i - 16 : 0; k < i; k++)
            reads(g, k);
    }
    lay_out(g, &l);
    ck_assert_uint_eq(l.nedges, 300 * 16 - 16 * 17 / 2);
}
END_TEST

START_TEST(five_thousand_boxes)
{
    auto_free struct test_graph *g = graph_of();
    AUTO_FINI(graph_layout) l = { 0 };
    chain(g, 5000);
    lay_out(g, &l);
    ck_assert_int_eq(l.width, 100);
}
END_TEST

/* All of a chain's boxes are read at its end: the points would be millions, so the longest edges are at the side. */
START_TEST(the_points_are_bounded)
{
    auto_free struct test_graph *g = graph_of();
    AUTO_FINI(graph_layout) l = { 0 };
    struct err e = { 0 };
    size_t aside = 0;
    chain(g, 5000);
    box(g);
    for (size_t i = 0; i < 5000; i++)
        reads(g, i);
    ck_ok_e(graph_layout(g->nodes, g->n, &l, &e));
    check_boxes(g, &l);
    ck_assert_uint_eq(l.nedges, 9999);
    ck_assert_uint_le(l.npoints, 2 * (200000 + 5001) + 6 * 9999);
    for (size_t i = 0; i < l.nedges; i++) {
        aside += l.edges[i].aside;
        if (i % 50 == 0)
            check_edge(g, &l, i);
    }
    ck_assert(aside > 0 && aside < 5000);
}
END_TEST

/* Random graphs with boxes of different sizes. */
START_TEST(random_graphs)
{
    auto_free struct test_graph *g = graph_of();
    AUTO_FINI(graph_layout) l = { 0 };
    uint32_t r = (uint32_t)_i * 2654435761u + 1;
    for (size_t i = 0; i < 60; i++) {
        size_t b = box(g);
        r = r * 1664525u + 1013904223u;
        g->nodes[b].width = 40 + (int)(r >> 24) / 2 * 2;
        g->nodes[b].height = 20 + (int)(r >> 26);
        for (size_t k = (r >> 16) % 4; k > 0 && b > 0; k--) {
            r = r * 1664525u + 1013904223u;
            reads(g, b - 1 - (r >> 8) % MIN(b, (r & 1) == 0 ? 60 : 4));
        }
    }
    lay_out(g, &l);
}
END_TEST

START_TEST(what_is_refused)
{
    struct err e;
    AUTO_FINI(graph_layout) l = { 0 };
    const size_t from[] = { 0, 1 };
    struct graph_node nodes[2] = { { .width = 2, .height = 2 }, { .width = 2, .height = 2, .from = from, .nfrom = 2 } };
    ck_fails(graph_layout(nodes, 2, &l, &e), ERR_INTERNAL, "box 1 of a graph reads box 1");
    nodes[1].nfrom = (size_t)GRAPH_EDGES_MAX + 1;
    ck_fails(graph_layout(nodes, 2, &l, &e), ERR_INPUT, "more than 1000000 edges");
    ck_fails(graph_layout(nodes, (size_t)GRAPH_BOXES_MAX + 1, &l, &e), ERR_INPUT, "100001 boxes is too large");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cli/graph_layout");
    TCase *t = tcase_create("graph_layout");
    suite_add_tcase(s, t);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_chain_is_one_column);
    tcase_add_test(t, a_diamond_is_symmetric);
    tcase_add_test(t, a_skip_leaves_the_chain_straight);
    tcase_add_test(t, inputs_and_outputs);
    tcase_add_test(t, crossings_are_avoided);
    tcase_add_test(t, boxes_have_the_room_they_ask_for);
    tcase_add_test(t, a_box_may_stand_alone);
    tcase_add_test(t, each_reads_the_sixteen_before_it);
    tcase_add_test(t, five_thousand_boxes);
    tcase_add_test(t, the_points_are_bounded);
    tcase_add_loop_test(t, random_graphs, 0, 200);
    tcase_add_test(t, what_is_refused);
    return s;
}
