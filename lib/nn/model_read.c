/* Reads spec.model: the short form, or Keras's JSON (inline, as text, or in a file). A document becomes graphs; calling
 * the first of them makes layers and nodes. */
#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "codec/yaml.h"
#include "nn/keras_document.h"
#include "nn/model_reading.h"

enum { KERAS_FILE_MAX = 64 << 20, TEXTS_MAX = 3, NESTED_MAX = 16 };

/* The layers that cast integers to floats, in all versions of Keras, or take them as indices. Others may compute with
 * integers, which is not done here. */
static bool makes_floats(enum layer_id id)
{
    return id == LAYER_EMBEDDING || id == LAYER_CATEGORY_ENCODING || id == LAYER_RESCALING ||
           id == LAYER_NORMALIZATION || id == LAYER_DENSE || id == LAYER_BATCH_NORMALIZATION;
}

static int check_integer_input(const struct reading *r, const struct node *layers, struct err *e)
{
    const struct model *m = r->m;
    auto_free const char **integer = xcalloc(model_tensors(m), sizeof(*integer)); /* the dtype of each tensor */
    for (size_t k = 0; k < m->ninputs; k++)
        integer[k] = m->graphs[0]->inputs[k].integer;
    for (size_t i = 0; i < m->nnodes; i++) {
        const struct layer *l = model_called(m, i);
        const char *any = NULL;
        bool all = true, keeps = layer_passes_numbers(l);
        for (size_t k = 0; k < m->nodes[i].nin; k++) {
            const char *dtype = integer[m->nodes[i].in[k]];
            any = any != NULL ? any : dtype;
            all &= dtype != NULL;
        }
        integer[model_made(m, i)] = keeps && all ? any : NULL; /* joined with floats integers become floats */
        if (any != NULL && !keeps && !makes_floats(l->id))
            return node_error(layers, e,
                              "the input is of dtype %s, and %s '%s' would compute with integers: put a Rescaling or "
                              "Normalization layer first, or make the input float32",
                              any, l->row->k.names[0], l->name);
    }
    return 0;
}

/* ---- graphs ---- */

static struct model_graph *add_graph(struct reading *r, const struct node *layers)
{
    struct model *m = r->m;
    size_t n = m->ngraphs + 1;
    m->graphs = xrealloc(m->graphs, n * sizeof(struct model_graph *));
    r->layers = xrealloc(r->layers, n * sizeof(r->layers[0]));
    r->layers[m->ngraphs] = *layers;
    return m->graphs[m->ngraphs++] = xcalloc(1, sizeof(struct model_graph));
}

/* The InputLayers, whose shapes are known before anything is called. */
static int read_inputs(struct reading *r, struct model_graph *g, const struct node *layers, struct err *e)
{
    for (size_t i = g->hidden; i < g->nitems; i++) {
        struct node at = graph_item_place(g, layers, i);
        if (g->items[i].kind != ITEM_INPUT)
            continue;
        if (g->items[i].index == SIZE_MAX)
            return node_error(&at, e, "an InputLayer can only be the first layer");
        if (reading_input_layer(r, g->items[i].index, &at, &g->inputs[g->items[i].index], e) < 0)
            return -1;
    }
    return 0;
}

static int check_outputs(const struct node *layers, const struct model_graph *g, struct err *e)
{
    return g->noutputs <= MODEL_OUTPUTS_MAX
               ? 0
               : node_error(layers, e, "the model has %zu outputs, at most %d are supported", g->noutputs,
                            MODEL_OUTPUTS_MAX);
}

static int set_inputs(struct reading *r, const struct node *layers, const struct model_graph *g, struct err *e)
{
    struct model *m = r->m;
    if (g->ninputs > MODEL_INPUTS_MAX)
        return node_error(layers, e, "the model has %zu inputs, at most %d are supported", g->ninputs,
                          MODEL_INPUTS_MAX);
    if (g->ninputs > 1 && r->has_input)
        return node_error(&r->input_shape, e, "the model has %zu inputs, whose shapes are in its layers: remove it",
                          g->ninputs);
    m->inputs = xrealloc(m->inputs, g->ninputs * sizeof(m->inputs[0]));
    for (size_t i = 1; i < g->ninputs; i++)
        m->inputs[i] = (struct named_shape){ .name = NULL };
    m->ninputs = g->ninputs;
    return 0;
}

