/* Reads one layer of a model: its name, arguments and shapes, and the tensors of its calls. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "job/device.h"
#include "nn/model_reading.h"

enum { MODEL_CALLS_MAX = 20000 };

static char NAME[] = "name", SCOPE[] = "scope"; /* marks in reading.names */

/* ---- names ---- */

/* What a name is within the models around it: NAME, SCOPE or NULL. */
static const char *is_taken(const struct reading *r, const char *name)
{
    auto_free char *scoped = xasprintf("%s%s", r->scope, name);
    return map_get(r->names, scoped);
}

static void mark_name(struct reading *r, const char *name, char *mark)
{
    auto_free char *scoped = xasprintf("%s%s", r->scope, name);
    map_put(r->names, scoped, mark);
}

/* "dense", "dense_1", ...: the first that is free, as Keras counts. Names are never released, so the search
 * continues where it ended for this base: n layers cost n steps. */
char *reading_automatic_name(struct reading *r, const char *base)
{
    auto_free char *scoped = xasprintf("%s%s", r->scope, base);
    intptr_t i = (intptr_t)map_get(r->numbered, scoped);
    char *name = i == 0 ? xstrdup(base) : xasprintf("%s_%" PRIdPTR, base, i);
    while (is_taken(r, name) != NULL) {
        free(name);
        name = xasprintf("%s_%" PRIdPTR, base, ++i);
    }
    map_put(r->numbered, scoped, (void *)(i + 1));
    return name;
}

/* Names end up in logs, exports and, as layer_scope() has them, in variable names; a slash would be a scope. */
bool reading_is_good_name(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < ' ' || s[i] == 0x7f || s[i] == '/')
            return false;
    return n > 0 && n <= 100 && s[0] != '.' && s[0] != '-' && s[0] != ' ';
}

int reading_take_name(struct reading *r, const struct node *config, const char *base, char **ret, struct err *e)
{
    struct node given = node_get(config, "name");
    const char *name = NULL;

    if (node_present(&given)) {
        if (node_str(&given, &name, e) < 0)
            return -1;
        if (!reading_is_good_name(name))
            return node_error(&given, e,
                              "'%.60s' cannot name a layer: 1 to 100 characters without '/', and not '.', '-' or a "
                              "space first",
                              name);
        auto_free char *scope = layer_scope(name);
        if (is_taken(r, name) == NAME)
            return node_error(&given, e, "two layers are named '%s'", name);
        if (is_taken(r, scope) != NULL)
            return node_error(&given, e, "'%s' would have the variable names of another layer, '%s/...'", name, scope);
    }
    *ret = name != NULL ? xstrdup(name) : reading_automatic_name(r, base);
    auto_free char *scope = layer_scope(*ret);
    mark_name(r, scope, SCOPE);
    mark_name(r, *ret, NAME);
    return 0;
}

/* The name of its dtype or policy; NULL: it has none. */
static int read_dtype(const struct node *config, const char **ret, struct err *e)
{
    struct node dtype = node_get(config, "dtype"), policy;
    const char *name = NULL;

    *ret = NULL;
    if (!node_present(&dtype))
        return 0;
    if (node_named(&dtype, &name, &policy, e) < 0)
        return -1;
    if (str_eq(name, "DTypePolicy") || str_eq(name, "Policy")) {
        policy = node_get(&policy, "name");
        if (node_str(&policy, &name, e) < 0)
            return -1;
    }
    *ret = name;
    return 0;
}

int reading_check_dtype(const struct node *config, struct err *e)
{
    struct node dtype = node_get(config, "dtype");
    const char *name;
    if (read_dtype(config, &name, e) < 0)
        return -1;
    if (name != NULL && !str_eq(name, "float32"))
        return node_error(&dtype, e, "only float32 is supported yet, not '%.60s'", name);
    return 0;
}

/* Integers are read, too; check_integer_input() says what for. */
static int read_input_dtype(const struct node *config, const char **ret_integer, struct err *e)
{
    static const char *const INTEGERS[] = { "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64" };
    const char *name;
    if (read_dtype(config, &name, e) < 0)
        return -1;
    for (size_t i = 0; name != NULL && i < COUNT_OF(INTEGERS); i++)
        if (str_eq(name, INTEGERS[i])) {
            *ret_integer = INTEGERS[i];
            return 0;
        }
    return reading_check_dtype(config, e);
}

