/* Matches the arrays of a file with the variables of the model: by name, by the end of a name, or by Keras's class
 * and number of the layer. An array whose shape differs is an error; a variable without an array keeps its initial
 * value. */
#include "chief/weights.h"

#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "chief/weights_internal.h"
#include "nn/exec.h"
#include "nn/keras_weights.h"

enum { LISTED_MAX = 8 }; /* names in a report or message */

/* The rank of a match: a whole name ranks above the end of one. */
enum quality { NO_MATCH, BY_END, BY_PLACE, BY_NAME };

struct match { /* of a variable of the model */
    enum quality quality;
    size_t array;
};

struct matching {
    const struct model *model;
    const struct weights_file *file;
    struct keras_weights layout;
    struct map variables;      /* name, and name of the layer and rest -> index + 1 */
    struct map layers, groups; /* name, Keras's group -> index in layout + 1 */
    struct match *matches;     /* by variable */
    bool *used;                /* by array */
    int *given;                /* by layer: how many datasets Keras's file has of it */
    bool by_place;             /* Keras's layers by class and number */
};

static void matching_fini(struct matching *g)
{
    keras_weights_fini(&g->layout);
    map_fini(&g->variables);
    map_fini(&g->layers);
    map_fini(&g->groups);
    free(g->matches);
    free(g->used);
    free(g->given);
}
DEFINE_AUTO_FINI(matching, matching_fini);

static void put_index(struct map *m, const char *key, size_t i)
{
    (void)map_put(m, key, (void *)(uintptr_t)(i + 1)); /* NOLINT: a number in a pointer */
}

static bool get_index(const struct map *m, const char *key, size_t *ret)
{
    uintptr_t at = (uintptr_t)map_get(m, key);
    *ret = at - 1;
    return at != 0;
}

static void matching_init(struct matching *g, const struct model *m, const struct weights_file *f)
{
    *g = (struct matching){ .model = m, .file = f, .layout = keras_weights_of(m) };
    for (size_t i = 0; i < model_variables(m); i++)
        put_index(&g->variables, model_variable(m, i)->name, i);
    for (size_t i = 0; i < g->layout.n; i++) {
        const struct keras_layer *l = &g->layout.layers[i];
        put_index(&g->layers, l->name, i);
        put_index(&g->groups, l->group, i);
        for (int k = 0; k < l->nvariables; k++) { /* other programs keep a layer's name as it is */
            auto_free char *name = xasprintf("%s%s", l->path, strrchr(model_variable(m, l->variable[k])->name, '/'));
            put_index(&g->variables, name, l->variable[k]);
        }
    }
    g->matches = xcalloc(model_variables(m) + 1, sizeof(g->matches[0]));
    g->used = xcalloc(f->arrays.n + 1, sizeof(g->used[0]));
    g->given = xcalloc(g->layout.n + 1, sizeof(g->given[0]));
}

/* ---- names ---- */

/* Slots are named after their variables, so their names must not be mistaken for those of variables. */
static bool is_of_optimizer(const char *name)
{
    return str_starts(name, "optimizer/") || strstr(name, "/optimizer/") != NULL ||
           str_starts(name, "optimizer_weights/") || strstr(name, ".OPTIMIZER_SLOT") != NULL ||
           str_starts(name, "_trainyard/");
}

/* "layers/dense/vars/0" of a file of Keras: *ret_group without "/vars/0", xmalloc'ed. */
static bool is_keras_dataset(const char *path, char **ret_group, int *ret_number)
{
    const char *end = strrchr(path, '/');
    int64_t number;
    if (end == NULL || end - path < 6 || strncmp(end - 5, "/vars", 5) != 0 ||
        str_i64(end + 1, 0, 1000, &number, NULL) < 0)
        return false;
    *ret_group = xstrndup(path, (size_t)(end - 5 - path));
    *ret_number = (int)number;
    return true;
}

/* Keras 2 kept layers under another name, and they may be in a model within a model. */
static const char *place_of(const char *group)
{
    static const char OLD[] = "_layer_checkpoint_dependencies/";
    return str_starts(group, OLD)         ? group + strlen(OLD)
           : str_starts(group, "layers/") ? group + strlen("layers/")
                                          : group;
}

static bool find_layer(const struct matching *g, const char *owner, const char *group, size_t *ret)
{
    if (!g->by_place)
        return owner != NULL && get_index(&g->layers, owner, ret);
    auto_free char *place = xasprintf("layers/%s", place_of(group));
    return get_index(&g->groups, place, ret);
}

