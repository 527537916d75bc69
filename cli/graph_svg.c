/* Draws the picture of cli/graph_svg.h: frames of nested models, edges, and boxes with a name, a class and shapes. */
#include "graph_svg.h"

#include "base/str.h"
#include "graph_frames.h"
#include "graph_layout.h"
#include "svg_text.h"

enum {
    GRAPH_MARGIN = 20,
    GRAPH_TITLE_LINE = 34,
    GRAPH_BOX_PAD = 12,    /* between the text and the sides of a box */
    GRAPH_BOX_WIDTH = 108, /* at least */
    GRAPH_HEAD_LINE = 26,  /* name and class */
    GRAPH_SHAPE_LINE = 24,
    GRAPH_GROUP_LINE = 17,
    GRAPH_NAME_LETTERS = 36, /* longer texts are cut */
    GRAPH_CLASS_LETTERS = 26,
    GRAPH_SHAPE_LETTERS = 38,
    GRAPH_TITLE_LETTERS = 80,
    GRAPH_PASSES = 4, /* layouts, until the frames are right */
};

#define GRAPH_ARROW " \xE2\x86\x92 "

/* Of nested models: their frames, or their boxes. */
static const char *const GRAPH_TINTS[] = { "#fef3e0", "#e9e4f5", "#e0f2f1", "#fce4ec", "#f1f8e0", "#e1f1fb" };

static const char GRAPH_STYLE[] =
    "<style>text{font-family:Roboto,'Helvetica Neue',Arial,sans-serif;fill:#202124}.title{font-size:18px;fill:#3c4043}"
    ".head,.shape,.model{font-size:13px;text-anchor:middle}.head{font-weight:500}.class{fill:#5f6368;font-weight:400}"
    ".shape{font-size:12px;fill:#5f6368}.model{font-size:11px;fill:#5f6368}.name{font-size:12px;fill:#5f6368;"
    "stroke:#fff;stroke-width:4px;stroke-linejoin:round;paint-order:stroke}"
    ".card{fill:#fff;stroke:#90a4ae}.input .card{stroke:#66a97b}"
    ".frame{stroke:#9e9e9e;stroke-dasharray:5 4;fill-opacity:.45}.edge{fill:none;stroke:#607d8b;stroke-width:1.3}"
    ".tip{fill:#607d8b}</style>\n"
    "<defs><marker id=\"tip\" viewBox=\"0 0 8 9\" refX=\"8\" refY=\"4.5\" markerWidth=\"8\" markerHeight=\"9\" "
    "markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"tip\" d=\"M0 0.7L8 4.5L0 8.3z\"/></marker></defs>\n";

/* The texts of one box as they are drawn. */
struct graph_card {
    struct buf name, class_name, shapes, group;
};

static void graph_card_fini(struct graph_card *c)
{
    buf_fini(&c->name);
    buf_fini(&c->class_name);
    buf_fini(&c->shapes);
    buf_fini(&c->group);
}
DEFINE_AUTO_FINI(graph_card, graph_card_fini);

static void graph_card_fill(struct graph_card *c, const struct graph_box *box, const struct graph_group *group)
{
    *c = (struct graph_card){ BUF_INIT, BUF_INIT, BUF_INIT, BUF_INIT };
    svg_text_cut(&c->name, box->name, GRAPH_NAME_LETTERS);
    svg_text_cut(&c->class_name, box->class_name, GRAPH_CLASS_LETTERS);
    if (box->in_shape != NULL)
        svg_text_cut(&c->shapes, box->in_shape, GRAPH_SHAPE_LETTERS);
    if (box->in_shape != NULL && box->out_shape != NULL)
        buf_str(&c->shapes, GRAPH_ARROW);
    if (box->out_shape != NULL)
        svg_text_cut(&c->shapes, box->out_shape, GRAPH_SHAPE_LETTERS);
    if (group != NULL)
        svg_text_cut(&c->group, group->name, GRAPH_NAME_LETTERS);
}

static void graph_card_measure(const struct graph_card *c, struct graph_node *ret)
{
    int head = svg_text_width(c->name.data) + svg_text_width(" ()") + svg_text_width(c->class_name.data);
    int width = MAX(MAX(head, svg_text_width(c->shapes.data)), svg_text_width(c->group.data)) + 2 * GRAPH_BOX_PAD;
    ret->width = (MAX(width, GRAPH_BOX_WIDTH) + 1) / 2 * 2;
    ret->height =
        GRAPH_HEAD_LINE + (c->shapes.len > 0 ? GRAPH_SHAPE_LINE : 0) + (c->group.len > 0 ? GRAPH_GROUP_LINE : 0);
}

/* What is being drawn. */
struct graph_drawing {
    const struct graph_picture *picture;
    struct graph_frames frames;
    struct graph_node *nodes;
    struct graph_layout layout;
    int left, top; /* of the layout within the picture */
    struct buf *out;
};

static void graph_drawing_fini(struct graph_drawing *d)
{
    graph_frames_fini(&d->frames);
    graph_layout_fini(&d->layout);
    free(d->nodes);
}
DEFINE_AUTO_FINI(graph_drawing, graph_drawing_fini);