/* Axes of unknown size fit all. */
bool reading_fits(const struct shape *known, const struct shape *s)
{
    bool same = known->rank == s->rank;
    for (int i = 0; same && i < s->rank; i++)
        same = s->dim[i] < 0 || s->dim[i] == known->dim[i];
    return same;
}

static bool has_open_axis(const struct shape *s)
{
    for (int i = 0; i < s->rank; i++)
        if (s->dim[i] < 0)
            return true;
    return false;
}

int reading_set_input(struct reading *r, size_t input, const struct node *at, const struct shape *s, struct err *e)
{
    char have[128], want[128];
    struct named_shape *in = &r->m->inputs[input];
    size_t count;
    if (r->has_input && r->m->ninputs == 1)
        return reading_fits(&in->shape, s) ? 0
                                           : node_error(at, e, "input shape %s conflicts with %s declared earlier",
                                                        shape_text(s, have), shape_text(&in->shape, want));
    if (has_open_axis(s)) {
        r->open_input = true;
        return 0;
    }
    if (shape_count(s, &count, e) < 0 || count > INT32_MAX)
        return node_error(at, e, "an input of shape %s is too large", shape_text(s, have));
    r->has_input = true;
    in->shape = *s;
    return 0;
}

static int need_input(const struct reading *r, const struct node *at, struct err *e)
{
    if (r->open_input && r->m->ninputs > 1)
        return node_error(at, e, "has axes of any size, which only the input of a model with one input may have");
    if (r->has_input)
        return 0;
    if (r->open_input)
        return node_error(at, e, "the file leaves axes of the input open: set model.inputShape");
    return node_error(at, e, "the shape of the input is not known: set model.inputShape");
}

int reading_input_layer(struct reading *r, size_t input, const struct node *at, struct graph_input *ret, struct err *e)
{
    static const char *const KEYS[] = { "name",   "dtype",  "batch_shape", "batch_input_shape", "input_shape", "shape",
                                        "sparse", "ragged", "optional",    "trainable",         "batch_size" };
    static const char *const REFUSED[] = { "sparse", "ragged", "optional", "batch_size" };
    struct node config;
    const char *class_name;

    if (reading_layer_form(at, &class_name, &config, e) < 0 ||
        (node_present(&config) && node_only(&config, KEYS, COUNT_OF(KEYS), e) < 0))
        return -1;
    for (size_t i = 0; i < COUNT_OF(REFUSED); i++) {
        struct node n = node_get(&config, REFUSED[i]);
        if (node_present(&n) && !json_is_false(n.v))
            return node_error(&n, e, "'%s' is not supported", REFUSED[i]);
    }
    if (read_input_dtype(&config, &ret->integer, e) < 0 ||
        input_shape_of_layer(class_name, &config, &ret->known, &ret->shape, e) < 0)
        return -1;
    if (!ret->known)
        return node_error(at, e, "an InputLayer needs its batch_shape");
    if (r->nested == 0 &&
        (reading_set_input(r, input, &config, &ret->shape, e) < 0 || (!r->unshaped && need_input(r, &config, e) < 0)))
        return -1;
    return reading_take_name(r, &config, "input_layer", &ret->name, e);
}

static struct layer *add_layer(struct model *m)
{
    if (m->nlayers == m->cap) {
        m->cap = MAX(2 * m->cap, (size_t)16);
        m->layers = xrealloc(m->layers, m->cap * sizeof(*m->layers));
    }
    struct layer *l = &m->layers[m->nlayers++];
    *l = (struct layer){ 0 };
    return l;
}

/* Multiplying the sizes is safe afterwards: one example of any layer is below 2^31 floats. */
static int check_output(const struct layer *l, const struct node *at, struct err *e)
{
    char text[128];
    size_t count;
    if (shape_count(&l->out, &count, NULL) < 0 || count > INT32_MAX)
        return node_error(at, e, "the output of '%s', shape %s, is too large", l->name, shape_text(&l->out, text));
    return 0;
}