/* "model/layer_with_weights-1/kernel/.ATTRIBUTES/VARIABLE_VALUE": tf.train.Checkpoint of Keras 2 numbers the layers
 * that have variables. */
static bool find_object(const struct matching *g, const char *name, size_t *ret)
{
    static const char LAYER[] = "layer_with_weights-", END[] = "/.ATTRIBUTES/VARIABLE_VALUE";
    const char *at = strstr(name, LAYER), *slash = at != NULL ? strchr(at, '/') : NULL;
    int64_t wanted;
    if (slash == NULL || !str_ends(name, END) || (size_t)(slash - name) > strlen(name) - strlen(END))
        return false;
    auto_free char *number = xstrndup(at + strlen(LAYER), (size_t)(slash - at) - strlen(LAYER));
    auto_free char *variable = xstrndup(slash, strlen(slash) - strlen(END));
    if (str_i64(number, 0, 1 << 20, &wanted, NULL) < 0)
        return false;
    for (size_t i = 0; i < g->layout.n; i++) {
        if (g->layout.layers[i].nvariables == 0 || wanted-- > 0)
            continue;
        auto_free char *whole = xasprintf("%s%s", g->layout.layers[i].name, variable);
        return get_index(&g->variables, whole, ret);
    }
    return false;
}

/* The end of a name, from its last slash but one: "dense/kernel" of "model/dense/kernel". */
static const char *last_two(const char *name)
{
    const char *at = strrchr(name, '/');
    while (at != NULL && at > name && at[-1] != '/')
        at--;
    return at != NULL ? at : name;
}

static enum quality find_variable(const struct matching *g, const char *name, size_t *ret)
{
    size_t n = strlen(name);
    auto_free char *plain = xstrndup(name, str_ends(name, ":0") ? n - 2 : n); /* TensorFlow 1's tensor of a variable */
    if (get_index(&g->variables, plain, ret))
        return BY_NAME;
    if (find_object(g, name, ret))
        return BY_PLACE;
    return get_index(&g->variables, last_two(plain), ret) ? BY_END : NO_MATCH;
}

/* ---- matching ---- */

static int set_match(struct matching *g, size_t variable, enum quality quality, size_t array, struct err *e)
{
    struct match *m = &g->matches[variable];
    if (m->quality == quality)
        return err_set(e, ERR_INPUT, "both '%s' and '%s' may be '%s'", g->file->arrays.items[m->array].name,
                       g->file->arrays.items[array].name, model_variable(g->model, variable)->name);
    if (m->quality > quality)
        return 0;
    if (m->quality != NO_MATCH)
        g->used[m->array] = false;
    *m = (struct match){ quality, array };
    g->used[array] = true;
    return 0;
}

/* Datasets of a layer are counted: one too few or too many shifts the meaning of all that follow. */
static int match_keras(struct matching *g, size_t array, const char *group, int number, struct err *e)
{
    size_t layer;
    if (!find_layer(g, g->file->arrays.items[array].owner, group, &layer))
        return 0;
    const struct keras_layer *l = &g->layout.layers[layer];
    g->given[layer]++;
    g->used[array] = true;
    if (number < l->nvariables)
        return set_match(g, l->variable[number], BY_NAME, array, e);
    return 0;
}

static int check_counts(const struct matching *g, struct err *e)
{
    for (size_t i = 0; i < g->layout.n; i++) {
        const struct keras_layer *l = &g->layout.layers[i];
        int most = l->nvariables + (l->counts ? 1 : 0);
        if (g->given[i] > 0 && (g->given[i] < l->nvariables || g->given[i] > most))
            return err_set(e, ERR_INPUT,
                           "layer '%s' has %d variables there and %d in the model: its arguments differ (use_bias, "
                           "scale, center); rename the layer to train it from scratch",
                           l->name, g->given[i], l->nvariables);
    }
    return 0;
}

static int match_array(struct matching *g, size_t i, struct err *e)
{
    const char *name = g->file->arrays.items[i].name;
    auto_free char *group = NULL;
    size_t variable;
    int number;
    if (is_of_optimizer(name))
        return 0;
    if (is_keras_dataset(name, &group, &number))
        return match_keras(g, i, group, number, e);
    enum quality quality = find_variable(g, name, &variable);
    return quality == NO_MATCH ? 0 : set_match(g, variable, quality, i, e);
}

/* True when a layer of the model has one of the names in the file. Names that several layers have, in nested models, do
 * not tell. */
