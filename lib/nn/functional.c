/* keras/src/models/functional.py (Keras 3) and keras/engine/functional.py (Keras 2): config.layers with inbound_nodes.
 */
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "nn/layers/layer.h"
#include "nn/model_graph.h"

enum { ENDS_DEPTH_MAX = 3 };

/* A tensor as it is written: ["dense", 1, 0]. Keras numbers the calls of a layer over all models that call it, so its
 * numbers may begin above 0 and have gaps: calls are the numbers that occur, in their order. */
struct written_tensor {
    size_t item;
    int64_t number, output;
    float padding; /* of a mask */
};

struct functional { /* one model being read */
    struct node layers;
    struct model_graph *g;
    struct map places; /* name -> item + 1 */
    struct map masks;  /* name of an operation on masks -> its place in layers + 1 */
    struct written_tensor *tensors;
    size_t n, cap;
    size_t calls_cap;
    bool outputs; /* output_layers is being read */
};

static void functional_fini(struct functional *f)
{
    map_fini(&f->places);
    map_fini(&f->masks);
    free(f->tensors);
}
DEFINE_AUTO_FINI(functional, functional_fini);

static struct node functional_layer(const struct functional *f, size_t item)
{
    return node_item(&f->layers, f->g->items[item].place);
}

/* ---- tensors ---- */

/* Keras 3 numbers the calls of a nested functional model from 1 in output_layers, and from 0 in inbound_nodes. */
static bool counts_from_one(const struct functional *f, size_t item)
{
    struct node layer = functional_layer(f, item), calls = node_get(&layer, "inbound_nodes"),
                first = node_item(&calls, 0), class_name = node_get(&layer, "class_name");
    return f->outputs && f->g->items[item].kind == ITEM_MODEL && json_is_object(first.v) &&
           !str_eq(json_string_value(class_name.v), "Sequential");
}

/* ["dense", 0, 0]: the first output of the first call of a layer. */
static int functional_tensor(struct functional *f, const struct node *n, struct err *e)
{
    struct node name = node_item(n, 0), number = node_item(n, 1), output = node_item(n, 2);
    const char *word = NULL;
    struct written_tensor t = { 0 };

    if (node_array(n, e) < 0 || node_str(&name, &word, e) < 0 || node_i64(&number, 0, INT32_MAX, &t.number, e) < 0 ||
        node_i64(&output, 0, INT32_MAX, &t.output, e) < 0)
        return -1;
    uintptr_t place = (uintptr_t)map_get(&f->places, word);
    if (place == 0 && map_get(&f->masks, word) != NULL)
        return node_error(&name, e, "operation '%.60s' is supported only in the mask of a layer", word);
    if (place == 0)
        return node_error(&name, e, "layer '%.60s' does not exist", word);
    t.item = place - 1;
    if (f->g->items[t.item].kind != ITEM_MODEL && t.output != 0)
        return node_error(n, e, "layer '%.60s' has one output", word);
    if (t.number > 0 && counts_from_one(f, t.item))
        t.number--;
    if (f->n == f->cap) {
        f->cap = MAX(2 * f->cap, (size_t)16);
        f->tensors = xrealloc(f->tensors, f->cap * sizeof(f->tensors[0]));
    }
    f->tensors[f->n++] = t;
    return 0;
}

static bool is_tensor(const struct node *n)
{
    return json_is_array(n->v) && json_is_string(json_array_get(n->v, 0));
}

/* ["dense", 0, 0], or lists or maps of them: Model(inputs=[x, y]) and Model(inputs={"x": x, "y": y}). */
static int functional_ends(struct functional *f, const struct node *n, int depth, struct err *e)
{
    if (is_tensor(n))
        return functional_tensor(f, n, e);
    if (depth == ENDS_DEPTH_MAX)
        return node_error(n, e, "lists within lists are not supported");
    if (!json_is_object(n->v) && node_array(n, e) < 0)
        return -1;
    for (size_t i = 0; i < node_size(n); i++) {
        struct node item = json_is_object(n->v) ? node_get(n, node_key(n, i)) : node_item(n, i);
        if (functional_ends(f, &item, depth + 1, e) < 0)
            return -1;
    }
    return 0;
}

