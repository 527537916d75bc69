/* Builds the description of a Keras model that takes the columns of a csv file as they stand there. The order of the
 * numbers in each input of the trained model is that of lib/data: a wrong one would give wrong predictions silently. */
#include "export_preprocessing.h"

#include <ctype.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "column_layer.h"

#define OTHERWISE "export the model without --preprocessing, and give it numbers"

void preprocessing_fini(struct preprocessing *p)
{
    json_decref(p->json);
    json_decref(p->weights);
    free(p->model_group);
    strlist_fini(&p->groups);
    strlist_fini(&p->names);
    *p = (struct preprocessing){ .json = NULL };
}

/* ---- the columns of the run ---- */

struct feature {
    const char *column; /* borrowed from the names */
    const json_t *item; /* what the job says of it; NULL: nothing */
    const struct column_layer *as;
    int64_t width;
    bool used;    /* by an input of the model */
    char *input;  /* the name of its InputLayer */
    char *tensor; /* that of the layer whose output is used */
};

struct port_part { /* an input of the trained model */
    const struct feature **from;
    size_t n;
    int64_t width;
    char *tensor;
    const char *dtype;
};

struct outer_model { /* while it is built */
    const struct trained_on *trained;
    const struct data_spec *data;
    struct strlist columns; /* the features, in the order of the example's numbers */
    struct map items;       /* column -> its item in data.columns */
    struct map by_name;     /* column -> its feature */
    struct feature *features;
    struct port_part *ports;
    size_t nports;
    struct map taken; /* names of layers */
    json_t *layers;
};

static void outer_model_fini(struct outer_model *o)
{
    for (size_t i = 0; o->features != NULL && i < o->columns.n; i++) {
        free(o->features[i].input);
        free(o->features[i].tensor);
    }
    for (size_t i = 0; i < o->nports; i++) {
        free(o->ports[i].from);
        free(o->ports[i].tensor);
    }
    free(o->features);
    free(o->ports);
    map_fini(&o->items);
    map_fini(&o->by_name);
    map_fini(&o->taken);
    strlist_fini(&o->columns);
    json_decref(o->layers);
}
DEFINE_AUTO_FINI(outer_model, outer_model_fini);

static void index_items(struct outer_model *o)
{
    const json_t *columns = o->data->columns.v;
    for (size_t i = 0; i < json_array_size(columns); i++) {
        json_t *item = json_array_get(columns, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name != NULL)
            map_put(&o->items, name, item);
    }
}

static int list_features(struct outer_model *o, struct err *e)
{
    const struct strlist *known = &o->trained->names->features;
    index_items(o);
    if (known->n == 0)
        return err_set(
            e, ERR_INPUT,
            "--preprocessing: the checkpoint does not say which columns the features are: an older trainyard "
            "wrote it, and the data have no header; continue the run, which writes a new one");
    for (size_t i = 0; i < known->n; i++)
        strlist_add(&o->columns, known->items[i]);
    o->features = xcalloc(o->columns.n + 1, sizeof(o->features[0]));
    for (size_t i = 0; i < o->columns.n; i++) {
        struct feature *f = &o->features[i];
        f->column = o->columns.items[i];
        f->item = map_get(&o->items, f->column);
        f->as = column_layer_of(f->item);
        f->width = column_width(f->item);
        map_put(&o->by_name, f->column, f);
    }
    return 0;
}

/* ---- which columns make which input of the trained model ---- */

static const struct data_part *part_of(const struct data_spec *d, const char *port)
{
    for (size_t i = 0; i < d->inputs.n; i++)
        if (str_eq(d->inputs.v[i].name, port))
            return &d->inputs.v[i];
    return NULL;
}