static bool names_are_known(const struct matching *g)
{
    size_t layer;
    if (g->layers.n < g->layout.n)
        return false;
    for (size_t i = 0; i < g->file->arrays.n; i++) {
        const struct named_array *a = &g->file->arrays.items[i];
        if (a->owner != NULL && !is_of_optimizer(a->name) && get_index(&g->layers, a->owner, &layer) &&
            g->layout.layers[layer].nvariables > 0)
            return true;
    }
    return false;
}

static int match_all(struct matching *g, struct err *e)
{
    g->by_place = !names_are_known(g);
    for (size_t i = 0; i < g->file->arrays.n; i++)
        if (match_array(g, i, e) < 0)
            return -1;
    return check_counts(g, e);
}

/* ---- values ---- */

static int load_variable(const struct matching *g, size_t i, float *vector, struct err *e)
{
    const struct variable *v = model_variable(g->model, i);
    struct array a = { 0 };
    auto_free void *owned = NULL;
    char have[128], want[128];

    if (weights_array(g->file, g->matches[i].array, &a, &owned, e) < 0)
        return -1;
    if (!shape_eq(&a.shape, &v->shape))
        return err_set(e, ERR_INPUT,
                       "its shape is %s there and %s in the model; rename its layer to train it from scratch",
                       shape_text(&a.shape, have), shape_text(&v->shape, want));
    if (array_floats(&a, vector + v->offset, e) < 0)
        return -1;
    return all_finite(vector + v->offset, v->count) ? 0 : err_set(e, ERR_INPUT, "a value is not finite");
}

static int load_matches(const struct matching *g, float *vector, struct err *e)
{
    for (size_t i = 0; i < model_variables(g->model); i++)
        if (g->matches[i].quality != NO_MATCH && load_variable(g, i, vector, e) < 0)
            return err_wrap(e, "'%s'", model_variable(g->model, i)->name);
    return 0;
}

/* ---- the report ---- */

struct listing { /* "a, b, c and 5 more" */
    struct buf text;
    size_t n;
};

static void list_add(struct listing *l, const char *name)
{
    if (l->n++ < LISTED_MAX)
        buf_printf(&l->text, "%s%s", l->n > 1 ? ", " : "", name);
}

static const char *list_end(struct listing *l)
{
    if (l->n > LISTED_MAX)
        buf_printf(&l->text, " and %zu more", l->n - LISTED_MAX);
    return l->n > 0 ? l->text.data : "none";
}

static void list_all(const struct matching *g, struct listing *found, struct listing *missing, struct listing *rest)
{
    for (size_t i = 0; i < model_variables(g->model); i++)
        list_add(g->matches[i].quality != NO_MATCH ? found : missing, model_variable(g->model, i)->name);
    for (size_t i = 0; i < g->file->arrays.n; i++)
        if (!g->used[i] && !is_of_optimizer(g->file->arrays.items[i].name))
            list_add(rest, g->file->arrays.items[i].name);
}

static int report_matches(const struct matching *g, struct buf *report, struct err *e)
{
    struct listing found = { .text = BUF_INIT }, missing = { .text = BUF_INIT }, rest = { .text = BUF_INIT };
    int result = 0;

    list_all(g, &found, &missing, &rest);
    buf_printf(report, "initial weights from %s: %zu of %zu variables: %s\n", g->file->path, found.n,
               model_variables(g->model), list_end(&found));
    if (missing.n > 0)
        buf_printf(report, "not in the file, trained from scratch: %s\n", list_end(&missing));
    if (rest.n > 0)
        buf_printf(report, "in the file, but not in the model: %s\n", list_end(&rest));
    if (found.n == 0)
        result = err_set(e, ERR_INPUT, "it has no variable of the model; the model has %s, the file %s",
                         list_end(&missing), list_end(&rest));
    buf_fini(&found.text);
    buf_fini(&missing.text);
    buf_fini(&rest.text);
    return result;
}

int weights_load(const char *path, const struct model *m, float *vector, struct buf *report, struct err *e)
{
    AUTO_FINI(weights_file) file = { 0 };
    AUTO_FINI(matching) g = { 0 };

    if (weights_open(path, &file, e) < 0)
        return -1;
    matching_init(&g, m, &file);
    if (match_all(&g, e) < 0 || load_matches(&g, vector, e) < 0 || report_matches(&g, report, e) < 0)
        return err_wrap(e, "%s", path);
    return 0;
}
