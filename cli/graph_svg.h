/* graph_svg - the layers of a model drawn as an SVG picture, in the manner of keras.utils.plot_model(show_shapes=True,
 * show_layer_names=True, expand_nested=True). Pure: boxes in, text out. */
#ifndef TRAINYARD_CLI_GRAPH_SVG_H
#define TRAINYARD_CLI_GRAPH_SVG_H

#include "base/buf.h"

/* One call of a layer, or an input. */
struct graph_box {
    const char *name;                 /* "dense_1" */
    const char *class_name;           /* "Dense" */
    const char *in_shape, *out_shape; /* "(None, 16)"; in_shape may list several; NULL is not shown */
    const size_t *from;               /* the boxes that its tensors come from, all of smaller index */
    size_t nfrom;
    size_t group; /* 0 is the model itself, else 1 + index in groups */
};

/* A nested model. */
struct graph_group {
    const char *name, *class_name;
    size_t parent; /* 0, or 1 + index of an earlier group */
};

struct graph_picture {
    const char *title; /* or NULL */
    const struct graph_box *boxes;
    size_t nboxes;
    const struct graph_group *groups;
    size_t ngroups;
};

/* Appends a whole SVG document to *out. Without boxes it is a picture with a message. Long names are cut in their
 * middle, and a tooltip has them whole.
 *
 * A nested model is a frame around its boxes. When the frame would also enclose another box, or overlap the frame of
 * another model, there is none: then the boxes have a colour of their own, and the model's name above theirs.
 *
 * ERR_INPUT for more than GRAPH_BOXES_MAX boxes or GRAPH_EDGES_MAX edges, and for models nested deeper than
 * GRAPH_GROUPS_DEEP. ERR_INTERNAL for indices that are not as above. */
MUST_USE int graph_svg(const struct graph_picture *p, struct buf *out, struct err *e);

#endif
