/* Writes what csv_learn.h found, and the shape of an example, into the document of a job. */
#include "data/job_learn.h"

#include <inttypes.h>
#include <math.h>

#include "codec/json.h"
#include "data/csv_learn.h"
#include "data/dataset.h"
#include "data/vocabulary.h"

enum { SHOWN_MAX = 120 };
#define EXACT_MAX 9007199254740992.0 /* whole numbers below are exact */

static bool is_learned(const char *rule)
{
    return str_eq(rule, "auto") || str_eq(rule, "mean") || str_eq(rule, "mode");
}

/* Of a number; the numBins of a category are those of its hashes. */
static bool learns_bins(const json_t *item)
{
    return json_object_get(item, "numBins") != NULL &&
           !str_eq(json_string_value(json_object_get(item, "type")), "category");
}

/* Asks for words, boundaries or values; whether there are columns that need them is known once the file is open. */
static bool set_learns(const struct data_spec *d)
{
    bool asks = data_missing_is_learned(d->missing);
    for (size_t i = 0; i < node_size(&d->columns); i++) {
        struct node column = node_item(&d->columns, i);
        asks = asks || learns_bins(column.v) ||
               is_learned(json_string_value(json_object_get(column.v, "vocabulary"))) ||
               is_learned(json_string_value(json_object_get(column.v, "missing")));
    }
    return d->present && data_has_fields(d->format) && asks;
}

bool job_learns(const struct job *j)
{
    return set_learns(&j->train) || (j->has_model && model_input_is_open(&j->model));
}

/* ---- columns ---- */

/* The items of a list of columns by their names. */
static void index_items(const json_t *columns, struct map *ret)
{
    for (size_t i = 0; i < json_array_size(columns); i++) {
        json_t *item = json_array_get(columns, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name != NULL)
            map_put(ret, name, item);
    }
}

/* Lists of columns of data.train, by the column. */
static void index_lists(const json_t *doc, const char *key, struct map *ret)
{
    const json_t *columns = json_at(doc, "spec.data.train.columns");
    for (size_t i = 0; i < json_array_size(columns); i++) {
        const json_t *item = json_array_get(columns, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        json_t *list = json_object_get(item, key);
        if (name != NULL && json_is_array(list))
            map_put(ret, name, list);
    }
}

void job_words(const json_t *doc, struct map *ret)
{
    index_lists(doc, "vocabulary", ret);
}

/* In place of the words of the data. */
static void keep_words_of(struct learned_column *c, const json_t *words)
{
    AUTO_FINI(buf) word = BUF_INIT;
    strlist_fini(&c->words);
    for (size_t i = c->is_text ? vocabulary_special(words) : 0; i < json_array_size(words); i++) {
        vocabulary_word(json_array_get(words, i), c->is_text, &word);
        strlist_add(&c->words, word.data);
    }
    c->kept_words = words;
    c->kept = true;
    if (c->fill != NULL && !strlist_has(&c->words, c->fill)) { /* reading the data will name its place */
        free(c->fill);
        c->fill = xstrdup(c->words.items[0]);
    }
}

/* maxTokens of the column does not shorten the words of the run. */
static int check_kept_words(const struct job *j, const struct learned_column *c, struct err *e)
{
    for (size_t i = 0; i < node_size(&j->train.columns); i++) {
        struct node item = node_item(&j->train.columns, i), max = node_get(&item, "maxTokens");
        if (!node_present(&max) || !str_eq(json_string_value(json_object_get(item.v, "name")), c->name) ||
            json_integer_value(max.v) >= (json_int_t)(c->words.n + c->others))
            continue;
        return node_error(&max, e,
                          "is less than the %zu numbers of the run, which keeps its words; set %zu or more, or start "
                          "from scratch with --fresh",
                          c->words.n + c->others, c->words.n + c->others);
    }
    return 0;
}

static int keep_words(const struct job *j, const struct job *run, struct learned_columns *learned, struct err *e)
{
    AUTO_FINI(map) of_run = { 0 }, weights_of_run = { 0 };
    index_lists(run->doc, "vocabulary", &of_run);
    index_lists(run->doc, "idfWeights", &weights_of_run);
    for (size_t i = 0; i < learned->n; i++) {
        struct learned_column *c = &learned->c[i];
        const json_t *words = c->has_words ? map_get(&of_run, c->name) : NULL;
        c->kept_weights = c->weights != NULL ? map_get(&weights_of_run, c->name) : NULL;
        if (words == NULL || (c->weights != NULL && c->kept_weights == NULL)) /* the run had another encoding */
            continue;
        keep_words_of(c, words);
        if (check_kept_words(j, c, e) < 0)
            return -1;
    }
    return 0;
}

/* In place of as many of the data. */
static void keep_bounds(const struct job *run, struct learned_columns *learned)
{
    AUTO_FINI(map) of_run = { 0 };
    index_lists(run->doc, "binBoundaries", &of_run);
    for (size_t i = 0; i < learned->n; i++) {
        struct learned_column *c = &learned->c[i];
        const json_t *bounds = c->bounds != NULL ? map_get(&of_run, c->name) : NULL;
        if (bounds == NULL || json_array_size(bounds) != c->n_bounds)
            continue;
        for (size_t j = 0; j < c->n_bounds; j++)
            c->bounds[j] = json_number_value(json_array_get(bounds, j));
        c->kept = true;
    }
}

static json_t *number_of(double v)
{
    return v == trunc(v) && fabs(v) < EXACT_MAX ? json_integer((json_int_t)v) : json_real(v);
}

/* Nine digits say which float it is. */
static json_t *weights_json(const struct learned_column *c)
{
    char text[32];
    json_t *list = c->kept_weights != NULL ? json_deep_copy(c->kept_weights) : json_array();
    for (size_t i = 0; c->kept_weights == NULL && i < c->words.n; i++) {
        str_fmt(text, sizeof(text), "%.9g", (double)c->weights[i]);
        json_array_append_new(list, number_of(strtod(text, NULL)));
    }
    return list;
}

/* Those of the run as it has them, so that 1 stays a number. */
static void put_words(json_t *item, const struct learned_column *c)
{
    json_t *list = c->kept_words != NULL ? json_deep_copy(c->kept_words) : json_array();
    for (size_t i = 0; c->kept_words == NULL && i < c->words.n; i++)
        json_array_append_new(list, json_string(c->words.items[i]));
    json_object_set_new(item, "vocabulary", list);
    json_object_del(item, "maxTokens");
    if (c->weights != NULL &&
        str_eq(json_string_value(json_object_get(item, "encoding")), COLUMN_ENCODING_NAMES[COLUMN_TF_IDF]))
        json_object_set_new(item, "idfWeights", weights_json(c));
}

static void put_bounds(json_t *item, const struct learned_column *c)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->n_bounds; i++)
        json_array_append_new(list, number_of(c->bounds[i]));
    json_object_set_new(item, "binBoundaries", list);
    json_object_del(item, "numBins");
}

