/* keras/src/models/functional.py (Keras 3) and keras/engine/functional.py (Keras 2): config.layers with inbound_nodes.
 */
#include "nn/functional.h"

#include <string.h>

#include "base/map.h"
#include "base/str.h"

struct vertex {       /* a layer of the document, which is called once */
    const char *name; /* borrowed */
    size_t first, nin;
    struct node inputs;
    bool is_input, used; /* used: its output goes to a layer */
    enum { UNSEEN, OPEN, DONE } state;
    size_t call; /* its place in the order, once DONE */
};

struct graph { /* one model being read */
    struct node layers;
    struct map places; /* name -> &vertices[i] */
    struct vertex *vertices;
    size_t n;
    size_t *in, nin, cap; /* vertices that the calls name, one call after the other */
};

static void graph_fini(struct graph *g)
{
    map_fini(&g->places);
    free(g->vertices);
    free(g->in);
}
DEFINE_AUTO_FINI(graph, graph_fini);

/* ["dense", 0, 0]: the first output of the first call of a layer. */
static int read_tensor(struct graph *g, const struct node *n, struct vertex **ret, struct err *e)
{
    struct node name = node_item(n, 0);
    const char *word = NULL;
    int64_t number = 0;

    if (node_array(n, e) < 0 || node_str(&name, &word, e) < 0)
        return -1;
    for (size_t i = 1; i <= 2; i++) {
        struct node item = node_item(n, i);
        if (node_i64(&item, 0, INT32_MAX, &number, e) < 0)
            return -1;
        if (number != 0)
            return node_error(n, e,
                              "layer '%.60s' is called more than once, which is not supported yet: give each call a "
                              "layer of its own",
                              word);
    }
    struct vertex *v = map_get(&g->places, word);
    if (v == NULL)
        return node_error(&name, e, "layer '%.60s' does not exist", word);
    *ret = v;
    return 0;
}

static bool is_tensor(const struct node *n)
{
    return json_is_array(n->v) && json_is_string(json_array_get(n->v, 0));
}

/* ["dense", 0, 0], within lists or maps of one: Model(inputs=[x]) and Model(inputs={"x": x}). */
static int read_end(struct graph *g, const struct node *config, const char *key, struct vertex **ret, struct err *e)
{
    struct node n = node_get(config, key);

    while (!is_tensor(&n)) {
        if (!json_is_object(n.v) && node_array(&n, e) < 0)
            return -1;
        if (node_size(&n) != 1)
            return node_error(&n, e, "the model has %zu of them; only one input and one output are supported yet",
                              node_size(&n));
        n = json_is_object(n.v) ? node_get(&n, node_key(&n, 0)) : node_item(&n, 0);
    }
    return read_tensor(g, &n, ret, e);
}

/* training=True in the middle of a model would keep Dropout on in evaluation. */
static int check_kwargs(const struct node *kwargs, struct err *e)
{
    const char *key;
    json_t *value;

    if (!node_present(kwargs))
        return 0;
    if (node_object(kwargs, e) < 0)
        return -1;
    json_object_foreach(
        (json_t *)(uintptr_t)kwargs->v, key,
        value) if (!json_is_null(value) &&
                   !json_is_false(value)) return node_key_error(kwargs, key, e,
                                                                "a layer called with '%.60s' is not supported", key);
    return 0;
}

static int add_input(struct graph *g, struct vertex *v, const struct node *tensor, struct err *e)
{
    struct vertex *from;
    if (read_tensor(g, tensor, &from, e) < 0)
        return -1;
    if (g->nin == g->cap) {
        g->cap = MAX(2 * g->cap, (size_t)16);
        g->in = xrealloc(g->in, g->cap * sizeof(*g->in));
    }
    g->in[g->nin++] = (size_t)(from - g->vertices);
    v->nin++;
    from->used = true;
    return 0;
}

/* {"class_name": "__keras_tensor__", "config": {"keras_history": [...]}} */
static int add_keras_tensor(struct graph *g, struct vertex *v, const struct node *tensor, struct err *e)
{
    struct node config = node_get(tensor, "config"), history = node_get(&config, "keras_history");
    return add_input(g, v, &history, e);
}

/* Keras 3: {"args": [tensor], "kwargs": {}}, or a list of tensors in place of the tensor. */
static int read_call(struct graph *g, struct vertex *v, const struct node *call, struct err *e)
{
    struct node args = node_get(call, "args"), kwargs = node_get(call, "kwargs");

    if (check_kwargs(&kwargs, e) < 0 || node_array(&args, e) < 0)
        return -1;
    struct node first = node_item(&args, 0);
    if (node_size(&args) != 1)
        return node_error(&args, e,
                          "a layer called with %zu arguments is not supported yet, only with a tensor or a list",
                          node_size(&args));
    if (!json_is_array(first.v))
        return add_keras_tensor(g, v, &first, e);
    for (size_t i = 0; i < node_size(&first); i++) {
        struct node tensor = node_item(&first, i);
        if (add_keras_tensor(g, v, &tensor, e) < 0)
            return -1;
    }
    return 0;
}

static int read_old_tensor(struct graph *g, struct vertex *v, const struct node *tensor, struct err *e)
{
    struct node kwargs = node_item(tensor, 3);
    return add_input(g, v, tensor, e) < 0 ? -1 : check_kwargs(&kwargs, e);
}