/* ---- arguments of calls ---- */

/* None, False, or a list of None: what Keras writes for the masks of several tensors without one. */
static bool is_nothing(const json_t *value)
{
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!json_is_null(json_array_get(value, i)))
            return false;
    return json_is_null(value) || json_is_false(value) || json_is_array(value);
}

static bool is_keras_tensor(const struct node *n)
{
    struct node class_name = node_get(n, "class_name");
    return str_eq(json_string_value(class_name.v), "__keras_tensor__");
}

/* training=True in the middle of a model would keep Dropout on in evaluation. *ret_mask: the mask of the call, where it
 * is a tensor. */
static int functional_kwargs(const struct node *kwargs, struct node *ret_mask, struct err *e)
{
    const char *key;
    json_t *value;

    if (!node_present(kwargs))
        return 0;
    if (node_object(kwargs, e) < 0)
        return -1;
    json_object_foreach((json_t *)(uintptr_t)kwargs->v, key, value)
    {
        struct node n = node_get(kwargs, key);
        if (str_eq(key, "mask") && is_keras_tensor(&n))
            *ret_mask = n;
        else if (!is_nothing(value))
            return node_key_error(kwargs, key, e, "a layer called with '%.60s' is not supported", key);
    }
    return 0;
}

/* {"class_name": "__keras_tensor__", "config": {"keras_history": [...]}} */
static int functional_keras_tensor(struct functional *f, const struct node *tensor, struct err *e)
{
    struct node config = node_get(tensor, "config"), history = node_get(&config, "keras_history");
    return functional_tensor(f, &history, e);
}

/* ---- masks ---- */

/* Keras 3 writes how a mask is computed as operations among the layers: NotEqual(x, 0) for an Embedding with mask_zero,
 * NotEqual(x, mask_value) for a Masking, and others that combine such masks. They are left out, and of the mask of a
 * call only each x and its number are kept (model_mask.c). */

/* The place in layers + 1 of the operation that makes the mask; 0: it is something else. */
static size_t mask_place(const struct functional *f, const struct node *tensor)
{
    struct node config = node_get(tensor, "config"), history = node_get(&config, "keras_history"),
                name = node_item(&history, 0);
    return json_is_string(name.v) ? (size_t)(uintptr_t)map_get(&f->masks, json_string_value(name.v)) : 0;
}

/* What an operation is called with: its arguments, or the list that is its only one. */
static struct node mask_arguments(const struct node *layer)
{
    struct node calls = node_get(layer, "inbound_nodes"), call = node_item(&calls, 0), args = node_get(&call, "args"),
                first = node_item(&args, 0);
    return json_is_array(first.v) ? first : args;
}

static bool is_mask_operation(const struct functional *f, const struct node *layer)
{
    static const char *const FIRST[] = { "NotEqual", "ZerosLike", "OnesLike" }; /* of tensors */
    struct node module = node_get(layer, "module"), class_name = node_get(layer, "class_name");
    if (!json_is_string(module.v) || !str_starts(json_string_value(module.v), "keras.src.ops."))
        return false;
    for (size_t i = 0; i < COUNT_OF(FIRST); i++)
        if (str_eq(json_string_value(class_name.v), FIRST[i]))
            return true;
    struct node args = mask_arguments(layer), mask = node_item(&args, 0);
    return mask_place(f, &mask) != 0;
}

struct mask_walk {
    size_t *stack, n; /* places of operations */
    bool *seen;       /* of each place */
    size_t first;     /* the tensors of NotEqual are those of f->tensors from here */
};

static int mask_error(const struct node *mask, struct err *e)
{
    return node_error(mask, e,
                      "a layer called with a mask of its own is not supported, only with that of an Embedding with "
                      "mask_zero, or of a Masking");
}