static void put_column(json_t *item, const struct learned_column *c)
{
    if (c->bounds != NULL && learns_bins(item))
        put_bounds(item, c);
    if (c->has_words && str_eq(json_string_value(json_object_get(item, "vocabulary")), "auto"))
        put_words(item, c);
    if (c->fill == NULL || json_object_get(item, "default") != NULL)
        return;
    json_object_del(item, "missing");
    json_object_set_new(item, "default", c->fill_is_number ? number_of(c->fill_number) : json_string(c->fill));
}

/* A column that the job does not describe, of a data set whose other columns are features, too. */
static json_t *new_item(json_t *data, json_t *columns, const char *name)
{
    json_t *item = json_pack("{s:s}", "name", name);
    if (json_object_get(data, "dropColumns") == NULL)
        json_object_set_new(data, "dropColumns", json_array());
    json_array_append_new(columns, item);
    return item;
}

/* `own`: these columns were learned from this data set. */
static void put_columns(struct data_spec *d, json_t *data, const struct learned_columns *learned, bool own)
{
    bool fills_all = data_missing_is_learned(d->missing);
    if (json_object_get(data, "columns") == NULL && learned->n > 0)
        json_object_set_new(data, "columns", json_array());
    json_t *columns = json_object_get(data, "columns");
    AUTO_FINI(map) items = { 0 };
    index_items(columns, &items);
    for (size_t i = 0; i < learned->n; i++) {
        json_t *item = map_get(&items, learned->c[i].name);
        if (item == NULL && (own || fills_all) && learned->c[i].fill != NULL)
            item = new_item(data, columns, learned->c[i].name);
        if (item != NULL)
            put_column(item, &learned->c[i]);
    }
    if (fills_all) { /* each column has its default now */
        json_object_del(data, "missing");
        d->missing = MISSING_ERROR;
    }
    d->columns = node_get(&d->node, "columns");
    d->drop_columns = node_get(&d->node, "dropColumns");
}

