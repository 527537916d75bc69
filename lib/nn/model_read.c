/* Reads spec.model: the short form, or Keras's JSON (inline, as text, or in a file). */
#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/str.h"
#include "codec/yaml.h"
#include "job/device.h"
#include "nn/functional.h"
#include "nn/keras_document.h"
#include "nn/model_impl.h"

enum { KERAS_FILE_MAX = 64 << 20, TEXTS_MAX = 3 };

struct reading { /* one model being read */
    struct model *m;
    bool has_input;
    bool open_input;           /* the file has axes of unknown size */
    const char *integer_input; /* the dtype of an input of integers, or NULL */
    struct map *names;         /* of layers: NAME; of their variables, where these differ: SCOPE */
    bool unshaped;             /* the input is not known: each layer is checked by itself */
    bool failed;               /* shapes are no longer known; only checks of single layers continue (source_collect) */
    bool keras_2;              /* the document is of Keras 2 */
    struct map *numbered;      /* base of an automatic name -> the number to try next */
    struct keras_compile *compile;
};

static char NAME[] = "name", SCOPE[] = "scope"; /* marks in reading.names */

/* ---- one layer ---- */

/* "dense", "dense_1", ...: the first that is free, as Keras counts. Names are never released, so the search
 * continues where it ended for this base: n layers cost n steps. */
static char *automatic_name(struct reading *r, const char *base)
{
    intptr_t i = (intptr_t)map_get(r->numbered, base);
    char *name = i == 0 ? xstrdup(base) : xasprintf("%s_%" PRIdPTR, base, i);
    while (map_get(r->names, name) != NULL) {
        free(name);
        name = xasprintf("%s_%" PRIdPTR, base, ++i);
    }
    map_put(r->numbered, base, (void *)(i + 1));
    return name;
}

/* Names end up in logs, exports and, as layer_scope() has them, in variable names; a slash would be a scope. */
static bool is_good_name(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < ' ' || s[i] == 0x7f || s[i] == '/')
            return false;
    return n > 0 && n <= 100 && s[0] != '.' && s[0] != '-' && s[0] != ' ';
}

