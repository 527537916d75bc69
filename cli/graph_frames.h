/* graph_frames - which nested models of a picture of a graph get a frame, and where it lies. Pure. */
#ifndef TRAINYARD_CLI_GRAPH_FRAMES_H
#define TRAINYARD_CLI_GRAPH_FRAMES_H

#include "graph_layout.h"
#include "graph_svg.h"

enum {
    GRAPH_FRAME_SIDE = 12,  /* between a frame and what it encloses */
    GRAPH_FRAME_TITLE = 28, /* the same at its top */
    GRAPH_GROUPS_DEEP = 100,
};

struct graph_rect {
    int left, top, right, bottom; /* left > right: nothing */
};

/* Group g of the picture has drawn[g + 1] and rects[g + 1]; number 0 is the model itself. */
struct graph_frames {
    bool *drawn;
    size_t *depth; /* frames around a box of the group */
    struct graph_rect *rects;
    size_t n; /* groups, with the model itself */
};
void graph_frames_fini(struct graph_frames *f);
DEFINE_AUTO_FINI(graph_frames, graph_frames_fini);

/* Checks the groups of the picture. At first each of them has a frame. */
MUST_USE int graph_frames_new(const struct graph_picture *p, struct graph_frames *ret, struct err *e);
/* Reserves the room for the frames around each box in nodes[]. */
void graph_frames_reserve(struct graph_frames *f, const struct graph_picture *p, struct graph_node *nodes);
/* Computes the frames for a layout. Removes those that enclose a box or overlap a frame that is not their own, and
 * returns false when there is one. */
bool graph_frames_settle(struct graph_frames *f, const struct graph_picture *p, const struct graph_node *nodes,
                         const struct graph_layout *l);
void graph_frames_drop(struct graph_frames *f); /* no frames at all */
/* The innermost model without a frame that contains the group, or 0. */
size_t graph_frames_tint(const struct graph_frames *f, const struct graph_picture *p, size_t group);

#endif