/* name: owned by the graph. The names in it are in its scope. */
static int read_graph(struct reading *r, bool sequential, const struct node *config, char *name, struct err *e)
{
    struct node layers = json_is_array(config->v) ? *config : node_get(config, "layers");
    struct model_graph *g = add_graph(r, &layers);

    int rc = node_array(&layers, e);
    if (rc == 0 && sequential)
        graph_read_chain(&layers, g);
    else if (rc == 0)
        rc = graph_read_functional(config, g, e);
    g->name = name;
    if (rc < 0)
        return -1;
    auto_free char *scope = layer_scope(name);
    bool outermost = r->m->ngraphs == 1;
    g->scope = outermost ? xstrdup("") : xasprintf("%s%s/", r->scope, scope);
    if (g->nitems == g->ninputs)
        return node_error(&layers, e, "the list of layers is empty");
    if (outermost && (check_outputs(&layers, g, e) < 0 || set_inputs(r, &layers, g, e) < 0))
        return -1;
    const char *outer = r->scope;
    r->scope = g->scope;
    rc = read_inputs(r, g, &layers, e);
    r->scope = outer;
    return rc;
}

/* ---- calls ---- */

struct calling { /* one call of a graph */
    struct reading *r;
    size_t graph;
    const size_t *in;             /* its tensors */
    size_t *first, *made, *value; /* of each call of the graph: value[first], ..., made in all */
    size_t n, cap;
};

static int call_graph(struct reading *r, size_t graph, const size_t *in, size_t *ret_out, struct err *e);

static int gather(const struct calling *c, const struct graph_tensor *t, size_t n, const struct node *at, size_t *ret,
                  struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (t[i].output >= c->made[t[i].call])
            return node_error(at, e, "output %zu does not exist: the nested model has %zu, which are numbered from 0",
                              t[i].output, c->made[t[i].call]);
        ret[i] = c->value[c->first[t[i].call] + t[i].output];
    }
    return 0;
}

static int check_nested(const struct reading *r, const struct model_graph *g, const struct layer_call *call,
                        struct err *e)
{
    char have[128], want[128];
    if (call->n != g->ninputs)
        return node_error(&call->at, e, "model '%s' takes %zu tensors, not %zu", g->name, g->ninputs, call->n);
    for (size_t i = 0; i < call->n; i++) {
        const struct graph_input *in = &g->inputs[i];
        const struct shape *s = model_tensor(r->m, call->in[i]);
        if (in->known && !reading_fits(s, &in->shape))
            return node_error(&call->at, e, "the input of model '%s' is %s, and it is called with %s", g->name,
                              shape_text(&in->shape, want), shape_text(s, have));
    }
    return 0;
}

/* What is beside the layers of a model: its name is read by the caller. */
static int read_model_config(const struct node *config, bool *ret_trainable, struct err *e)
{
    static const char *const KEYS[] = { "name",         "trainable",    "dtype", "layers", "build_input_shape",
                                        "input_layers", "output_layers" };
    struct node trainable = node_get(config, "trainable");
    *ret_trainable = true;
    if (node_only(config, KEYS, COUNT_OF(KEYS), e) < 0 || reading_check_dtype(config, e) < 0)
        return -1;
    return node_present(&trainable) ? node_bool(&trainable, ret_trainable, e) : 0;
}

static int read_nested(struct reading *r, const struct node *at, size_t *ret, struct err *e)
{
    const char *class_name;
    char *name;
    struct node config;
    bool trainable = true;
    if (reading_layer_form(at, &class_name, &config, e) < 0)
        return -1;
    bool sequential = str_eq(class_name, "Sequential");
    if (r->nested == NESTED_MAX)
        return node_error(at, e, "more than %d models within each other", NESTED_MAX);
    if (!json_is_array(config.v) && read_model_config(&config, &trainable, e) < 0)
        return -1;
    if (reading_take_name(r, &config, sequential ? "sequential" : "functional", &name, e) < 0)
        return -1;
    size_t index = r->m->ngraphs;
    r->nested++;
    int rc = read_graph(r, sequential, &config, name, e);
    r->nested--;
    r->m->graphs[index]->frozen = !trainable;
    *ret = index;
    return rc;
}

