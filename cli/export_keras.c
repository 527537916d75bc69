/* Writes a checkpoint as .keras or .weights.h5. The layers come from model.json; a variable that is missing or has
 * another shape is an error, and the file is written only when all are there. */
#include "export_keras.h"

#include <string.h>

#include "base/file.h"
#include "base/str.h"
#include "chief/previous_run.h"
#include "codec/json.h"
#include "export_preprocessing.h"
#include "h5_write.h"
#include "nn/keras_weights.h"
#include "zip_write.h"

enum { MODEL_JSON_MAX = 64 << 20 };

/* The Keras version whose format this is. load_model() of all versions since 3.0 reads it. */
static const char METADATA[] = "{\"keras_version\": \"3.15.1\", \"date_saved\": \"1980-01-01@00:00:00\"}";

struct description { /* model.json */
    char *path;
    json_t *json;
    struct model *model;
};

static void description_fini(struct description *d)
{
    free(d->path);
    json_decref(d->json);
    model_free(d->model);
}
DEFINE_AUTO_FINI(description, description_fini);

static char *find_description(const char *prefix)
{
    auto_free char *dir = path_dir(prefix), *above = path_join(dir, "..");
    auto_free char *beside = path_join(dir, "model.json");
    return file_exists(beside) ? TAKE(beside) : path_join(above, "model.json");
}

static int read_description(const char *prefix, struct description *d, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    struct err why = { 0 };

    d->path = find_description(prefix);
    if (file_read(d->path, MODEL_JSON_MAX, &text, &why) < 0)
        return err_is(&why, ERR_NOT_FOUND)
                   ? err_set(e, ERR_NOT_FOUND,
                             "%s: no such file; it describes the layers of the variables. Training writes it to the "
                             "output folder: copy it to the folder of the checkpoint",
                             d->path)
                   : err_set(e, why.code, "%s", why.msg);
    if (json_parse(text.data, text.len, d->path, &d->json, e) < 0)
        return -1;
    json_auto_t *spec = json_pack("{s:O}", "keras", d->json);
    struct node n = node_root(spec, NULL);
    return model_build(&n, NULL, ".", &d->model, e) < 0 ? err_wrap(e, "%s", d->path) : 0;
}

/* ---- model.weights.h5 ---- */

static int read_variable(struct bundle *b, const struct variable *v, const char *description, float *ret, struct err *e)
{
    const struct bundle_entry *t = bundle_find(b, v->name);
    char have[128], want[128];

    if (t == NULL)
        return err_set(e, ERR_INPUT, "the checkpoint has no '%s', which %s describes", v->name, description);
    if (t->dtype != DT_FLOAT || !shape_eq(&t->shape, &v->shape))
        return err_set(e, ERR_INPUT, "'%s' is %s %s in the checkpoint, float %s in %s", v->name, dtype_name(t->dtype),
                       shape_text(&t->shape, have), shape_text(&v->shape, want), description);
    return bundle_read(b, t, 0, v->count * sizeof(float), ret, e);
}

static int add_variable(struct h5_writer *w, struct bundle *b, const struct description *d, const struct variable *v,
                        const char *path, struct err *e)
{
    auto_free void *data = NULL;
    if (mem_alloc(v->count * sizeof(float), v->name, &data, e) < 0 || read_variable(b, v, d->path, data, e) < 0)
        return -1;
    return h5_writer_floats(w, path, &v->shape, data, e);
}

static int add_layer(struct h5_writer *w, struct bundle *b, const struct description *d,
                     const struct keras_layer *layer, const char *within, struct err *e)
{
    auto_free char *group = xasprintf("%s%s/vars", within, layer->group);

    if (h5_writer_group(w, group, e) < 0 || h5_writer_attribute(w, group, "name", layer->name, e) < 0)
        return -1;
    for (int i = 0; i < layer->nvariables; i++) {
        auto_free char *path = xasprintf("%s/%d", group, i);
        if (add_variable(w, b, d, model_variable(d->model, layer->variable[i]), path, e) < 0)
            return -1;
    }
    auto_free char *count = xasprintf("%s/%d", group, layer->nvariables);
    return layer->counts ? h5_writer_integer(w, count, 0, e) : 0;
}

static int add_group(struct h5_writer *w, const char *within, const char *name, struct err *e)
{
    auto_free char *group = xasprintf("%svars", within);
    return h5_writer_group(w, group, e) < 0 ? -1 : h5_writer_attribute(w, group, "name", name, e);
}

static int add_weights(struct h5_writer *w, const char *within, const json_t *weights, struct err *e)
{
    size_t n = json_array_size(weights);
    auto_free char *path = xasprintf("%svars/idf_weights", within);
    auto_free float *v = xcalloc(n + 1, sizeof(*v));
    const struct shape shape = shape_of(1, (int64_t[]){ (int64_t)n });
    for (size_t i = 0; i < n; i++)
        v[i] = (float)json_number_value(json_array_get(weights, i));
    return json_is_array(weights) ? h5_writer_floats(w, path, &shape, v, e) : 0;
}