/* The nested model whose name is in the box, or NULL. */
static const struct graph_group *graph_svg_group(const struct graph_drawing *d, const struct graph_box *box)
{
    size_t group = graph_frames_tint(&d->frames, d->picture, box->group);
    return group == 0 ? NULL : &d->picture->groups[group - 1];
}

static int graph_svg_place(struct graph_drawing *d, struct err *e)
{
    const struct graph_picture *p = d->picture;
    for (size_t i = 0; i < p->nboxes; i++) {
        AUTO_FINI(graph_card) card;
        graph_card_fill(&card, &p->boxes[i], graph_svg_group(d, &p->boxes[i]));
        graph_card_measure(&card, &d->nodes[i]);
        d->nodes[i].from = p->boxes[i].from;
        d->nodes[i].nfrom = p->boxes[i].nfrom;
    }
    graph_frames_reserve(&d->frames, p, d->nodes);
    graph_layout_fini(&d->layout);
    d->layout = (struct graph_layout){ .width = 0 };
    return graph_layout(d->nodes, p->nboxes, &d->layout, e);
}

/* A frame that is removed changes the layout, which may make other frames wrong. */
static int graph_svg_settle(struct graph_drawing *d, struct err *e)
{
    for (int pass = 0;; pass++) {
        if (graph_svg_place(d, e) < 0)
            return -1;
        if (graph_frames_settle(&d->frames, d->picture, d->nodes, &d->layout))
            return 0;
        if (pass + 2 >= GRAPH_PASSES)
            graph_frames_drop(&d->frames);
    }
}

/* ---- parts of the picture ---- */

static void graph_svg_frames(const struct graph_drawing *d)
{
    for (size_t g = 1; g < d->frames.n; g++) {
        const struct graph_rect *r = &d->frames.rects[g];
        if (d->frames.drawn[g])
            buf_printf(d->out,
                       "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"%s\"/>\n",
                       d->left + r->left, d->top + r->top, r->right - r->left, r->bottom - r->top,
                       GRAPH_TINTS[(g - 1) % COUNT_OF(GRAPH_TINTS)]);
    }
}

/* The names of the frames, above the edges. */
static void graph_svg_frame_names(const struct graph_drawing *d)
{
    for (size_t g = 1; g < d->frames.n; g++) {
        const struct graph_group *group = &d->picture->groups[g - 1];
        const struct graph_rect *r = &d->frames.rects[g];
        if (!d->frames.drawn[g])
            continue;
        AUTO_FINI(buf) whole = BUF_INIT, text = BUF_INIT;
        buf_printf(&whole, "%s (%s)", group->name, group->class_name);
        svg_text_cut(&text, whole.data, (size_t)MAX((r->right - r->left - 2 * GRAPH_BOX_PAD) / 8, 8));
        buf_printf(d->out, "<text class=\"name\" x=\"%d\" y=\"%d\"><title>", d->left + r->left + 9,
                   d->top + r->top + 14);
        svg_text(d->out, whole.data);
        buf_str(d->out, "</title>");
        svg_text(d->out, text.data);
        buf_str(d->out, "</text>\n");
    }
}

static void graph_svg_edge(const struct graph_drawing *d, const struct graph_edge *edge)
{
    const struct graph_point *points = d->layout.points + edge->first;
    buf_printf(d->out, "<path class=\"edge\" marker-end=\"url(#tip)\" d=\"M%d %d", d->left + points[0].x,
               d->top + points[0].y);
    for (size_t i = 1; i < edge->npoints; i++) {
        int x = d->left + points[i].x, y = d->top + points[i].y, middle = d->top + (points[i - 1].y + points[i].y) / 2;
        if (points[i].x == points[i - 1].x)
            buf_printf(d->out, "V%d", y);
        else
            buf_printf(d->out, "C%d %d %d %d %d %d", d->left + points[i - 1].x, middle, x, middle, x, y);
    }
    buf_str(d->out, "\"/>\n");
}

static void graph_svg_tooltip(struct buf *out, const struct graph_box *box, const struct graph_group *group)
{
    buf_str(out, "<title>");
    if (group != NULL) {
        svg_text(out, group->name);
        buf_char(out, '\n');
    }
    svg_text(out, box->name);
    buf_str(out, " (");
    svg_text(out, box->class_name);
    buf_char(out, ')');
    if (box->in_shape != NULL || box->out_shape != NULL)
        buf_char(out, '\n');
    if (box->in_shape != NULL)
        svg_text(out, box->in_shape);
    if (box->in_shape != NULL && box->out_shape != NULL)
        buf_str(out, GRAPH_ARROW);
    if (box->out_shape != NULL)
        svg_text(out, box->out_shape);
    buf_str(out, "</title>");
}