static int add_to_port(struct outer_model *o, struct port_part *port, const char *column, struct err *e)
{
    struct feature *f = map_get(&o->by_name, column);
    if (f == NULL)
        return err_set(e, ERR_INPUT, "the run has no column '%s', which is a part of an input of the model", column);
    if (f->as == NULL)
        return err_set(e, ERR_INPUT,
                       "--preprocessing: column '%s' is of type %s, which no layer of Keras reads; " OTHERWISE, column,
                       column_type(f->item));
    bool sequence = json_object_get(f->item, "outputSequenceLength") != NULL && !str_eq(column_type(f->item), "text");
    if (sequence || json_object_get(f->item, "shape") != NULL)
        return err_set(e, ERR_INPUT,
                       "--preprocessing: column '%s' is a list of numbers, and only columns of one value become "
                       "inputs; " OTHERWISE,
                       column);
    if (column_is_open(f->item))
        return err_set(e, ERR_INPUT,
                       "--preprocessing: job.yaml does not say which words or ranges column '%s' has, as that of the "
                       "run does when training has learned them",
                       column);
    if (column_has_empty_word(f->item))
        return err_set(e, ERR_INPUT,
                       "--preprocessing: the vocabulary of column '%s' has an empty word, which Keras allows only "
                       "before all words of a text; " OTHERWISE,
                       column);
    f->used = true;
    port->from[port->n++] = f;
    port->width += f->width;
    return 0;
}

static int check_width(const struct named_shape *in, const struct port_part *port, struct err *e)
{
    int64_t want = in->shape.rank > 0 ? in->shape.dim[0] : 1;
    if (in->shape.rank <= 1 && (want <= 0 || want == port->width))
        return 0;
    char shape[128];
    return err_set(e, ERR_INPUT,
                   "the model's input '%s' is %s, and the columns of the run's job.yaml have %lld numbers", in->name,
                   shape_text(&in->shape, shape), (long long)port->width);
}

static int fill_port(struct outer_model *o, size_t i, struct err *e)
{
    const struct named_shape *in = model_input(o->trained->model, i);
    const struct data_part *part = part_of(o->data, in->name);
    const struct strlist own = { .items = (char *[]){ (char *)(uintptr_t)in->name }, .n = 1 };
    bool row = o->nports == 1 && o->data->inputs.n == 0;
    const struct strlist *from = row ? &o->columns : part != NULL ? &part->from : &own;
    struct port_part *port = &o->ports[i];
    port->from = xcalloc(from->n + 1, sizeof(const struct feature *));
    for (size_t k = 0; k < from->n; k++)
        if (add_to_port(o, port, from->items[k], e) < 0)
            return -1;
    return check_width(in, port, e);
}

static int fill_ports(struct outer_model *o, struct err *e)
{
    o->nports = model_inputs(o->trained->model);
    o->ports = xcalloc(o->nports, sizeof(o->ports[0]));
    for (size_t i = 0; i < o->nports; i++)
        if (fill_port(o, i, e) < 0)
            return -1;
    return 0;
}

/* ---- names ---- */

/* TensorFlow allows letters of ASCII, digits, '_', '.' and '-', after a letter. */
static char *valid_name(const char *column)
{
    AUTO_FINI(buf) name = BUF_INIT;
    if (!isascii((unsigned char)column[0]) || !isalpha((unsigned char)column[0]))
        buf_str(&name, "column_");
    for (const char *p = column; *p != '\0'; p++) {
        unsigned char c = (unsigned char)*p;
        if ((c & 0xc0) == 0x80) /* not the first byte of a character */
            continue;
        buf_char(&name, isascii(c) && (isalnum(c) || strchr("_.-", c) != NULL) ? *p : '_');
    }
    return xstrdup(name.data);
}

/* The name, with a number if another layer has it. */
static char *take_name(struct outer_model *o, const char *wanted)
{
    auto_free char *name = valid_name(wanted), *base = xstrdup(name);
    for (int i = 1; map_get(&o->taken, name) != NULL; i++) {
        free(name);
        name = xasprintf("%s_%d", base, i);
    }
    map_put(&o->taken, name, o);
    return TAKE(name);
}

/* ---- layers ---- */

static json_t *tensor_json(const char *layer, int64_t width, const char *dtype)
{
    return json_pack("{s:s, s:{s:[n, I], s:s, s:[s, i, i]}}", "class_name", "__keras_tensor__", "config", "shape",
                     (json_int_t)width, "dtype", dtype, "keras_history", layer, 0, 0);
}

