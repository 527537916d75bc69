/* Walks the graphs as model_read.c expands them: the n-th layer that is called is node n. */
#include "nn/model_outline.h"

#include "base/str.h"
#include "nn/model_impl.h"

struct outlining {
    const struct model *m;
    struct model_outline *o;
    size_t node, groups_cap; /* node: the next one */
    size_t *calls;           /* of each layer, so far */
    bool *called_again;      /* of each layer */
};

/* "dense", or "dense [1]" when there are several calls. */
static char *name_of_call(const char *name, size_t call, bool several)
{
    return several ? xasprintf("%s [%zu]", name, call) : xstrdup(name);
}

static char *shapes_text(const struct shape *shapes, size_t n)
{
    AUTO_FINI(buf) out = BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        auto_free char *shape = model_shape_text(&shapes[i]);
        buf_printf(&out, "%s%s", i > 0 ? ", " : "", shape);
    }
    return buf_detach(&out);
}

/* Boxes are numbered as the tensors that they make. */
static void add_box(struct outlining *g, size_t group)
{
    size_t i = g->node++;
    const struct model_node *n = &g->m->nodes[i];
    const struct layer *l = model_called(g->m, i);
    g->o->boxes[model_made(g->m, i)] =
        (struct outline_box){ .name = name_of_call(l->name, g->calls[n->layer]++, g->called_again[n->layer]),
                              .class_name = l->row->k.names[0],
                              .in = shapes_text(l->in, l->nin),
                              .out = model_shape_text(&l->out),
                              .from = xmemdup(n->in, l->nin * sizeof(n->in[0])),
                              .nfrom = l->nin,
                              .group = group };
}

static size_t add_group(struct outlining *g, const struct model_graph *nested, char *name, size_t parent)
{
    struct model_outline *o = g->o;
    if (o->ngroups == g->groups_cap) {
        g->groups_cap = MAX(2 * g->groups_cap, (size_t)8);
        o->groups = xrealloc(o->groups, g->groups_cap * sizeof(o->groups[0]));
    }
    o->groups[o->ngroups++] = (struct outline_group){ .name = name,
                                                      .class_name = nested->sequential ? "Sequential" : "Functional",
                                                      .parent = parent };
    return o->ngroups;
}

static void walk(struct outlining *g, const struct model_graph *graph, size_t group)
{
    for (size_t i = 0; i < graph->ncalls; i++) {
        size_t call = graph->order[i];
        const struct graph_item *it = &graph->items[graph->calls[call].item];
        if (it->kind == ITEM_LAYER) {
            add_box(g, group);
        } else if (it->kind == ITEM_MODEL) {
            const struct model_graph *nested = g->m->graphs[it->index];
            char *name = name_of_call(nested->name, call - it->first, it->ncalls > 1);
            walk(g, nested, add_group(g, nested, name, group));
        }
    }
}

struct model_outline model_outline_of(const struct model *m)
{
    struct model_outline o = { .boxes = xcalloc(model_tensors(m), sizeof(o.boxes[0])), .nboxes = model_tensors(m) };
    auto_free size_t *calls = xcalloc(m->nlayers + 1, sizeof(*calls));
    auto_free bool *called_again = xcalloc(m->nlayers + 1, sizeof(*called_again));
    struct outlining g = { .m = m, .o = &o, .calls = calls, .called_again = called_again };
    for (size_t i = 0; i < m->nnodes; i++)
        called_again[m->nodes[i].layer] |= m->nodes[i].again != NULL;
    for (size_t i = 0; i < m->ninputs; i++)
        o.boxes[i] = (struct outline_box){ .name = xstrdup(m->inputs[i].name),
                                           .class_name = "InputLayer",
                                           .out = model_shape_text(&m->inputs[i].shape) };
    walk(&g, m->graphs[0], 0);
    return o;
}

void model_outline_fini(struct model_outline *o)
{
    for (size_t i = 0; i < o->nboxes; i++) {
        free(o->boxes[i].name);
        free(o->boxes[i].in);
        free(o->boxes[i].out);
        free(o->boxes[i].from);
    }
    for (size_t i = 0; i < o->ngroups; i++)
        free(o->groups[i].name);
    free(o->boxes);
    free(o->groups);
}