static int mask_push(const struct functional *f, const struct node *tensor, struct mask_walk *w, const struct node *at,
                     struct err *e)
{
    size_t place = mask_place(f, tensor);
    if (place == 0)
        return mask_error(at, e);
    if (!w->seen[place - 1])
        w->stack[w->n++] = place - 1;
    w->seen[place - 1] = true;
    return 0;
}

static int mask_source(struct functional *f, const struct node *args, struct mask_walk *w, const struct node *at,
                       struct err *e)
{
    struct node x = node_item(args, 0), padding = node_item(args, 1);
    if (!json_is_number(padding.v) || !is_keras_tensor(&x))
        return mask_error(at, e);
    size_t added = f->n;
    if (functional_keras_tensor(f, &x, e) < 0)
        return -1;
    struct written_tensor *b = &f->tensors[added];
    b->padding = (float)json_number_value(padding.v);
    for (size_t i = w->first; i < added && f->n > added; i++) {
        const struct written_tensor *a = &f->tensors[i];
        if (a->item == b->item && a->number == b->number && a->output == b->output &&
            memcmp(&a->padding, &b->padding, sizeof(a->padding)) == 0)
            f->n = added;
    }
    return f->n - w->first <= LAYER_INPUTS_MAX ? 0 : mask_error(at, e);
}

static int mask_operation(struct functional *f, const struct node *layer, struct mask_walk *w, const struct node *at,
                          struct err *e)
{
    static const char *const COMBINE[] = { "LogicalOr", "ExpandDims", "Concatenate", "Any" };
    struct node class_name = node_get(layer, "class_name"), args = mask_arguments(layer);
    const char *name = json_string_value(class_name.v);
    bool combines = false;
    if (str_eq(name, "NotEqual"))
        return mask_source(f, &args, w, at, e);
    if (str_eq(name, "ZerosLike") || str_eq(name, "OnesLike"))
        return 0;
    for (size_t i = 0; i < COUNT_OF(COMBINE); i++)
        combines |= str_eq(name, COMBINE[i]);
    if (!combines)
        return mask_error(at, e);
    for (size_t i = 0; i < node_size(&args); i++) {
        struct node tensor = node_item(&args, i);
        if (mask_push(f, &tensor, w, at, e) < 0)
            return -1;
    }
    return 0;
}

/* Adds the tensors whose zeros are padding. */
static int functional_mask(struct functional *f, const struct node *mask, struct err *e)
{
    size_t n = node_size(&f->layers);
    auto_free size_t *stack = xcalloc(n + 1, sizeof(*stack));
    auto_free bool *seen = xcalloc(n + 1, sizeof(*seen));
    struct mask_walk w = { .stack = stack, .seen = seen, .first = f->n };
    if (mask_push(f, mask, &w, mask, e) < 0)
        return -1;
    while (w.n > 0) {
        struct node layer = node_item(&f->layers, stack[--w.n]);
        if (mask_operation(f, &layer, &w, mask, e) < 0)
            return -1;
    }
    return f->n > w.first ? 0 : mask_error(mask, e);
}

/* ---- calls ---- */

/* Keras 3: {"args": [tensor], "kwargs": {}}, or a list of tensors in place of the tensor. */
static int functional_call(struct functional *f, const struct node *call, struct node *ret_mask, struct err *e)
{
    struct node args = node_get(call, "args"), kwargs = node_get(call, "kwargs");

    if (functional_kwargs(&kwargs, ret_mask, e) < 0 || node_array(&args, e) < 0)
        return -1;
    struct node first = node_item(&args, 0);
    if (node_size(&args) != 1)
        return node_error(&args, e,
                          "a layer called with %zu arguments is not supported yet, only with a tensor or a list",
                          node_size(&args));
    if (!json_is_array(first.v))
        return functional_keras_tensor(f, &first, e);
    for (size_t i = 0; i < node_size(&first); i++) {
        struct node tensor = node_item(&first, i);
        if (functional_keras_tensor(f, &tensor, e) < 0)
            return -1;
    }
    return 0;
}

