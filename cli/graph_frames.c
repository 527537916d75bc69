/* Frames of nested models. The layout does not know them: it only leaves room at the boxes where a frame begins or
 * ends. Whether a frame is right is checked afterwards, so a picture never says that a box belongs to a foreign model.
 */
#include "graph_frames.h"

#include <stdint.h>

enum { GRAPH_FRAME_CHECKS = 20000000 }; /* comparisons; with more, there are no frames */

void graph_frames_fini(struct graph_frames *f)
{
    free(f->drawn);
    free(f->depth);
    free(f->rects);
}

static size_t graph_frames_parent(const struct graph_picture *p, size_t group)
{
    return group == 0 ? 0 : p->groups[group - 1].parent;
}

static int graph_frames_check(const struct graph_picture *p, size_t *nesting, struct err *e)
{
    for (size_t g = 1; g <= p->ngroups; g++) {
        size_t parent = p->groups[g - 1].parent;
        if (parent >= g)
            return err_set(e, ERR_INTERNAL, "group %zu of a graph has the parent %zu", g, parent);
        nesting[g] = nesting[parent] + 1;
        if (nesting[g] > GRAPH_GROUPS_DEEP)
            return err_set(e, ERR_INPUT, "models are nested deeper than %d", GRAPH_GROUPS_DEEP);
    }
    for (size_t i = 0; i < p->nboxes; i++)
        if (p->boxes[i].group > p->ngroups)
            return err_set(e, ERR_INTERNAL, "box %zu of a graph has the group %zu", i, p->boxes[i].group);
    return 0;
}

int graph_frames_new(const struct graph_picture *p, struct graph_frames *ret, struct err *e)
{
    size_t n = p->ngroups + 1;
    auto_free size_t *nesting = xcalloc(n, sizeof(*nesting));
    if (graph_frames_check(p, nesting, e) < 0)
        return -1;
    *ret = (struct graph_frames){ .drawn = xcalloc(n, sizeof(*ret->drawn)),
                                  .depth = TAKE(nesting),
                                  .rects = xcalloc(n, sizeof(*ret->rects)),
                                  .n = n };
    bool few = p->ngroups == 0 || MAX(p->nboxes, p->ngroups) <= GRAPH_FRAME_CHECKS / p->ngroups;
    for (size_t g = 1; g < n; g++)
        ret->drawn[g] = few;
    return 0;
}

/* The innermost group that contains both; a parent has a smaller number. */
static size_t graph_frames_common(const struct graph_picture *p, size_t a, size_t b)
{
    while (a != b) {
        if (a > b)
            a = graph_frames_parent(p, a);
        else
            b = graph_frames_parent(p, b);
    }
    return a;
}

/* A frame begins above a box that reads nothing within it, and ends below one that nothing within it reads. */
void graph_frames_reserve(struct graph_frames *f, const struct graph_picture *p, struct graph_node *nodes)
{
    auto_free size_t *entered = xcalloc(p->nboxes + 1, sizeof(*entered)); /* frames around both it and a neighbour */
    auto_free size_t *left = xcalloc(p->nboxes + 1, sizeof(*left));

    for (size_t g = 1; g < f->n; g++)
        f->depth[g] = f->depth[graph_frames_parent(p, g)] + f->drawn[g];
    for (size_t i = 0; i < p->nboxes; i++)
        for (size_t k = 0; k < p->boxes[i].nfrom; k++) {
            size_t from = p->boxes[i].from[k];
            if (from >= i) /* the layout refuses it */
                continue;
            size_t common = f->depth[graph_frames_common(p, p->boxes[i].group, p->boxes[from].group)];
            entered[i] = MAX(entered[i], common);
            left[from] = MAX(left[from], common);
        }
    for (size_t i = 0; i < p->nboxes; i++) {
        size_t depth = f->depth[p->boxes[i].group];
        nodes[i].above = (int)(depth - entered[i]) * GRAPH_FRAME_TITLE;
        nodes[i].below = (int)(depth - left[i]) * GRAPH_FRAME_SIDE;
        nodes[i].beside = (int)depth * GRAPH_FRAME_SIDE;
        nodes[i].group = p->boxes[i].group;
    }
}

static void graph_frames_include(struct graph_rect *into, const struct graph_rect *r)
{
    into->left = MIN(into->left, r->left);
    into->top = MIN(into->top, r->top);
    into->right = MAX(into->right, r->right);
    into->bottom = MAX(into->bottom, r->bottom);
}

static struct graph_rect graph_frames_box(const struct graph_node *node, const struct graph_place *place)
{
    return (struct graph_rect){ place->x, place->y, place->x + node->width, place->y + node->height };
}

static void graph_frames_measure(struct graph_frames *f, const struct graph_picture *p, const struct graph_node *nodes,
                                 const struct graph_layout *l)
{
    for (size_t g = 0; g < f->n; g++)
        f->rects[g] = (struct graph_rect){ INT32_MAX, INT32_MAX, INT32_MIN, INT32_MIN };
    for (size_t i = 0; i < p->nboxes; i++) {
        struct graph_rect box = graph_frames_box(&nodes[i], &l->places[i]);
        graph_frames_include(&f->rects[p->boxes[i].group], &box);
    }
    for (size_t g = f->n; g-- > 1;) {
        struct graph_rect *r = &f->rects[g];
        if (r->left > r->right)
            continue;
        if (f->drawn[g])
            *r = (struct graph_rect){ r->left - GRAPH_FRAME_SIDE, r->top - GRAPH_FRAME_TITLE,
                                      r->right + GRAPH_FRAME_SIDE, r->bottom + GRAPH_FRAME_SIDE };
        graph_frames_include(&f->rects[graph_frames_parent(p, g)], r);
    }
}

static bool graph_frames_overlap(const struct graph_rect *a, const struct graph_rect *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom && b->top < a->bottom;
}

static bool graph_frames_is_wrong(const struct graph_frames *f, const struct graph_picture *p,
                                  const struct graph_rect *boxes, size_t g)
{
    for (size_t i = 0; i < p->nboxes; i++)
        if (graph_frames_overlap(&f->rects[g], &boxes[i]) && graph_frames_common(p, g, p->boxes[i].group) != g)
            return true;
    for (size_t other = 1; other < g; other++)
        if (f->drawn[other] && graph_frames_overlap(&f->rects[g], &f->rects[other]) &&
            graph_frames_common(p, g, other) != other)
            return true;
    return false;
}

bool graph_frames_settle(struct graph_frames *f, const struct graph_picture *p, const struct graph_node *nodes,
                         const struct graph_layout *l)
{
    bool settled = true;
    auto_free struct graph_rect *boxes = xcalloc(p->nboxes + 1, sizeof(*boxes));
    graph_frames_measure(f, p, nodes, l);
    for (size_t i = 0; i < p->nboxes; i++)
        boxes[i] = graph_frames_box(&nodes[i], &l->places[i]);
    for (size_t g = 1; g < f->n; g++)
        if (f->drawn[g] && (f->rects[g].left > f->rects[g].right || graph_frames_is_wrong(f, p, boxes, g)))
            f->drawn[g] = settled = false;
    return settled;
}

void graph_frames_drop(struct graph_frames *f)
{
    for (size_t g = 0; g < f->n; g++)
        f->drawn[g] = false;
}

size_t graph_frames_tint(const struct graph_frames *f, const struct graph_picture *p, size_t group)
{
    while (group != 0 && f->drawn[group])
        group = graph_frames_parent(p, group);
    return group;
}