static json_t *call_json(json_t *args)
{
    return json_pack("[{s:[o], s:{}}]", "args", args, "kwargs");
}

/* config is taken; call NULL: the layer is an input. */
static void add_layer(struct outer_model *o, const char *class_name, const char *name, json_t *config, json_t *call)
{
    json_object_set_new(config, "name", json_string(name));
    json_array_append_new(o->layers, json_pack("{s:s, s:s, s:o, s:n, s:s, s:o}", "module", "keras.layers", "class_name",
                                               class_name, "config", config, "registered_name", "name", name,
                                               "inbound_nodes", call != NULL ? call : json_array()));
}

static void add_inputs(struct outer_model *o)
{
    for (size_t i = 0; i < o->columns.n; i++) {
        struct feature *f = &o->features[i];
        if (!f->used)
            continue;
        f->input = take_name(o, f->column);
        json_t *config = json_pack("{s:[n, i], s:s}", "batch_shape", 1, "dtype", f->as->input);
        add_layer(o, "InputLayer", f->input, config, NULL);
    }
}

static const char *output_of(const struct feature *f)
{
    return column_is_weighed(f->item) ? "float32" : f->as->output;
}

static void add_column_layer(struct outer_model *o, struct feature *f)
{
    auto_free char *name = xasprintf("%s_%s", f->input, f->as->suffix);
    f->tensor = take_name(o, name);
    add_layer(o, f->as->class_name, f->tensor, f->as->config(f->item),
              call_json(tensor_json(f->input, 1, f->as->input)));
    if (!f->as->reshape || column_is_int(f->item))
        return;
    auto_free char *inner = f->tensor, *row = xasprintf("%s_row", f->input);
    f->tensor = take_name(o, row);
    add_layer(o, "Reshape", f->tensor, json_pack("{s:[I]}", "target_shape", (json_int_t)f->width),
              call_json(tensor_json(inner, f->width, output_of(f))));
}

static void add_column_layers(struct outer_model *o)
{
    for (size_t i = 0; i < o->columns.n; i++) {
        struct feature *f = &o->features[i];
        if (!f->used)
            continue;
        if (f->as->class_name == NULL)
            f->tensor = xstrdup(f->input);
        else
            add_column_layer(o, f);
    }
}

static void add_concatenations(struct outer_model *o)
{
    for (size_t i = 0; i < o->nports; i++) {
        struct port_part *port = &o->ports[i];
        port->dtype = port->n == 1 ? output_of(port->from[0]) : "float32";
        if (port->n == 1) {
            port->tensor = xstrdup(port->from[0]->tensor);
            continue;
        }
        json_t *parts = json_array();
        for (size_t k = 0; k < port->n; k++)
            json_array_append_new(parts,
                                  tensor_json(port->from[k]->tensor, port->from[k]->width, output_of(port->from[k])));
        auto_free char *name = xasprintf("%s_row", model_input(o->trained->model, i)->name);
        port->tensor = take_name(o, name);
        add_layer(o, "Concatenate", port->tensor, json_pack("{s:i}", "axis", -1), call_json(parts));
    }
}

static json_t *port_tensor(const struct port_part *port)
{
    return tensor_json(port->tensor, port->width, port->dtype);
}

/* Returns the name of the layer, new. */
static char *add_trained_model(struct outer_model *o)
{
    json_auto_t *layer = json_deep_copy(o->trained->json);
    char *name = take_name(o, model_name(o->trained->model));
    json_t *args = json_array();
    for (size_t i = 0; i < o->nports; i++)
        json_array_append_new(args, port_tensor(&o->ports[i]));
    if (o->nports == 1) {
        json_decref(args);
        args = port_tensor(&o->ports[0]);
    }
    json_object_del(layer, "compile_config");
    json_object_set_new(json_object_get(layer, "config"), "name", json_string(name));
    json_object_set_new(layer, "name", json_string(name));
    json_object_set_new(layer, "inbound_nodes", call_json(args));
    json_array_append(o->layers, layer);
    return name;
}