static int functional_old_tensor(struct functional *f, const struct node *tensor, struct err *e)
{
    struct node kwargs = node_item(tensor, 3), mask = { 0 };
    if (functional_tensor(f, tensor, e) < 0 || functional_kwargs(&kwargs, &mask, e) < 0)
        return -1;
    return node_present(&mask) ? mask_error(&mask, e) : 0;
}

/* Keras 2: [["dense", 0, 0, {}], ...], or its only item alone. */
static int functional_old_call(struct functional *f, const struct node *call, struct err *e)
{
    struct node first = node_item(call, 0);

    if (!json_is_array(first.v))
        return functional_old_tensor(f, call, e);
    for (size_t i = 0; i < node_size(call); i++) {
        struct node tensor = node_item(call, i);
        if (functional_old_tensor(f, &tensor, e) < 0)
            return -1;
    }
    return 0;
}

static int functional_calls_of(struct functional *f, size_t item, struct err *e)
{
    struct node layer = functional_layer(f, item), calls = node_get(&layer, "inbound_nodes");
    struct model_graph *g = f->g;
    struct graph_item *it = &g->items[item];

    it->first = g->ncalls;
    if (node_array(&calls, e) < 0)
        return -1;
    it->ncalls = node_size(&calls);
    if (it->kind == ITEM_INPUT) {
        if (it->ncalls > 0)
            return node_error(&calls, e, "an InputLayer cannot be called");
        it->ncalls = 1;
    }
    if (it->ncalls == 0)
        return node_error(&calls, e, "the layer is never called");
    if (g->ncalls + it->ncalls > f->calls_cap) {
        f->calls_cap = MAX(2 * f->calls_cap, g->ncalls + it->ncalls);
        g->calls = xrealloc(g->calls, f->calls_cap * sizeof(g->calls[0]));
    }
    for (size_t i = 0; i < it->ncalls; i++) {
        struct graph_call *c = &g->calls[g->ncalls++];
        *c = (struct graph_call){ .item = item, .first = f->n };
        if (it->kind == ITEM_INPUT)
            continue;
        struct node call = node_item(&calls, i), mask = { 0 };
        if ((json_is_object(call.v) ? functional_call(f, &call, &mask, e) : functional_old_call(f, &call, e)) < 0)
            return -1;
        c->n = f->n - c->first;
        if (c->n == 0)
            return node_error(&call, e, "the layer is called without a tensor");
        if (node_present(&mask) && functional_mask(f, &mask, e) < 0)
            return -1;
        c->masks = f->n - c->first - c->n;
    }
    return 0;
}

static int functional_items(struct functional *f, struct err *e)
{
    struct model_graph *g = f->g;
    size_t n = node_size(&f->layers);
    g->items = xcalloc(n + 1, sizeof(g->items[0]));
    for (size_t i = 0; i < n; i++) {
        struct node layer = node_item(&f->layers, i), name = node_get(&layer, "name");
        bool mask = is_mask_operation(f, &layer);
        const char *word;
        if (node_str(&name, &word, e) < 0)
            return -1;
        if (!mask)
            g->items[g->nitems++] = (struct graph_item){ .kind = graph_kind_of(&layer), .index = SIZE_MAX, .place = i };
        void *at = (void *)(uintptr_t)(mask ? i + 1 : g->nitems); /* NOLINT: a number in a pointer */
        if (map_put(mask ? &f->masks : &f->places, word, at) != NULL)
            return node_error(&name, e, "two layers are named '%s'", word);
    }
    for (size_t i = 0; i < g->nitems; i++)
        if (functional_calls_of(f, i, e) < 0)
            return -1;
    return 0;
}

/* ---- the numbers of calls ---- */

static int compare_written(const void *a, const void *b)
{
    const struct written_tensor *const *x = a, *const *y = b;
    if ((*x)->item != (*y)->item)
        return (*x)->item < (*y)->item ? -1 : 1;
    return ((*x)->number > (*y)->number) - ((*x)->number < (*y)->number);
}