/* The groups around those of the trained model, and of the layers before it. */
static int add_outer_groups(struct h5_writer *w, const struct preprocessing *p, struct err *e)
{
    if (add_group(w, "", json_string_value(json_at(p->json, "config.name")), e) < 0)
        return -1;
    for (size_t i = 0; i < p->groups.n; i++) {
        auto_free char *within = xasprintf("%s/", p->groups.items[i]);
        if (add_group(w, within, p->names.items[i], e) < 0 ||
            add_weights(w, within, json_array_get(p->weights, i), e) < 0)
            return -1;
    }
    return 0;
}

struct weights_bytes {
    void *data;
    size_t n;
};

static void weights_bytes_fini(struct weights_bytes *f)
{
    free(f->data);
}
DEFINE_AUTO_FINI(weights_bytes, weights_bytes_fini);

/* p NULL: the file is that of the trained model. */
static int weights_file(struct bundle *b, const struct description *d, const struct preprocessing *p,
                        struct weights_bytes *ret, struct err *e)
{
    AUTO_FINI(keras_weights) layout = keras_weights_of(d->model);
    AUTO(h5_writer) *w = NULL;
    auto_free char *within = p != NULL ? xasprintf("%s/", p->model_group) : xstrdup("");

    if (h5_writer_new(&w, e) < 0 ||
        (p != NULL ? add_outer_groups(w, p, e) : add_group(w, "", model_name(d->model), e)) < 0)
        return -1;
    for (size_t i = 0; i < layout.n; i++)
        if (add_layer(w, b, d, &layout.layers[i], within, e) < 0)
            return -1;
    return h5_writer_finish(w, &ret->data, &ret->n, e);
}

int keras_weights_write(struct bundle *b, const char *prefix, const struct tensor_sink *sink, struct err *e)
{
    AUTO_FINI(description) d = { 0 };
    AUTO_FINI(weights_bytes) file = { 0 };

    if (read_description(prefix, &d, e) < 0 || weights_file(b, &d, NULL, &file, e) < 0)
        return -1;
    return sink->write(sink->user, file.data, file.n, e);
}

/* ---- .keras ---- */

/* Keras cannot read gelu and celu with arguments. */
static int check_activations(const struct description *d, struct err *e)
{
    const json_t *layers = json_at(d->json, "config.layers");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *config = json_object_get(json_array_get(layers, i), "config"),
                     *a = json_object_get(config, "activation");
        if (str_eq(json_string_value(json_object_get(a, "module")), "keras.activations"))
            return err_set(e, ERR_INPUT,
                           "layer '%s': a Keras file cannot represent activation %s with arguments; export only the "
                           "weights (-o model.weights.h5)",
                           json_string_value(json_object_get(config, "name")),
                           json_string_value(json_object_get(a, "class_name")));
    }
    return 0;
}

/* Keras has all our optimizers except one. */
static void drop_foreign_compile(json_t *json)
{
    if (str_eq(json_string_value(json_at(json, "compile_config.optimizer.class_name")), "Counting"))
        json_object_del(json, "compile_config");
}

static int read_preprocessing(const char *prefix, const struct description *d, struct preprocessing *ret, struct err *e)
{
    auto_free char *dir = path_dir(d->path);
    AUTO(job) *job = NULL;
    AUTO(checkpoint) *c = NULL;
    AUTO_FINI(column_names) names = { 0 };

    if (previous_run_read_job(dir, &job, e) < 0)
        return -1;
    if (job == NULL)
        return err_set(e, ERR_INPUT,
                       "--preprocessing: %s/job.yaml: no such file; it describes the columns of the data. Training "
                       "writes it to the output folder: copy it to the folder of model.json",
                       dir);
    if (checkpoint_open(prefix, &c, e) < 0 || checkpoint_columns(c, &names, e) < 0)
        return -1;
    struct trained_on trained = { .job = job, .names = &names, .model = d->model, .json = d->json };
    return preprocessing_make(&trained, ret, e);
}

static int write_archive(const json_t *description, const struct weights_bytes *weights, const struct tensor_sink *sink,
                         struct err *e)
{
    AUTO_FINI(zip_writer) zip = ZIP_WRITER(sink);
    AUTO_FINI(buf) config = BUF_INIT, nothing = BUF_INIT;

    json_emit(description, &config);
    if (zip_add(&zip, "metadata.json", &nothing, METADATA, strlen(METADATA), e) < 0 ||
        zip_add(&zip, "config.json", &nothing, config.data, config.len, e) < 0 ||
        zip_add(&zip, "model.weights.h5", &nothing, weights->data, weights->n, e) < 0)
        return -1;
    return zip_finish(&zip, e);
}

int keras_archive_write(struct bundle *b, const char *prefix, bool preprocessing, const struct tensor_sink *sink,
                        struct err *e)
{
    AUTO_FINI(description) d = { 0 };
    AUTO_FINI(preprocessing) p = { 0 };
    AUTO_FINI(weights_bytes) weights = { 0 };

    if (read_description(prefix, &d, e) < 0 || check_activations(&d, e) < 0 ||
        (preprocessing && read_preprocessing(prefix, &d, &p, e) < 0))
        return -1;
    drop_foreign_compile(d.json);
    if (weights_file(b, &d, preprocessing ? &p : NULL, &weights, e) < 0)
        return -1;
    return write_archive(preprocessing ? p.json : d.json, &weights, sink, e);
}