/* ---- the whole model ---- */

static json_t *input_layers(const struct outer_model *o)
{
    json_t *ret = json_array();
    for (size_t i = 0; i < o->columns.n; i++)
        if (o->features[i].used)
            json_array_append_new(ret, json_pack("[s, i, i]", o->features[i].input, 0, 0));
    return ret;
}

static json_t *output_layers(const struct outer_model *o, const char *layer)
{
    size_t n = model_outputs(o->trained->model);
    json_t *ret = json_array();
    if (n == 1) {
        json_decref(ret);
        return json_pack("[s, i, i]", layer, 0, 0);
    }
    for (size_t i = 0; i < n; i++)
        json_array_append_new(ret, json_pack("[s, i, i]", layer, 0, (int)i));
    return ret;
}

/* "StringLookup" -> "string_lookup" */
static char *snake_case(const char *class_name)
{
    AUTO_FINI(buf) name = BUF_INIT;
    for (const char *p = class_name; *p != '\0'; p++) {
        if (isupper((unsigned char)*p) && p > class_name)
            buf_char(&name, '_');
        buf_char(&name, (char)tolower((unsigned char)*p));
    }
    return xstrdup(name.data);
}

static void add_group(const char *group, const char *name, const json_t *weights, struct preprocessing *ret)
{
    strlist_add(&ret->groups, group);
    strlist_add(&ret->names, name);
    json_array_append_new(ret->weights, weights != NULL ? json_incref((json_t *)(uintptr_t)weights) : json_null());
}

/* As Keras's saving_lib names them: by class, counted. */
static void name_groups(const struct outer_model *o, const char *model, struct preprocessing *ret)
{
    AUTO_FINI(map) used = { 0 };
    ret->weights = json_array();
    for (size_t i = 0; i < json_array_size(o->layers); i++) {
        const json_t *layer = json_array_get(o->layers, i);
        const char *name = column_text(layer, "name", ""), *class_name = column_text(layer, "class_name", "");
        auto_free char *base = snake_case(class_name);
        uintptr_t count = (uintptr_t)map_get(&used, base);
        auto_free char *group =
            count == 0 ? xasprintf("layers/%s", base) : xasprintf("layers/%s_%zu", base, (size_t)count);
        (void)map_put(&used, base, (void *)(count + 1)); /* NOLINT: a number in a pointer */
        const json_t *weights = json_at(layer, "config.idf_weights");
        add_group(group, name, weights, ret);
        if (str_eq(class_name, "TextVectorization")) {
            auto_free char *lookup = xasprintf("%s/_lookup_layer", group);
            add_group(lookup, "string_lookup", weights, ret);
        }
        if (str_eq(name, model))
            ret->model_group = TAKE(group);
    }
}

static int build_outer_model(struct outer_model *o, struct preprocessing *ret, struct err *e)
{
    if (list_features(o, e) < 0 || fill_ports(o, e) < 0)
        return -1;
    add_inputs(o);
    add_column_layers(o);
    add_concatenations(o);
    auto_free char *model = add_trained_model(o), *whole = xasprintf("%s_of_columns", model);
    name_groups(o, model, ret);
    ret->json =
        json_pack("{s:s, s:s, s:{s:s, s:b, s:O, s:o, s:o}, s:s}", "module", "keras.src.models.functional", "class_name",
                  "Functional", "config", "name", whole, "trainable", 1, "layers", o->layers, "input_layers",
                  input_layers(o), "output_layers", output_layers(o, model), "registered_name", "Functional");
    return 0;
}

int preprocessing_make(const struct trained_on *trained, struct preprocessing *ret, struct err *e)
{
    AUTO_FINI(outer_model) o = { .trained = trained, .data = &trained->job->train, .layers = json_array() };
    if (!o.data->present || !data_has_fields(o.data->format))
        return err_set(
            e, ERR_INPUT,
            "--preprocessing: the run's data are not csv or jsonl (format: %s), and only the columns of these "
            "become layers; " OTHERWISE,
            column_text(o.data->node.v, "format", "none"));
    return build_outer_model(&o, ret, e);
}