static void push_values(struct calling *c, size_t call, const size_t *tensors, size_t n)
{
    struct model *m = c->r->m;
    struct graph_call *k = &m->graphs[c->graph]->calls[call];
    if (k->shapes == NULL && !c->r->failed && !c->r->unshaped) {
        k->shapes = xcalloc(n + 1, sizeof(k->shapes[0]));
        for (size_t i = 0; i < n; i++)
            k->shapes[i] = *model_tensor(m, tensors[i]);
    }
    if (c->n + n > c->cap) {
        c->cap = MAX(2 * c->cap, c->n + n + 16);
        c->value = xrealloc(c->value, c->cap * sizeof(c->value[0]));
    }
    memcpy(c->value + c->n, tensors, n * sizeof(c->value[0]));
    c->first[call] = c->n;
    c->made[call] = n;
    c->n += n;
}

static int call_nested(struct calling *c, size_t call, size_t graph, const struct layer_call *with, struct err *e)
{
    struct reading *r = c->r, outer = *r;
    struct model_graph *g = r->m->graphs[graph];
    auto_free size_t *out = xcalloc(g->noutputs + 1, sizeof(*out));
    if (!r->failed && !r->unshaped && check_nested(r, g, with, e) < 0)
        return -1;
    r->scope = g->scope;
    r->frozen |= g->frozen;
    r->nested++;
    int rc = call_graph(r, graph, with->in, out, e);
    r->nested = outer.nested;
    r->scope = outer.scope;
    r->frozen = outer.frozen;
    push_values(c, call, out, g->noutputs);
    if (rc == 0 && !r->unshaped && !g->inputs[0].known) { /* a chain without InputLayer has the shape that it got */
        g->inputs[0].shape = *model_tensor(r->m, with->in[0]);
        g->inputs[0].known = true;
    }
    return rc;
}

static int call_layer(struct calling *c, size_t call, struct graph_item *it, const struct node *layer,
                      const struct layer_call *with, struct err *e)
{
    struct reading *r = c->r;
    bool again = it->index != SIZE_MAX;
    if (!again)
        it->index = r->m->nlayers;
    if ((again ? reading_call_again(r, it->index, &with->at, with, e) : reading_new_layer(r, layer, with, e)) < 0)
        return -1;
    push_values(c, call, &(size_t){ model_made(r->m, r->m->nnodes - 1) }, 1);
    return 0;
}

/* A nested model that begins a chain without InputLayer has the shape of the input. */
static int take_input_of(struct reading *r, const struct model_graph *g, const struct node *at, struct err *e)
{
    const struct graph_input *in = &g->inputs[0];
    return !r->has_input && in->known ? reading_set_input(r, 0, at, &in->shape, e) : 0;
}

static int make_call(struct calling *c, size_t call, struct err *e)
{
    struct reading *r = c->r;
    const struct model_graph *g = r->m->graphs[c->graph];
    const struct graph_call *k = &g->calls[call];
    struct graph_item *it = &g->items[k->item];
    const struct node layers = r->layers[c->graph], at = graph_item_place(g, &layers, k->item);
    bool known = !r->failed && !r->unshaped;
    auto_free size_t *in = xcalloc(k->n + k->masks + 1, sizeof(*in));
    struct mask_source masks[LAYER_INPUTS_MAX];
    struct layer_call with = { .in = in, .n = k->n, .listed = !g->sequential, .masks = masks, .nmasks = k->masks };

    with.at = graph_call_place(g, &layers, call);
    if (it->kind == ITEM_INPUT) {
        if (known)
            push_values(c, call, &c->in[it->index], 1);
        return 0;
    }
    if (!known && it->index != SIZE_MAX)
        return 0; /* its arguments were checked when it was called first */
    if (known && gather(c, g->tensors + k->first, k->n + k->masks, &with.at, in, e) < 0)
        return -1;
    for (size_t i = 0; i < k->masks; i++)
        masks[i] = (struct mask_source){ in[k->n + i], g->tensors[k->first + k->n + i].padding };
    if (it->kind == ITEM_LAYER)
        return call_layer(c, call, it, &at, &with, e);
    if (it->index == SIZE_MAX && read_nested(r, &at, &it->index, e) < 0)
        return -1;
    if (known && take_input_of(r, r->m->graphs[it->index], &at, e) < 0)
        return -1;
    return call_nested(c, call, it->index, &with, e);
}