static int take_name(struct reading *r, const struct node *config, const char *base, char **ret, struct err *e)
{
    struct node given = node_get(config, "name");
    const char *name = NULL;

    if (node_present(&given)) {
        if (node_str(&given, &name, e) < 0)
            return -1;
        if (!is_good_name(name))
            return node_error(&given, e,
                              "'%.60s' cannot name a layer: 1 to 100 characters without '/', and not '.', '-' or a "
                              "space first",
                              name);
        auto_free char *scope = layer_scope(name);
        if (map_get(r->names, name) == NAME)
            return node_error(&given, e, "two layers are named '%s'", name);
        if (map_get(r->names, scope) != NULL)
            return node_error(&given, e, "'%s' would have the variable names of another layer, '%s/...'", name, scope);
    }
    *ret = name != NULL ? xstrdup(name) : automatic_name(r, base);
    auto_free char *scope = layer_scope(*ret);
    map_put(r->names, scope, SCOPE);
    map_put(r->names, *ret, NAME);
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

static int check_dtype(const struct node *config, struct err *e)
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
static int read_input_dtype(struct reading *r, const struct node *config, struct err *e)
{
    static const char *const INTEGERS[] = { "uint8", "int8", "uint16", "int16", "uint32", "int32", "int64" };
    const char *name;
    if (read_dtype(config, &name, e) < 0)
        return -1;
    for (size_t i = 0; name != NULL && i < COUNT_OF(INTEGERS); i++)
        if (str_eq(name, INTEGERS[i])) {
            r->integer_input = INTEGERS[i];
            return 0;
        }
    return check_dtype(config, e);
}

/* Axes of unknown size fit all. */
static bool is_the_input(const struct shape *known, const struct shape *s)
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

static int set_input(struct reading *r, const struct node *at, const struct shape *s, struct err *e)
{
    char have[128], want[128];
    size_t count;
    if (r->has_input)
        return is_the_input(&r->m->input, s) ? 0
                                             : node_error(at, e, "input shape %s conflicts with %s declared earlier",
                                                          shape_text(s, have), shape_text(&r->m->input, want));
    if (has_open_axis(s)) {
        r->open_input = true;
        return 0;
    }
    if (shape_count(s, &count, e) < 0 || count > INT32_MAX)
        return node_error(at, e, "an input of shape %s is too large", shape_text(s, have));
    r->has_input = true;
    r->m->input = *s;
    return 0;
}

static int need_input(const struct reading *r, const struct node *at, struct err *e)
{
    if (r->has_input)
        return 0;
    if (r->open_input)
        return node_error(at, e, "the file leaves axes of the input open: set model.inputShape");
    return node_error(at, e, "the shape of the input is not known: set model.inputShape");
}

/* InputLayer: only the first, and not kept as a layer. */
static int read_input_layer(struct reading *r, const struct node *at, const struct node *config, struct err *e)
{
    static const char *const KEYS[] = { "name",   "dtype",  "batch_shape", "batch_input_shape", "input_shape", "shape",
                                        "sparse", "ragged", "optional",    "trainable",         "batch_size" };
    static const char *const REFUSED[] = { "sparse", "ragged", "optional", "batch_size" };
    struct shape s = { 0 };
    bool found;

    if (r->m->nlayers > 0 || r->m->input_name != NULL)
        return node_error(at, e, "an InputLayer can only be the first layer");
    if (node_present(config) && node_only(config, KEYS, COUNT_OF(KEYS), e) < 0)
        return -1;
    for (size_t i = 0; i < COUNT_OF(REFUSED); i++) {
        struct node n = node_get(config, REFUSED[i]);
        if (node_present(&n) && !json_is_false(n.v))
            return node_error(&n, e, "'%s' is not supported", REFUSED[i]);
    }
    if (read_input_dtype(r, config, e) < 0 || input_shape_of_layer(config, &found, &s, e) < 0)
        return -1;
    if (!found)
        return node_error(at, e, "an InputLayer needs its batch_shape");
    if (set_input(r, config, &s, e) < 0 || need_input(r, config, e) < 0)
        return -1;
    return take_name(r, config, "input_layer", &r->m->input_name, e);
}

static struct layer *new_layer(struct model *m)
{
    if (m->nlayers == m->cap) {
        m->cap = MAX(2 * m->cap, (size_t)16);
        m->layers = xrealloc(m->layers, m->cap * sizeof(*m->layers));
        m->nodes = xrealloc(m->nodes, m->cap * sizeof(*m->nodes));
    }
    struct layer *l = &m->layers[m->nlayers];
    *l = (struct layer){ 0 };
    m->nodes[m->nnodes++] = (struct model_node){ .layer = m->nlayers++ };
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

/* The tensors that the newest layer is called with; call NULL: the one made last. */
static int connect(struct reading *r, struct layer *l, const struct node *at, const struct functional *f,
                   const struct functional_call *call, struct err *e)
{
    struct model_node *n = &r->m->nodes[r->m->nnodes - 1];
    const char *class_name = l->row->k.names[0];

    if (call == NULL && l->row->joins)
        return node_error(at, e, "%s joins several tensors, so it needs a functional model of Keras (spec.model.keras)",
                          class_name);
    n->nin = call != NULL ? call->nin : 1;
    if (n->nin > 1 && !l->row->joins)
        return node_error(&call->inputs, e, "%s takes one tensor, not %zu", class_name, n->nin);
    if (n->nin > LAYER_INPUTS_MAX)
        return node_error(&call->inputs, e, "%zu tensors, at most %d: join them in several layers", n->nin,
                          LAYER_INPUTS_MAX);
    l->nin = n->nin;
    for (size_t k = 0; k < n->nin; k++) {
        n->in[k] = call != NULL ? f->in[call->first + k] : r->m->nnodes - 1;
        l->in[k] = *model_tensor(r->m, n->in[k]);
    }
    return 0;
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

static int build_layer(struct reading *r, struct layer *l, const struct node *at, const struct node *config,
                       const struct functional *f, const struct functional_call *call, struct err *e)
{
    const struct node *place = node_present(config) ? config : at;
    struct shape s = { 0 };
    bool found;

    l->arg = xcalloc(l->row->k.nargs, sizeof(*l->arg));
    if (args_parse(&l->row->k, config, l->arg, e) < 0 || take_name(r, config, l->row->auto_name, &l->name, e) < 0 ||
        check_dtype(config, e) < 0 || input_shape_of_layer(config, &found, &s, e) < 0)
        return -1;
    bool first = r->m->nlayers == 1;
    if (config->lenient && (!first || r->m->input_name != NULL))
        found = false; /* Keras keeps the shapes that people give to later layers, and ignores them */
    if (found && !first)
        return node_error(place, e, "only the first layer may set the shape of the input");
    if ((found && set_input(r, place, &s, e) < 0) || need_input(r, at, e) < 0)
        return -1;
    l->trainable = l->arg[ARG_TRAINABLE] != 0;
    if (read_device(r, config, &l->pin, e) < 0)
        return -1;
    if (connect(r, l, at, f, call, e) < 0)
        return -1;
    if (l->row->read != NULL && l->row->read(l, config, e) < 0)
        return -1;
    if (check_activation(r, l, place, e) < 0)
        return -1;
    if (l->row->shape(l, place, e) < 0 || check_output(l, place, e) < 0)
        return -1;
    return 0;
}

static int read_layer(struct reading *r, const struct node *at, const struct functional *f,
                      const struct functional_call *call, struct err *e)
{
    static const char *const KERAS_KEYS[] = { "module",       "class_name", "config",       "registered_name",
                                              "build_config", "name",       "inbound_nodes" };
    struct node config, class_name = node_get(at, "class_name"), registered = node_get(at, "registered_name");
    struct node own_name = node_get(at, "name"), own_device = node_get(at, "device");
    const struct kind *kind;
    const char *name;

    if ((node_present(&own_name) || node_present(&own_device)) && !node_present(&class_name))
        return node_error(at, e, "a layer is written as {Dense: {units: 10, name: hidden, device: ps:0}}");
    if (node_named(at, &name, &config, e) < 0)
        return -1;
    if (str_eq(name, "Sequential") || str_eq(name, "Functional") || str_eq(name, "Model"))
        return node_error(
            at, e, "a model within a model is not supported yet: put the layers of the inner one here, in its place");
    if (node_present(&class_name) && node_only(at, KERAS_KEYS, COUNT_OF(KERAS_KEYS), e) < 0)
        return -1;
    if (node_present(&registered) && !str_eq(json_string_value(registered.v), name))
        return node_error(&registered, e, "custom layer classes are not supported");
    if (str_eq(name, "InputLayer"))
        return read_input_layer(r, at, &config, e);
    if (r->m->nlayers >= MODEL_LAYERS_MAX)
        return node_error(at, e, "more than %d layers", MODEL_LAYERS_MAX);
    if (catalog_find(&LAYER_KINDS, at, name, &kind, e) < 0)
        return -1;
    if (r->failed || r->unshaped) {
        auto_free double *values = xcalloc(kind->nargs, sizeof(*values));
        return args_parse(kind, &config, values, e);
    }
    struct layer *l = new_layer(r->m);
    l->row = (const struct layer_row *)(const void *)kind;
    l->id = (enum layer_id)(l->row - layer_rows);
    return build_layer(r, l, at, &config, f, call, e);
}

/* The layers that cast integers to floats, in all versions of Keras. Others may compute with integers, which is not
 * done here. */
static bool casts_to_float(enum layer_id id)
{
    return id == LAYER_RESCALING || id == LAYER_NORMALIZATION || id == LAYER_DENSE || id == LAYER_BATCH_NORMALIZATION;
}

static int check_integer_input(const struct reading *r, const struct node *layers, struct err *e)
{
    const struct model *m = r->m;
    auto_free bool *integer = xcalloc(m->nnodes + 1, sizeof(*integer));
    integer[0] = r->integer_input != NULL;
    for (size_t i = 0; i < m->nnodes; i++) {
        const struct layer *l = &m->layers[m->nodes[i].layer];
        bool any = false;
        for (size_t k = 0; k < m->nodes[i].nin; k++)
            any = any || integer[m->nodes[i].in[k]];
        integer[i + 1] = any && (l->id == LAYER_FLATTEN || l->id == LAYER_RESHAPE);
        if (any && !integer[i + 1] && !casts_to_float(l->id))
            return node_error(layers, e,
                              "the input is of dtype %s, and %s '%s' would compute with integers: put a Rescaling or "
                              "Normalization layer first, or make the input float32",
                              r->integer_input, l->row->k.names[0], l->name);
    }
    return 0;
}

/* f NULL: each layer is called with the output of the one before. */
static int read_layers(struct reading *r, const struct node *layers, const struct functional *f, struct err *e)
{
    if (node_array(layers, e) < 0)
        return -1;
    for (size_t i = 0; i < node_size(layers); i++) {
        const struct functional_call *call = f != NULL ? &f->calls[i] : NULL;
        struct node item = node_item(layers, call != NULL ? call->item : i);
        r->failed |= read_layer(r, &item, f, call, e) < 0;
        if (r->failed && !node_collects(layers))
            return -1;
    }
    if (r->failed)
        return -1;
    if (r->unshaped)
        return 0;
    if (r->m->nlayers == 0)
        return node_error(layers, e, "the list of layers is empty");
    r->m->output = *model_tensor(r->m, r->m->nnodes);
    return check_integer_input(r, layers, e);
}

static int read_model_name(struct reading *r, const struct node *n, struct err *e)
{
    const char *name = "sequential";
    if (node_str_or(n, "name", "sequential", &name, e) < 0)
        return -1;
    if (!is_good_name(name))
        return node_error(n, e, "'%.60s' cannot name a model", name);
    r->m->name = xstrdup(name);
    return 0;
}

/* ---- Keras's JSON ---- */

static int check_trainable(const struct node *config, struct err *e)
{
    struct node n = node_get(config, "trainable");
    if (node_present(&n) && !json_is_true(n.v))
        return node_error(&n, e, "a model that is not trainable as a whole is not supported; freeze its layers");
    return 0;
}

static int read_keras_config(struct reading *r, const struct node *config, struct err *e)
{
    static const char *const KEYS[] = { "name",         "trainable",    "dtype", "layers", "build_input_shape",
                                        "input_layers", "output_layers" };
    if (node_only(config, KEYS, COUNT_OF(KEYS), e) < 0 || check_dtype(config, e) < 0 || check_trainable(config, e) < 0)
        return -1;
    return read_model_name(r, config, e);
}

/* Model(inputs, outputs) */
static int read_functional(struct reading *r, const struct node *config, struct err *e)
{
    struct node layers = node_get(config, "layers");
    AUTO_FINI(functional) f = { 0 };
    if (read_keras_config(r, config, e) < 0 || functional_read(config, &f, e) < 0)
        return -1;
    return read_layers(r, &layers, &f, e);
}

/* The config is a map, or in the oldest files the list of layers. */
static int read_sequential(struct reading *r, const struct node *config, struct err *e)
{
    struct node layers = json_is_array(config->v) ? *config : node_get(config, "layers");
    if (json_is_array(config->v))
        r->m->name = xstrdup("sequential");
    else if (read_keras_config(r, config, e) < 0)
        return -1;
    struct node built = node_get(config, "build_input_shape");
    struct node first = node_item(&layers, 0), first_class = node_get(&first, "class_name");
    bool has_input_layer = str_eq(json_string_value(first_class.v), "InputLayer");
    struct shape s = { 0 };
    if (node_present(&built) && !has_input_layer &&
        (input_shape_read(&built, true, &s, e) < 0 || set_input(r, &built, &s, e) < 0))
        return -1;
    return read_layers(r, &layers, NULL, e);
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
    return set_input(r, &input, &s, e);
}

static int read_short(struct reading *r, const struct node *n, struct err *e)
{
    struct node layers = node_get(n, "layers");
    return read_model_name(r, n, e) < 0 ? -1 : read_layers(r, &layers, NULL, e);
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

int model_read(struct model *m, const struct node *n, const char *base_dir, struct keras_compile *ret, struct err *e)
{
    AUTO_FINI(map) names = { 0 };
    AUTO_FINI(map) numbered = { 0 };
    struct reading r = { .m = m, .names = &names, .numbered = &numbered, .compile = ret };
    if (read_any(&r, n, base_dir, e) < 0)
        return -1;
    if (m->input_name == NULL)
        m->input_name = automatic_name(&r, "input_layer");
    return 0;
}

int model_check_layers(struct model *m, const struct node *n, struct err *e)
{
    AUTO_FINI(map) names = { 0 };
    AUTO_FINI(map) numbered = { 0 };
    struct reading r = { .m = m, .names = &names, .numbered = &numbered, .unshaped = true };
    return read_any(&r, n, "", e);
}