static const char *functional_name(const struct functional *f, size_t item)
{
    struct node layer = functional_layer(f, item), name = node_get(&layer, "name");
    return json_string_value(name.v);
}

/* The tensors of one item, sorted by the numbers of its calls: the numbers become 0, 1, 2, ... */
static int functional_number(const struct functional *f, struct written_tensor **t, size_t n, size_t item,
                             struct err *e)
{
    const struct graph_item *it = &f->g->items[item];
    int64_t seen = -1;
    size_t calls = 0;
    for (size_t i = 0; i < n; i++) {
        calls += t[i]->number != seen;
        seen = t[i]->number;
        t[i]->number = (int64_t)calls - 1;
    }
    struct node layer = functional_layer(f, item);
    if (calls > it->ncalls)
        return node_error(&layer, e, "%zu calls of layer '%.60s' are used, and it has %zu in inbound_nodes", calls,
                          functional_name(f, item), it->ncalls);
    if (calls > 0 && calls < it->ncalls)
        return node_error(&layer, e, "%zu of the %zu calls of layer '%.60s' do not lead to an output: leave them out",
                          it->ncalls - calls, it->ncalls, functional_name(f, item));
    return 0;
}

static int functional_numbers(struct functional *f, struct err *e)
{
    auto_free struct written_tensor **sorted = xcalloc(f->n + 1, sizeof(struct written_tensor *));
    for (size_t i = 0; i < f->n; i++)
        sorted[i] = &f->tensors[i];
    qsort(sorted, f->n, sizeof(sorted[0]), compare_written); /* NOLINT: pointers */
    for (size_t item = 0, i = 0; item < f->g->nitems; item++) {
        size_t first = i;
        while (i < f->n && sorted[i]->item == item)
            i++;
        if (functional_number(f, sorted + first, i - first, item, e) < 0)
            return -1;
    }
    return 0;
}

static struct graph_tensor *functional_tensors(const struct functional *f, size_t first, size_t n)
{
    struct graph_tensor *ret = xcalloc(n + 1, sizeof(*ret));
    for (size_t i = 0; i < n; i++) {
        const struct written_tensor *t = &f->tensors[first + i];
        ret[i] = (struct graph_tensor){ f->g->items[t->item].first + (size_t)t->number, (size_t)t->output, t->padding };
    }
    return ret;
}

/* ---- order ---- */

enum { UNSEEN, OPEN, DONE };

struct sorting { /* room for all calls */
    unsigned char *state;
    size_t *stack, *next; /* next: their tensors seen so far */
    size_t n;
};

/* Puts a call behind all that make its tensors. */
static int visit(const struct functional *f, size_t root, struct sorting *s, struct err *e)
{
    struct model_graph *g = f->g;
    size_t depth = 0;
    s->stack[depth++] = root;
    while (depth > 0) {
        size_t call = s->stack[depth - 1];
        const struct graph_call *c = &g->calls[call];
        s->state[call] = OPEN;
        if (s->next[call] == c->n + c->masks) {
            s->state[call] = DONE;
            g->order[s->n++] = call;
            depth--;
            continue;
        }
        size_t from = g->tensors[c->first + s->next[call]++].call;
        if (s->state[from] == OPEN) {
            struct node place = graph_call_place(g, &f->layers, call);
            return node_error(&place, e, "layer '%.60s' is called with what is computed from it: a cycle",
                              functional_name(f, c->item));
        }
        if (s->state[from] == UNSEEN)
            s->stack[depth++] = from;
    }
    return 0;
}

/* In the order of the document, as far as it can be kept. */
static int functional_sort(const struct functional *f, struct err *e)
{
    struct model_graph *g = f->g;
    auto_free size_t *stack = xcalloc(g->ncalls + 1, sizeof(*stack)), *next = xcalloc(g->ncalls + 1, sizeof(*next));
    auto_free unsigned char *state = xcalloc(g->ncalls + 1, 1);
    struct sorting s = { .state = state, .stack = stack, .next = next };
    g->order = xcalloc(g->ncalls + 1, sizeof(*g->order));
    for (size_t i = 0; i < g->ncalls; i++)
        if (state[i] == UNSEEN && visit(f, i, &s, e) < 0)
            return -1;
    return 0;
}