static int call_graph(struct reading *r, size_t graph, const size_t *in, size_t *ret_out, struct err *e)
{
    const struct model_graph *g = r->m->graphs[graph];
    const struct node layers = r->layers[graph];
    auto_free size_t *first = xcalloc(g->ncalls + 1, sizeof(*first)), *made = xcalloc(g->ncalls + 1, sizeof(*made));
    auto_free size_t *value = NULL;
    struct calling c = { .r = r, .graph = graph, .in = in, .first = first, .made = made };
    for (size_t i = 0; i < g->ncalls; i++) {
        r->failed |= make_call(&c, g->order[i], e) < 0;
        value = c.value;
        if (r->failed && !node_collects(&layers))
            return -1;
    }
    if (r->failed)
        return -1;
    return r->unshaped ? 0 : gather(&c, g->outputs, g->noutputs, &layers, ret_out, e);
}

/* ---- the whole model ---- */

static int check_used(const struct reading *r, const struct node *layers, struct err *e)
{
    const struct model *m = r->m;
    auto_free size_t *uses = model_readers(m);
    for (size_t i = 0; i < m->nheads; i++)
        uses[m->heads[i].tensor]++;
    for (size_t t = 0; t < model_tensors(m); t++)
        if (uses[t] == 0)
            return node_error(layers, e,
                              "layer '%s' of a nested model does not lead to an output of the model: leave out the "
                              "nested model's output that is not used",
                              t >= m->ninputs ? model_called(m, t - m->ninputs)->name : "input");
    return 0;
}

/* Names of inputs that the document leaves out, after all others; which nodes are the last of their layers. */
static void finish_graphs(struct reading *r)
{
    struct model *m = r->m;
    for (size_t i = 0; i < m->ngraphs; i++) {
        struct model_graph *g = m->graphs[i];
        r->scope = g->scope;
        if (g->inputs[0].name == NULL)
            g->inputs[0].name = reading_automatic_name(r, "input_layer");
    }
    for (size_t i = 0; i < m->ninputs; i++) {
        m->graphs[0]->inputs[i].shape = m->inputs[i].shape;
        m->inputs[i].name = m->graphs[0]->inputs[i].name;
    }
    auto_free bool *called = xcalloc(m->nlayers + 1, sizeof(*called));
    for (size_t i = m->nnodes; i-- > 0;) {
        m->nodes[i].last = !called[m->nodes[i].layer];
        called[m->nodes[i].layer] = true;
    }
}

static bool is_output(const struct model *m, const char *name)
{
    for (size_t i = 0; i < m->nheads; i++)
        if (strcmp(m->heads[i].name, name) == 0)
            return true;
    return false;
}

/* The layer's; of further outputs with that name NAME_1, NAME_2, ...; xmalloc'ed. */
static char *output_name(const struct model *m, const char *layer)
{
    char *name = xstrdup(layer);
    for (size_t n = 1; is_output(m, name); n++) {
        free(name);
        name = xasprintf("%s_%zu", layer, n);
    }
    return name;
}

static int set_outputs(struct reading *r, const struct node *layers, const size_t *out, struct err *e)
{
    struct model *m = r->m;
    const struct model_graph *g = m->graphs[0];
    m->heads = xcalloc(g->noutputs, sizeof(m->heads[0]));
    for (size_t i = 0; i < g->noutputs; i++) {
        const char *name = model_item_name(m, g, g->calls[g->outputs[i].call].item);
        for (size_t k = 0; k < i; k++)
            if (out[k] == out[i])
                return node_error(layers, e, "'%s' is an output of the model twice", name);
        struct model_head *h = &m->heads[i];
        h->name = output_name(m, name);
        h->out = (struct named_shape){ .name = h->name, .shape = *model_tensor(m, out[i]) };
        h->tensor = out[i];
        h->loss_weight = 1;
        m->nheads++;
    }
    return 0;
}