static void graph_svg_line(struct buf *out, const char *class, int x, int y, const char *text)
{
    buf_printf(out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    svg_text(out, text);
    buf_str(out, "</text>");
}

static const char *graph_svg_colour(const struct graph_drawing *d, const struct graph_box *box)
{
    size_t tint = graph_frames_tint(&d->frames, d->picture, box->group);
    if (tint != 0)
        return GRAPH_TINTS[(tint - 1) % COUNT_OF(GRAPH_TINTS)];
    return box->nfrom == 0 ? "#e6f4ea" : "#e8eff5";
}

static void graph_svg_box(const struct graph_drawing *d, size_t i)
{
    const struct graph_box *box = &d->picture->boxes[i];
    const struct graph_group *group = graph_svg_group(d, box);
    const int width = d->nodes[i].width, height = d->nodes[i].height;
    const int x = d->left + d->layout.places[i].x, y = d->top + d->layout.places[i].y, middle = x + width / 2;
    AUTO_FINI(graph_card) card;

    graph_card_fill(&card, box, group);
    const int head = GRAPH_HEAD_LINE + (card.group.len > 0 ? GRAPH_GROUP_LINE : 0);
    buf_str(d->out, box->nfrom == 0 ? "<g class=\"input\">" : "<g>");
    graph_svg_tooltip(d->out, box, group);
    buf_printf(d->out, "<rect class=\"card\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>", x, y, width,
               height);
    buf_printf(d->out, "<path fill=\"%s\" d=\"M%d.5 %d.5h%dv%dh-%dz\"/>\n", graph_svg_colour(d, box), x, y, width - 1,
               head - 1, width - 1);
    if (card.group.len > 0)
        graph_svg_line(d->out, "model", middle, y + 14, card.group.data);
    buf_printf(d->out, "<text class=\"head\" x=\"%d\" y=\"%d\">", middle, y + head - 8);
    svg_text(d->out, card.name.data);
    buf_str(d->out, " <tspan class=\"class\">(");
    svg_text(d->out, card.class_name.data);
    buf_str(d->out, ")</tspan></text>");
    if (card.shapes.len > 0)
        graph_svg_line(d->out, "shape", middle, y + height - 8, card.shapes.data);
    buf_str(d->out, "</g>\n");
}

/* ---- the whole ---- */

static void graph_svg_head(const struct graph_drawing *d, const char *title, int width, int height)
{
    buf_str(d->out, "<svg xmlns=\"http://www.w3.org/2000/svg\"");
    buf_printf(d->out, " width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n", width, height, width, height);
    if (d->picture->title != NULL) {
        buf_str(d->out, "<title>");
        svg_text(d->out, d->picture->title);
        buf_str(d->out, "</title>\n");
    }
    buf_str(d->out, GRAPH_STYLE);
    buf_printf(d->out, "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n", width, height);
    if (title[0] != '\0')
        graph_svg_line(d->out, "title", GRAPH_MARGIN, GRAPH_MARGIN + 14, title);
}

/* The size of boxes, edges and frames. A frame may begin left of the first box. */
static struct graph_rect graph_svg_extent(const struct graph_drawing *d)
{
    struct graph_rect all = { 0, 0, d->layout.width, d->layout.height };
    for (size_t g = 1; g < d->frames.n; g++) {
        const struct graph_rect *r = &d->frames.rects[g];
        if (!d->frames.drawn[g])
            continue;
        all.left = MIN(all.left, r->left);
        all.top = MIN(all.top, r->top);
        all.right = MAX(all.right, r->right);
        all.bottom = MAX(all.bottom, r->bottom);
    }
    return all;
}

static void graph_svg_draw(struct graph_drawing *d)
{
    const struct graph_picture *p = d->picture;
    AUTO_FINI(buf) title = BUF_INIT;
    struct graph_rect all = graph_svg_extent(d);

    svg_text_cut(&title, p->title != NULL ? p->title : "", GRAPH_TITLE_LETTERS);
    int title_width = svg_text_width(title.data) * 18 / 13;
    int width = MAX(MAX(all.right - all.left, title_width), p->nboxes == 0 ? GRAPH_BOX_WIDTH : 0) + 2 * GRAPH_MARGIN;
    d->left = (width - (all.right - all.left)) / 2 - all.left;
    d->top = GRAPH_MARGIN + (title.len > 0 ? GRAPH_TITLE_LINE : 0) - all.top;
    graph_svg_head(d, title.data, width, d->top + (p->nboxes == 0 ? GRAPH_HEAD_LINE : all.bottom) + GRAPH_MARGIN);
    if (p->nboxes == 0)
        graph_svg_line(d->out, "head", width / 2, d->top + 14, "no layers");
    graph_svg_frames(d);
    for (size_t i = 0; i < d->layout.nedges; i++)
        graph_svg_edge(d, &d->layout.edges[i]);
    graph_svg_frame_names(d);
    for (size_t i = 0; i < p->nboxes; i++)
        graph_svg_box(d, i);
    buf_str(d->out, "</svg>\n");
}

int graph_svg(const struct graph_picture *p, struct buf *out, struct err *e)
{
    AUTO_FINI(graph_drawing) d = { .picture = p, .out = out };
    if (graph_frames_new(p, &d.frames, e) < 0)
        return -1;
    d.nodes = xcalloc(p->nboxes + 1, sizeof(*d.nodes));
    if (graph_svg_settle(&d, e) < 0)
        return -1;
    graph_svg_draw(&d);
    return 0;
}