/* ---- the ends ---- */

/* Items of inputs get their places among the model's arguments. */
static int functional_inputs(const struct functional *f, size_t first, const struct node *at, struct err *e)
{
    struct model_graph *g = f->g;
    const struct written_tensor *ends = f->tensors + first;
    size_t n = f->n - first;
    g->inputs = xcalloc(n + 1, sizeof(g->inputs[0]));
    for (size_t i = 0; i < n; i++) {
        struct graph_item *it = &g->items[ends[i].item];
        const char *name = functional_name(f, ends[i].item);
        if (it->kind != ITEM_INPUT)
            return node_error(at, e, "the model's input '%.60s' is not an InputLayer", name);
        if (it->index != SIZE_MAX)
            return node_error(at, e, "'%.60s' is an input twice", name);
        it->index = g->ninputs++;
    }
    for (size_t i = 0; i < g->nitems; i++) {
        struct node layer = functional_layer(f, i);
        if (g->items[i].kind == ITEM_INPUT && g->items[i].index == SIZE_MAX)
            return node_error(&layer, e, "InputLayer '%.60s' is not among the input_layers of the model",
                              functional_name(f, i));
    }
    return 0;
}

static int functional_outputs(const struct functional *f, size_t first, const struct node *at, struct err *e)
{
    struct model_graph *g = f->g;
    g->noutputs = f->n - first;
    g->outputs = functional_tensors(f, first, g->noutputs);
    if (g->noutputs == 0)
        return node_error(at, e, "the model has no output");
    for (size_t i = 0; i < g->noutputs; i++) {
        size_t item = g->calls[g->outputs[i].call].item;
        if (g->items[item].kind == ITEM_INPUT)
            return node_error(at, e, "the model's output '%.60s' is one of its inputs", functional_name(f, item));
    }
    return 0;
}

/* Without cycles, every layer leads to an output when all that are not outputs are used by others. */
static int functional_used(const struct functional *f, struct err *e)
{
    auto_free bool *used = xcalloc(f->g->nitems + 1, sizeof(*used));
    for (size_t i = 0; i < f->n; i++)
        used[f->tensors[i].item] = true;
    for (size_t i = 0; i < f->g->nitems; i++) {
        struct node layer = functional_layer(f, i);
        if (!used[i])
            return node_error(&layer, e, "%s '%.60s' does not lead to an output of the model: leave it out",
                              f->g->items[i].kind == ITEM_INPUT ? "InputLayer" : "layer", functional_name(f, i));
    }
    return 0;
}

int graph_read_functional(const struct node *config, struct model_graph *ret, struct err *e)
{
    AUTO_FINI(model_graph) g = { 0 };
    AUTO_FINI(functional) f = { .layers = node_get(config, "layers"), .g = &g };
    struct node in = node_get(config, "input_layers"), out = node_get(config, "output_layers");

    if (node_array(&f.layers, e) < 0 || functional_items(&f, e) < 0)
        return -1;
    g.ntensors = f.n;
    if (functional_ends(&f, &in, 0, e) < 0 || functional_inputs(&f, g.ntensors, &in, e) < 0)
        return -1;
    f.n = g.ntensors; /* the inputs do not use anything */
    f.outputs = true;
    if (functional_ends(&f, &out, 0, e) < 0 || functional_numbers(&f, e) < 0)
        return -1;
    g.tensors = functional_tensors(&f, 0, g.ntensors);
    if (functional_sort(&f, e) < 0 || functional_outputs(&f, g.ntensors, &out, e) < 0 || functional_used(&f, e) < 0)
        return -1;
    *ret = g;
    g = (struct model_graph){ 0 };
    return 0;
}