static int call_model(struct reading *r, struct err *e)
{
    const struct node layers = r->layers[0];
    size_t in[MODEL_INPUTS_MAX], out[MODEL_OUTPUTS_MAX];
    for (size_t i = 0; i < r->m->ninputs; i++)
        in[i] = i;
    if (call_graph(r, 0, in, out, e) < 0)
        return -1;
    if (r->unshaped)
        return 0;
    if (set_outputs(r, &layers, out, e) < 0 || check_used(r, &layers, e) < 0)
        return -1;
    finish_graphs(r);
    return check_integer_input(r, &layers, e) < 0 ? -1 : reading_masks(r->m, &layers, e);
}

static int read_model_name(const struct node *n, const char *fallback, char **ret, struct err *e)
{
    const char *name = fallback;
    if (node_str_or(n, "name", fallback, &name, e) < 0)
        return -1;
    if (!reading_is_good_name(name))
        return node_error(n, e, "'%.60s' cannot name a model", name);
    *ret = xstrdup(name);
    return 0;
}

/* ---- Keras's JSON ---- */

static int read_keras_config(const struct node *config, struct err *e)
{
    struct node n = node_get(config, "trainable");
    bool trainable;
    if (read_model_config(config, &trainable, e) < 0)
        return -1;
    return trainable
               ? 0
               : node_error(&n, e, "a model that is not trainable as a whole is not supported; freeze its layers");
}

/* Model(inputs, outputs) */
static int read_functional(struct reading *r, const struct node *config, struct err *e)
{
    char *name;
    if (read_keras_config(config, e) < 0 || read_model_name(config, "functional", &name, e) < 0)
        return -1;
    return read_graph(r, false, config, name, e) < 0 ? -1 : call_model(r, e);
}

/* The config is a map, or in the oldest files the list of layers. */
static int read_sequential(struct reading *r, const struct node *config, struct err *e)
{
    bool list = json_is_array(config->v);
    char *name;
    if ((!list && read_keras_config(config, e) < 0) || read_model_name(config, "sequential", &name, e) < 0)
        return -1;
    if (read_graph(r, true, config, name, e) < 0)
        return -1;
    struct node built = node_get(config, "build_input_shape");
    struct shape s = { 0 };
    if (node_present(&built) && r->m->graphs[0]->hidden > 0 &&
        (input_shape_read(&built, true, &s, e) < 0 || reading_set_input(r, 0, &built, &s, e) < 0))
        return -1;
    return call_model(r, e);
}

/* {"class_name": "Sequential", "config": {...}} */
static int read_keras(struct reading *r, struct node n, struct err *e)
{
    static const char *const KEYS[] = { "module",       "class_name",     "config",        "registered_name",
                                        "build_config", "compile_config", "keras_version", "backend" };
    const char *name;

    if (keras_document_model(&n, &r->keras_2, e) < 0)
        return -1;
    struct node class_name = node_get(&n, "class_name"), config = node_get(&n, "config");
    if (node_only(&n, KEYS, COUNT_OF(KEYS), e) < 0 || node_str(&class_name, &name, e) < 0)
        return -1;
    r->compile->config = node_get(&n, "compile_config");
    if (str_eq(name, "Functional") || str_eq(name, "Model"))
        return read_functional(r, &config, e);
    if (str_eq(name, "Sequential"))
        return read_sequential(r, &config, e);
    return node_error(&class_name, e, "'%.60s' is not a model that can be read; only Sequential and Functional", name);
}

/* Text from the manifest or a file: read with the places of its values, so that errors name line and column. depth: of
 * texts within texts, as of json.dump(model.to_json()). */
static int read_keras_text(struct reading *r, const char *text, size_t n, const char *name, int depth, struct err *e)
{
    json_auto_t *doc = NULL, *inner = NULL;
    AUTO(source) *source = NULL;
    if (depth < TEXTS_MAX && n > 0 && text[0] == '"' && json_parse(text, n, name, &inner, NULL) == 0 &&
        json_is_string(inner))
        return read_keras_text(r, json_string_value(inner), json_string_length(inner), name, depth + 1, e);
    if (yaml_parse(text, n, name, &doc, &source, e) < 0)
        return -1;
    struct node root = node_root(doc, source);
    r->compile->doc = TAKE(doc);
    r->compile->source = TAKE(source);
    return read_keras(r, root, e);
}