/* Sets the shapes of the call, which l is the layer of. */
static int connect(const struct reading *r, struct layer *l, const struct node *at, const struct layer_call *call,
                   struct err *e)
{
    const char *class_name = l->row->k.names[0];

    if (!call->listed && l->row->joins)
        return node_error(at, e, "%s joins several tensors, so it needs a functional model of Keras (spec.model.keras)",
                          class_name);
    if (call->n > 1 && !l->row->joins)
        return node_error(&call->at, e, "%s takes one tensor, not %zu", class_name, call->n);
    if (call->n > LAYER_INPUTS_MAX)
        return node_error(&call->at, e, "%zu tensors, at most %d: join them in several layers", call->n,
                          LAYER_INPUTS_MAX);
    l->nin = call->n;
    for (size_t k = 0; k < call->n; k++)
        l->in[k] = *model_tensor(r->m, call->in[k]);
    return 0;
}

static struct model_node *add_node(struct model *m, size_t layer, const struct layer_call *call)
{
    if (m->nnodes == m->nodes_cap) {
        m->nodes_cap = MAX(2 * m->nodes_cap, (size_t)16);
        m->nodes = xrealloc(m->nodes, m->nodes_cap * sizeof(*m->nodes));
    }
    struct model_node *n = &m->nodes[m->nnodes++];
    *n = (struct model_node){ .layer = layer, .nin = call->n, .nmasks = call->nmasks };
    memcpy(n->masks, call->masks, call->nmasks * sizeof(n->masks[0]));
    memcpy(n->in, call->in, call->n * sizeof(n->in[0]));
    return n;
}

/* The only activation that Keras 3 has changed under the same name. */
static int check_activation(const struct reading *r, const struct layer *l, const struct node *place, struct err *e)
{
    if (!r->keras_2 || l->activation.kind != ACT_HARD_SIGMOID)
        return 0;
    return node_error(
        place, e,
        "Keras 2's hard_sigmoid is 0.2 x + 0.5 between 0 and 1, and this is Keras 3's, relu6(x + 3) / 6: load "
        "the model with Keras 3, put a Rescaling layer with scale 1.2 before the activation, and write it "
        "again (model.to_json())");
}

static int read_device(const struct reading *r, const struct node *config, int *ret_pin, struct err *e)
{
    struct node device = node_get(config, "device");
    int ps;
    if (!node_present(&device))
        return 0;
    if (r->compile->doc != NULL)
        return node_error(&device, e, "'device' is not Keras's: place layers in spec.model.layers of the manifest");
    if (device_parse(&device, &ps, e) < 0)
        return -1;
    *ret_pin = ps + 1;
    return 0;
}

static int read_shape_argument(struct reading *r, const struct node *place, const struct node *config, struct err *e)
{
    const char *class_name = r->m->layers[r->m->nlayers - 1].row->k.names[0];
    bool first = r->m->nlayers == 1, found;
    struct shape s = { 0 };
    if (input_shape_of_layer(class_name, config, &found, &s, e) < 0)
        return -1;
    if (config->lenient && (!first || r->has_input))
        found = false; /* Keras keeps the shapes that people give to later layers, and ignores them */
    if (found && !first)
        return node_error(place, e, "only the first layer may set the shape of the input");
    return found ? reading_set_input(r, 0, place, &s, e) : 0;
}

static int build_layer(struct reading *r, struct layer *l, const struct node *at, const struct node *config,
                       const struct layer_call *call, struct err *e)
{
    const struct node *place = node_present(config) ? config : at;

    l->arg = xcalloc(l->row->k.nargs, sizeof(*l->arg));
    if (args_parse(&l->row->k, config, l->arg, e) < 0 ||
        reading_take_name(r, config, l->row->auto_name, &l->name, e) < 0 || reading_check_dtype(config, e) < 0 ||
        read_shape_argument(r, place, config, e) < 0 || need_input(r, at, e) < 0)
        return -1;
    auto_free char *scope = layer_scope(l->name);
    l->scope = xasprintf("%s%s", r->scope, scope);
    l->trainable = l->arg[ARG_TRAINABLE] != 0 && !r->frozen;
    if (read_device(r, config, &l->pin, e) < 0 || connect(r, l, at, call, e) < 0)
        return -1;
    if (l->row->read != NULL && l->row->read(l, config, e) < 0)
        return -1;
    if (check_activation(r, l, place, e) < 0 || l->row->shape(l, place, e) < 0 || check_output(l, place, e) < 0)
        return -1;
    if (l->row->variables != NULL)
        l->row->variables(l);
    add_node(r->m, r->m->nlayers - 1, call);
    return 0;
}