/* Keras 2: [["dense", 0, 0, {}], ...], or its only item alone. */
static int read_old_call(struct graph *g, struct vertex *v, const struct node *call, struct err *e)
{
    struct node first = node_item(call, 0);

    if (!json_is_array(first.v))
        return read_old_tensor(g, v, call, e);
    for (size_t i = 0; i < node_size(call); i++) {
        struct node tensor = node_item(call, i);
        if (read_old_tensor(g, v, &tensor, e) < 0)
            return -1;
    }
    return 0;
}

static int read_calls(struct graph *g, size_t i, struct err *e)
{
    struct node layer = node_item(&g->layers, i), calls = node_get(&layer, "inbound_nodes");
    struct vertex *v = &g->vertices[i];

    v->first = g->nin;
    if (node_array(&calls, e) < 0)
        return -1;
    if (v->is_input && node_size(&calls) == 0)
        return 0;
    if (node_size(&calls) != 1 || v->is_input)
        return node_error(&calls, e,
                          "layer '%.60s' is called %zu times; only one call of each layer is supported yet: give each "
                          "call a layer of its own",
                          v->name, node_size(&calls));
    struct node call = node_item(&calls, 0);
    v->inputs = call;
    if ((json_is_object(call.v) ? read_call(g, v, &call, e) : read_old_call(g, v, &call, e)) < 0)
        return -1;
    return v->nin > 0 ? 0 : node_error(&call, e, "layer '%.60s' is called without a tensor", v->name);
}

static int read_vertices(struct graph *g, struct err *e)
{
    for (size_t i = 0; i < g->n; i++) {
        struct node layer = node_item(&g->layers, i), name = node_get(&layer, "name"),
                    class_name = node_get(&layer, "class_name");
        struct vertex *v = &g->vertices[i];
        if (node_str(&name, &v->name, e) < 0)
            return -1;
        v->is_input = str_eq(json_string_value(class_name.v), "InputLayer");
        if (map_put(&g->places, v->name, v) != NULL)
            return node_error(&name, e, "two layers are named '%.60s'", v->name);
    }
    for (size_t i = 0; i < g->n; i++)
        if (read_calls(g, i, e) < 0)
            return -1;
    return 0;
}

/* Puts a layer behind all that it is called with. stack: room for all layers; next: their inputs seen so far. */
static int visit(struct graph *g, size_t root, size_t *stack, size_t *next, struct functional *f, struct err *e)
{
    size_t depth = 0;
    stack[depth++] = root;
    while (depth > 0) {
        struct vertex *v = &g->vertices[stack[depth - 1]];
        size_t *at = &next[stack[depth - 1]];
        v->state = OPEN;
        if (*at == v->nin) {
            v->state = DONE;
            v->call = f->n;
            f->calls[f->n++] = (struct functional_call){
                .item = stack[--depth], .first = v->first, .nin = v->nin, .inputs = v->inputs
            };
            continue;
        }
        size_t from = g->in[v->first + (*at)++];
        if (g->vertices[from].state == OPEN)
            return node_error(&v->inputs, e, "layer '%.60s' is called with what is computed from it: a cycle", v->name);
        if (g->vertices[from].state == UNSEEN)
            stack[depth++] = from;
    }
    return 0;
}

/* In the order of the document, as far as it can be kept. */
static int sort_calls(struct graph *g, struct functional *f, struct err *e)
{
    auto_free size_t *stack = xcalloc(g->n + 1, sizeof(*stack)), *next = xcalloc(g->n + 1, sizeof(*next));
    f->calls = xcalloc(g->n + 1, sizeof(*f->calls));
    for (size_t i = 0; i < g->n; i++)
        if (g->vertices[i].state == UNSEEN && visit(g, i, stack, next, f, e) < 0)
            return -1;
    f->in = TAKE(g->in);
    for (size_t i = 0; i < g->nin; i++)
        f->in[i] = g->vertices[f->in[i]].call;
    return 0;
}

/* Without cycles, every layer leads to the output when only the output is not used by another one. */
static int check_ends(const struct graph *g, const struct vertex *first, const struct vertex *last, struct err *e)
{
    if (!first->is_input)
        return node_error(&g->layers, e, "the model's input '%.60s' is not an InputLayer", first->name);
    if (last->used || last->is_input)
        return node_error(&g->layers, e,
                          "the model's output '%.60s' must be a layer that no other layer is called with", last->name);
    for (size_t i = 0; i < g->n; i++) {
        const struct vertex *v = &g->vertices[i];
        struct node layer = node_item(&g->layers, i);
        if (v->is_input && v != first)
            return node_error(&layer, e, "InputLayer '%.60s': only one input is supported yet", v->name);
        if (!v->used && v != last)
            return node_error(&layer, e, "layer '%.60s' does not lead to the output '%.60s': leave it out", v->name,
                              last->name);
    }
    return 0;
}

int functional_read(const struct node *config, struct functional *ret, struct err *e)
{
    AUTO_FINI(graph) g = { .layers = node_get(config, "layers") };
    AUTO_FINI(functional) f = { 0 };
    struct vertex *first = NULL, *last = NULL;

    if (node_array(&g.layers, e) < 0)
        return -1;
    g.n = node_size(&g.layers);
    g.vertices = xcalloc(g.n + 1, sizeof(g.vertices[0]));
    if (read_vertices(&g, e) < 0 || read_end(&g, config, "input_layers", &first, e) < 0 ||
        read_end(&g, config, "output_layers", &last, e) < 0 || sort_calls(&g, &f, e) < 0 ||
        check_ends(&g, first, last, e) < 0)
        return -1;
    *ret = f;
    f = (struct functional){ 0 };
    return 0;
}

void functional_fini(struct functional *f)
{
    free(f->calls);
    free(f->in);
}