static int read_keras_file(struct reading *r, const struct node *n, const char *base_dir, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    struct err why = { 0 };
    const char *name;
    if (node_str(n, &name, e) < 0)
        return -1;
    auto_free char *path = path_join(base_dir, name);
    if (file_read(path, KERAS_FILE_MAX, &text, &why) < 0) {
        if (!file_exists(path))
            node_error(n, e, "no file '%s' in the data folder '%s' (set it with --data-dir)", name, base_dir);
        else
            node_error(n, e, "%s", why.msg); /* the place, and what may be done about it */
        if (e != NULL)
            e->code = why.code;
        return -1;
    }
    return read_keras_text(r, text.data, text.len, path, 0, e);
}

/* ---- spec.model ---- */

static int read_input_shape(struct reading *r, const struct node *n, struct err *e)
{
    struct node input = node_get(n, "inputShape");
    struct shape s = { 0 };
    if (!node_present(&input))
        return 0;
    if (input_shape_read(&input, false, &s, e) < 0)
        return -1;
    for (size_t i = 0; i < node_size(&input); i++) {
        struct node item = node_item(&input, i);
        if (!node_present(&item))
            return node_error(&item, e, "axes of variable size are not supported yet");
    }
    r->input_shape = input;
    return reading_set_input(r, 0, &input, &s, e);
}

static int read_short(struct reading *r, const struct node *n, struct err *e)
{
    char *name;
    if (read_model_name(n, "sequential", &name, e) < 0 || read_graph(r, true, n, name, e) < 0)
        return -1;
    return call_model(r, e);
}

static int read_any(struct reading *r, const struct node *n, const char *base_dir, struct err *e)
{
    static const char *const KEYS[] = { "inputShape", "layers", "name", "keras", "kerasFile" };
    struct node keras = node_get(n, "keras"), file = node_get(n, "kerasFile"), layers = node_get(n, "layers"),
                name = node_get(n, "name");
    int forms = node_present(&keras) + node_present(&file) + node_present(&layers);

    if (node_only(n, KEYS, COUNT_OF(KEYS), e) < 0)
        return -1;
    if (forms != 1)
        return node_error(n, e, "must have exactly one of layers, keras and kerasFile");
    if (read_input_shape(r, n, e) < 0)
        return -1;
    if (node_present(&layers))
        return read_short(r, n, e);
    if (node_present(&name))
        return node_error(&name, e, "is in the model of Keras, and cannot be set beside it");
    if (node_present(&file))
        return read_keras_file(r, &file, base_dir, e);
    if (!json_is_string(keras.v))
        return read_keras(r, keras, e);
    auto_free char *place =
        xasprintf("%s%s%s", n->src != NULL ? source_name(n->src) : "", n->src != NULL ? ": " : "", keras.path);
    return read_keras_text(r, json_string_value(keras.v), json_string_length(keras.v), place, 0, e);
}

void keras_compile_fini(struct keras_compile *c)
{
    json_decref(c->doc);
    source_free(c->source);
}

/* Until the graph is read, a model has one input. */
static void alloc_input(struct model *m)
{
    m->inputs = xcalloc(1, sizeof(m->inputs[0]));
    m->ninputs = 1;
}

int model_read(struct model *m, const struct node *n, const char *base_dir, struct keras_compile *ret, struct err *e)
{
    AUTO_FINI(map) names = { 0 };
    AUTO_FINI(map) numbered = { 0 };
    struct reading r = { .m = m, .names = &names, .numbered = &numbered, .scope = "", .compile = ret };
    alloc_input(m);
    int rc = read_any(&r, n, base_dir, e);
    free(r.layers);
    return rc;
}

int model_check_layers(struct model *m, const struct node *n, struct err *e)
{
    AUTO_FINI(map) names = { 0 };
    AUTO_FINI(map) numbered = { 0 };
    struct reading r = { .m = m, .names = &names, .numbered = &numbered, .scope = "", .unshaped = true };
    alloc_input(m);
    int rc = read_any(&r, n, "", e);
    free(r.layers);
    return rc;
}