static void note_bounds(const struct learned_column *c, struct buf *text)
{
    char list[SHOWN_MAX], number[32];
    AUTO_FINI(strlist) bounds = { 0 };
    for (size_t i = 0; i < c->n_bounds; i++)
        strlist_add(&bounds, str_double(c->bounds[i], number));
    buf_printf(text, " %zu boundar%s%s (%s)", c->n_bounds, c->n_bounds == 1 ? "y" : "ies", c->kept ? " of the run" : "",
               column_names_text(&bounds, list, sizeof(list)));
}

static void note_column(const struct learned_column *c, struct strlist *notes)
{
    char list[SHOWN_MAX];
    AUTO_FINI(buf) text = BUF_INIT;
    if (!c->has_words && c->bounds == NULL && c->missing == 0)
        return;
    buf_printf(&text, "column '%s':", c->name);
    if (c->bounds != NULL)
        note_bounds(c, &text);
    if (c->has_words)
        buf_printf(&text, " %zu word%s%s (%s)", c->words.n, c->words.n == 1 ? "" : "s", c->kept ? " of the run" : "",
                   column_names_text(&c->words, list, sizeof(list)));
    if (c->has_words && c->others > 0)
        buf_printf(&text, ", %zu numbers", c->words.n + c->others);
    if (c->kept && c->others > 0 && c->found != c->words.n) /* other words would be errors */
        buf_printf(
            &text,
            "; the manifest and the data now ask for %zu word%s, but a run that is continued keeps its own: start from "
            "scratch with --fresh to learn them",
            c->found, c->found == 1 ? "" : "s");
    if (c->fill != NULL && c->missing > 0) {
        buf_printf(&text, "%s %" PRId64 " missing value%s, read as the %s ",
                   c->has_words || c->bounds != NULL ? ";" : "", c->missing, c->missing == 1 ? "" : "s",
                   c->how == MISSING_MEAN ? "mean" : "mode");
        if (c->fill_is_number)
            buf_printf(&text, "%g", c->fill_number);
        else
            buf_printf(&text, "%s", c->fill);
    }
    strlist_add(notes, text.data);
}

static int learn_columns(struct job *j, const struct job *run, const struct data_place *at, struct strlist *notes,
                         struct err *e)
{
    AUTO_FINI(learned_columns) learned = { .c = NULL };
    if (csv_learn(at, &learned, e) < 0)
        return -1;
    if (run != NULL && keep_words(j, run, &learned, e) < 0)
        return -1;
    if (run != NULL)
        keep_bounds(run, &learned);
    put_columns(&j->train, json_at(j->doc, "spec.data.train"), &learned, true);
    if (j->validation.present && data_has_fields(j->validation.format))
        put_columns(&j->validation, json_at(j->doc, "spec.data.validation"), &learned, false);
    for (size_t i = 0; i < learned.n; i++)
        note_column(&learned.c[i], notes);
    return 0;
}

/* ---- the input ---- */

static int learn_input(struct job *j, const struct data_place *at, struct strlist *notes, struct err *e)
{
    AUTO(dataset) *d = NULL;
    AUTO_FINI(buf) text = BUF_INIT;
    char shape[128];
    struct node columns = node_get(&j->train.node, "inputs"); /* a row has other numbers than the input, too */
    if (j->train.inputs.n > 0 && node_present(&columns))
        return node_error(&columns, e, "the file leaves axes of the model's input open: set model.inputShape");
    if (dataset_open(&j->train, at->base_dir, at->cache_dir, NULL, &d, e) < 0)
        return -1;
    const struct shape *x = dataset_example(d);
    json_t *dims = json_array();
    for (int i = 0; i < x->rank; i++)
        json_array_append_new(dims, json_integer(x->dim[i]));
    json_object_set_new(json_at(j->doc, "spec.model"), "inputShape", dims);
    buf_printf(&text, "the model's input is %s, as an example of data.train", shape_text(x, shape));
    strlist_add(notes, text.data);
    return 0;
}

int job_learn(struct job *j, const struct job *run, const char *base_dir, const char *cache_dir, struct strlist *notes,
              struct err *e)
{
    const struct data_place at = { .spec = &j->train, .base_dir = base_dir, .cache_dir = cache_dir };
    if (set_learns(&j->train) && learn_columns(j, run, &at, notes, e) < 0)
        return -1;
    return j->has_model && model_input_is_open(&j->model) ? learn_input(j, &at, notes, e) : 0;
}