int reading_layer_form(const struct node *at, const char **ret_name, struct node *ret_config, struct err *e)
{
    static const char *const KERAS_KEYS[] = { "module",       "class_name",     "config", "registered_name",
                                              "build_config", "compile_config", "name",   "inbound_nodes" };
    struct node class_name = node_get(at, "class_name"), registered = node_get(at, "registered_name");
    struct node own_name = node_get(at, "name"), own_device = node_get(at, "device");

    if ((node_present(&own_name) || node_present(&own_device)) && !node_present(&class_name))
        return node_error(at, e, "a layer is written as {Dense: {units: 10, name: hidden, device: ps:0}}");
    if (node_named(at, ret_name, ret_config, e) < 0)
        return -1;
    if (node_present(&class_name) && node_only(at, KERAS_KEYS, COUNT_OF(KERAS_KEYS), e) < 0)
        return -1;
    if (node_present(&registered) && !str_eq(json_string_value(registered.v), *ret_name))
        return node_error(&registered, e, "custom layer classes are not supported");
    return 0;
}

int reading_new_layer(struct reading *r, const struct node *at, const struct layer_call *call, struct err *e)
{
    struct node config;
    const struct kind *kind;
    const char *name;

    if (reading_layer_form(at, &name, &config, e) < 0)
        return -1;
    if (r->m->nlayers >= MODEL_LAYERS_MAX)
        return node_error(at, e, "more than %d layers", MODEL_LAYERS_MAX);
    if (catalog_find(&LAYER_KINDS, at, name, &kind, e) < 0)
        return -1;
    if (r->failed || r->unshaped) {
        auto_free double *values = xcalloc(kind->nargs, sizeof(*values));
        return args_parse(kind, &config, values, e);
    }
    struct layer *l = add_layer(r->m);
    l->row = (const struct layer_row *)(const void *)kind;
    l->id = (enum layer_id)(l->row - layer_rows);
    if (build_layer(r, l, at, &config, call, e) < 0)
        return -1;
    if (str_eq(name, l->row->flag.name))
        l->arg[l->row->flag.arg] = 1;
    return 0;
}

/* ---- a layer that is called again ---- */

/* The variables were made for the first call. */
static int check_variables(const struct layer *l, const struct layer *again, const struct node *at, struct err *e)
{
    char first[128], now[128];
    bool same = l->nvars == again->nvars;
    for (int i = 0; same && i < l->nvars; i++)
        same = shape_eq(&l->var[i].shape, &again->var[i].shape);
    return same ? 0
                : node_error(at, e, "layer '%s' is called with %s, and its variables are for %s: they cannot be shared",
                             l->name, shape_text(&again->in[0], now), shape_text(&l->in[0], first));
}

int reading_call_again(struct reading *r, size_t layer, const struct node *at, const struct layer_call *call,
                       struct err *e)
{
    const struct layer *l = &r->m->layers[layer];
    struct layer again = *l;

    if (r->m->nnodes >= MODEL_CALLS_MAX)
        return node_error(at, e, "more than %d calls of layers", MODEL_CALLS_MAX);
    if (layer_wants_adapt(l))
        return node_error(at, e,
                          "Normalization '%s' learns from what it is called with, and it is called several times: give "
                          "it mean and variance",
                          l->name);
    again.nvars = 0;
    if (connect(r, &again, at, call, e) < 0 || l->row->shape(&again, at, e) < 0 || check_output(&again, at, e) < 0)
        return -1;
    if (l->row->variables != NULL)
        l->row->variables(&again);
    if (check_variables(l, &again, at, e) < 0)
        return -1;
    add_node(r->m, layer, call)->again = xmemdup(&again, sizeof(again));
    return 0;
}
