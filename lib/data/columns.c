/* Reads spec.columns, label and sampleWeight and resolves them to columns. Every error is reported at the column's
 * place in the manifest, with the nearest name as suggestion. */
#include "data/columns.h"

#include <string.h>

#include "job/tfrecord_columns.h"

enum { LIST_TEXT = 400 }; /* of names in a message */

void columns_fini(struct data_columns *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->c[i].name);
        free(c->c[i].format);
        free(c->c[i].fallback_text);
        free(c->c[i].bounds);
        free(c->c[i].idf);
        map_fini(&c->c[i].vocabulary);
    }
    free(c->c);
    map_fini(&c->by_name);
    *c = (struct data_columns){ .c = NULL };
}

bool column_learns(const struct data_column *c)
{
    return c->used &&
           (c->learns_words || c->learns_bins > 0 || (data_missing_is_learned(c->missing) && !c->has_default));
}

static int64_t find_column(const struct data_columns *c, const char *name)
{
    return (int64_t)(intptr_t)map_get(&c->by_name, name) - 1;
}

/* The first of a name is found by it. */
static void index_name(struct data_columns *c, size_t i)
{
    c->longest = MAX(c->longest, strlen(c->c[i].name));
    if (find_column(c, c->c[i].name) < 0)
        map_put(&c->by_name, c->c[i].name, (void *)(intptr_t)(i + 1));
}

/* "; did you mean 'age'?" */
static const char *nearest_column(const struct data_columns *c, const char *name, char *out, size_t out_size)
{
    const char **names = xcalloc(c->n, sizeof(*names));
    for (size_t i = 0; i < c->n; i++)
        names[i] = c->c[i].name;
    str_did_you_mean(name, names, c->n, out, out_size);
    free(names);
    return out;
}

/* "; did you mean 'age'?", or "; the columns are age, sex". */
static const char *known_columns(const struct data_place *at, const struct data_columns *c, const char *name,
                                 char out[LIST_TEXT])
{
    AUTO_FINI(strlist) names = { 0 };
    char list[LIST_TEXT - 128];
    nearest_column(c, name, out, LIST_TEXT);
    for (size_t i = 0; i < c->n; i++)
        strlist_add(&names, c->c[i].name);
    if (!at->spec->header)
        str_fmt(out, LIST_TEXT, "; the file has no header, so its columns are the numbers 0 to %zu", c->n - 1);
    else if (out[0] == '\0')
        str_fmt(out, LIST_TEXT, "; the columns are %s", column_names_text(&names, list, sizeof(list)));
    return out;
}

/* A name, else an index; from -1 on it counts from the end. */
static int find_named(const struct data_place *at, const struct data_columns *c, const char *key, const char *label,
                      int64_t *ret, struct err *e)
{
    char hint[LIST_TEXT];
    int64_t index;
    *ret = find_column(c, label);
    if (*ret >= 0)
        return 0;
    if (str_i64(label, INT32_MIN, INT32_MAX, &index, NULL) < 0)
        return data_error(at, key, e, "no column is named '%s'%s", label, known_columns(at, c, label, hint));
    *ret = index < 0 ? index + (int64_t)c->n : index;
    if (*ret < 0 || *ret >= (int64_t)c->n)
        return data_error(at, key, e, "column %s does not exist: the data has %zu (0 is the first, -1 the last)", label,
                          c->n);
    return 0;
}

/* The name that a place had in the run's own file. */
static const char *name_in_run(const struct data_columns *c, const char *given, const char *in_run)
{
    int64_t index;
    bool is_place = find_column(c, given) < 0 && str_i64(given, INT32_MIN, INT32_MAX, &index, NULL) == 0;
    return is_place && in_run != NULL ? in_run : given;
}

static int find_labels(const struct data_place *at, struct data_columns *c, struct err *e)
{
    const struct strlist *labels = &at->spec->label, *in_run = at->like != NULL ? &at->like->labels : NULL;
    c->label = -1;
    for (size_t i = 0; i < labels->n; i++) {
        int64_t which;
        bool known = in_run != NULL && in_run->n == labels->n;
        const char *name = name_in_run(c, labels->items[i], known ? in_run->items[i] : NULL);
        if (find_named(at, c, "label", name, &which, e) < 0)
            return -1;
        struct data_column *column = &c->c[which];
        if (column->is_label)
            return data_error(at, "label", e, "column '%s' is named twice", column->name);
        column->is_label = true;
        column->used = true;
        column->place = c->n_labels++;
        c->label = i == 0 ? which : c->label;
    }
    return 0;
}

/* The labels are known, and how many numbers each of them has. */
static int place_labels(struct data_columns *c, struct err *e)
{
    auto_free struct data_column **labels = xcalloc(c->n_labels + 1, sizeof(*labels));
    for (size_t i = 0; i < c->n; i++)
        if (c->c[i].is_label)
            labels[c->c[i].place] = &c->c[i];
    for (size_t i = 0; i < c->n_labels; i++) {
        labels[i]->place = c->labels;
        if (size_add(c->labels, labels[i]->count, &c->labels, e) < 0)
            return -1;
    }
    return 0;
}

static int find_weight(const struct data_place *at, struct data_columns *c, struct err *e)
{
    int64_t which;
    if (at->spec->sample_weight == NULL)
        return 0;
    const char *name = name_in_run(c, at->spec->sample_weight, at->like != NULL ? at->like->weight : NULL);
    if (find_named(at, c, "sampleWeight", name, &which, e) < 0)
        return -1;
    struct data_column *column = &c->c[which];
    if (column->is_label)
        return data_error(at, "sampleWeight", e,
                          "column '%s' is the label; set 'label' to another column (default: the last one)",
                          column->name);
    column->is_weight = column->used = true;
    c->weighted = true;
    return 0;
}

/* The column becomes a feature, after those before it. */
static int add_feature(struct data_columns *c, struct data_column *column, struct err *e)
{
    column->used = true;
    column->place = c->features;
    return size_add(c->features, column->count, &c->features, e);
}

static int some_features(const struct data_place *at, const struct data_columns *c, struct err *e)
{
    if (c->features > INT32_MAX) /* as for a layer's output */
        return data_error(at, "columns", e, "an example of %zu numbers is too large", c->features);
    return c->features > 0 ? 0 : data_error(at, "columns", e, "no column is left for the features");
}

const char *column_type_name(enum column_type type)
{
    static const char *const NAMES[] = {
        [COLUMN_FLOAT] = "float", [COLUMN_INT] = "int",   [COLUMN_CATEGORY] = "category", [COLUMN_BYTES] = "bytes",
        [COLUMN_DATE] = "date",   [COLUMN_TEXT] = "text", [COLUMN_IMAGE] = "image",
    };
    return NAMES[type];
}

/* With words that still have to be learned it has one, so that no width is 0. */
static size_t width_of(const struct data_column *c)
{
    return c->hash_bins > 0 ? c->hash_bins : column_is_binned(c) ? c->n_bounds + 1 : MAX(c->vocabulary.n, 1) + c->oov;
}

/* What is only for features was said of a label or weight. */
static int check_role(const struct node *n, const struct data_column *c, struct err *e)
{
    const char *key = c->n_bounds > 0 ? "binBoundaries" : "numBins";
    if (!c->is_label && !c->is_weight)
        return 0;
    if (c->hash_bins > 0 || column_is_binned(c))
        return node_key_error(n, key, e, "a %s is not %s; remove '%s'", c->is_label ? "label" : "weight",
                              c->hash_bins > 0 ? "hashed" : "put into ranges", key);
    const char *of_feature = c->encoded ? "encoding" : c->oov > 0 ? "numOovIndices" : NULL;
    if (c->is_label && of_feature != NULL)
        return node_key_error(n, of_feature, e, "the label is a class number; remove '%s'", of_feature);
    return 0;
}

/* outputSequenceLength: the shape is that of a step, and the steps become its first dimension. */
static int read_length(const struct node *n, struct data_column *c, struct err *e)
{
    struct node length = node_get(n, "outputSequenceLength"), shape = node_get(n, "shape");
    int64_t steps, dim[SHAPE_MAX_RANK];
    c->step = c->count;
    if (!node_present(&length))
        return 0;
    if (node_i64(&length, 1, TEXT_LENGTH_MAX, &steps, e) < 0)
        return -1;
    if (c->shape.rank + 1 >= SHAPE_MAX_RANK)
        return node_error(&shape, e, "has %d dimensions, at most %d with 'outputSequenceLength'", c->shape.rank,
                          SHAPE_MAX_RANK - 2);
    dim[0] = steps;
    memcpy(dim + 1, c->shape.dim, (size_t)c->shape.rank * sizeof(*dim));
    c->shape = shape_of(c->shape.rank + 1, dim);
    c->length = (size_t)steps;
    return size_mul(c->length, c->step, &c->count, NULL) < 0
               ? node_error(&length, e, "is too large for steps of this shape")
               : 0;
}

/* shape: [28, 28]; without one a single number. */
static int read_shape(const struct node *n, struct data_column *c, struct err *e)
{
    struct node dims = node_get(n, "shape");
    c->shape = shape_of(0, NULL);
    if (node_present(&dims)) {
        if (node_array(&dims, e) < 0)
            return -1;
        if (node_size(&dims) >= SHAPE_MAX_RANK)
            return node_error(&dims, e, "has %zu dimensions, at most %d", node_size(&dims), SHAPE_MAX_RANK - 1);
        for (size_t i = 0; i < node_size(&dims); i++) {
            struct node dim = node_item(&dims, i);
            if (node_i64(&dim, 1, INT32_MAX, &c->shape.dim[i], e) < 0)
                return -1;
            c->shape.rank++;
        }
    }
    if (shape_count(&c->shape, &c->count, NULL) < 0)
        return node_error(&dims, e, "is too large");
    return read_length(n, c, e);
}

/* One of spec.columns. */
static int describe_column(const struct data_place *at, const struct node *n, struct data_columns *c, struct err *e)
{
    struct node name_node = node_get(n, "name"), shape = node_get(n, "shape"),
                length = node_get(n, "outputSequenceLength");
    const char *name;
    char hint[LIST_TEXT];
    if (node_object(n, e) < 0 || node_str(&name_node, &name, e) < 0)
        return -1;
    int64_t which = find_column(c, name);
    if (which < 0 && at->like != NULL) /* order_as_in_run() names all that are missing */
        return 0;
    if (which < 0)
        return node_error(&name_node, e, "the data has no column '%s'%s", name, known_columns(at, c, name, hint));
    struct data_column *column = &c->c[which];
    if (column->described)
        return node_error(&name_node, e, "column '%s' is described twice", name);
    column->described = true;
    if (column_read_csv(n, column, e) < 0)
        return -1;
    bool list = node_present(&shape) || (node_present(&length) && column->type != COLUMN_TEXT);
    if (list && read_shape(n, column, e) < 0)
        return -1;
    if (column->dropped)
        return node_error(&name_node, e, "column '%s' is one of dropColumns, too", name);
    if (column->is_weight && column->type != COLUMN_FLOAT && column->type != COLUMN_INT)
        return node_error(n, e, "column '%s' is the weight of examples and must be a number, not a %s", name,
                          column_type_name(column->type));
    if (column->is_label && (column->type == COLUMN_DATE || column->type == COLUMN_TEXT))
        return node_error(n, e, "column '%s' is the label, which must be numbers or words, not %ss", name,
                          column_type_name(column->type));
    if (column->is_label && c->n_labels > 1 && column->type == COLUMN_CATEGORY && at->spec->outputs.n == 0)
        return node_error(n, e, "column '%s' is one of several labels, which must be numbers", name);
    if (check_role(n, column, e) < 0)
        return -1;
    if (!column->is_label && column->encoding != COLUMN_INT_ENCODING)
        column->count = width_of(column);
    bool feature = !column->is_label && !column->is_weight;
    return feature && !node_present(&at->spec->drop_columns) ? add_feature(c, column, e) : 0;
}

/* dropColumns: columns of the file, which are neither the label nor the weight. Those of a run may be absent here. */
static int drop_columns(const struct data_place *at, struct data_columns *c, struct err *e)
{
    const struct node *names = &at->spec->drop_columns;
    char hint[LIST_TEXT];
    const char *name;
    for (size_t i = 0; i < node_size(names); i++) {
        struct node item = node_item(names, i);
        if (node_str(&item, &name, e) < 0)
            return -1;
        int64_t which = find_column(c, name);
        if (which < 0 && at->like != NULL)
            continue;
        if (which < 0)
            return node_error(&item, e, "the data has no column '%s'%s", name, known_columns(at, c, name, hint));
        if (c->c[which].is_label || c->c[which].is_weight)
            return node_error(&item, e, "column '%s' is the %s", name,
                              c->c[which].is_label ? "label" : "weight of examples");
        c->c[which].dropped = true;
    }
    return 0;
}

/* The error of columns_check_encodings(), for a job whose label is a number. */
static int check_encodings(const struct data_place *at, const struct data_columns *c, struct err *e)
{
    const struct data_column *first = NULL;
    size_t as_words = c->features;
    bool learned = false; /* the number of words is not known yet */
    for (size_t i = 0; i < c->n && !at->spec->categories_are_int; i++) {
        const struct data_column *one = &c->c[i];
        bool numbered = one->type == COLUMN_CATEGORY || column_is_binned(one);
        if (!numbered || one->encoded || one->is_label || one->is_weight)
            continue;
        first = first != NULL ? first : one;
        as_words += width_of(one) - 1;
        learned = learned || one->learns_words || one->learns_bins > 0;
    }
    if (first == NULL)
        return 0;
    const char *what = first->type == COLUMN_CATEGORY ? "a category feature" : "a number in ranges";
    if (learned || at->spec->inputs.n > 0)
        return data_error(at, "columns", e,
                          "column '%s' is %s and needs an encoding: 'encoding: one_hot' or 'encoding: int'",
                          first->name, what);
    return data_error(at, "columns", e,
                      "column '%s' is %s and needs an encoding: 'encoding: one_hot' (model input [%zu]) or "
                      "'encoding: int' ([%zu])",
                      first->name, what, as_words, c->features);
}

/* ---- columns by the names of a run ---- */

/* As what a column of the run is here that is not a feature. */
static const char *other_role(const struct data_column *one)
{
    return one->is_label    ? "; it is the label here"
           : one->is_weight ? "; it is the sample weight here"
                            : "; it is not in columns here";
}

static int lacks_columns(const struct data_place *at, const char *path, const struct data_columns *c,
                         const struct strlist *missing, struct err *e)
{
    char lacking[LIST_TEXT], run[LIST_TEXT], here[LIST_TEXT], nearest[128] = "";
    AUTO_FINI(strlist) names = { 0 };
    int64_t which = missing->n == 1 ? find_column(c, missing->items[0]) : -1;
    for (size_t i = 0; i < c->n; i++)
        if (!c->c[i].is_label && !c->c[i].is_weight)
            strlist_add(&names, c->c[i].name);
    if (which < 0 && missing->n == 1)
        nearest_column(c, missing->items[0], nearest, sizeof(nearest));
    return err_set(
        e, ERR_INPUT, "%s:%lld: no %s %s%s; the run was trained with %s; here are %s", path,
        (long long)at->spec->skip_rows + 1, which >= 0 ? "feature" : "column",
        column_names_text(missing, lacking, sizeof(lacking)), which >= 0 ? other_role(&c->c[which]) : nearest,
        column_names_text(&at->like->features, run, sizeof(run)), column_names_text(&names, here, sizeof(here)));
}

/* The features are the run's, in its order. `described`: the job describes its features here, too. */
static int order_as_in_run(const struct data_place *at, const char *path, bool described, struct data_columns *c,
                           struct err *e)
{
    const struct strlist *wanted = &at->like->features;
    AUTO_FINI(strlist) missing = { 0 };
    size_t used = 0;
    for (size_t i = 0; i < c->n; i++)
        used += c->c[i].used && !c->c[i].is_label && !c->c[i].is_weight;
    for (size_t i = 0; i < wanted->n; i++) {
        int64_t which = find_column(c, wanted->items[i]);
        if (which < 0 || c->c[which].is_label || c->c[which].is_weight || (described && !c->c[which].used))
            strlist_add(&missing, wanted->items[i]);
    }
    if (missing.n > 0)
        return lacks_columns(at, path, c, &missing, e);
    if (described && used != wanted->n) {
        char run[LIST_TEXT];
        return data_error(at, "columns", e, "describes %zu features, the run was trained with %zu: %s", used, wanted->n,
                          column_names_text(wanted, run, sizeof(run)));
    }
    c->features = 0;
    for (size_t i = 0; i < wanted->n; i++)
        if (add_feature(c, &c->c[find_column(c, wanted->items[i])], e) < 0)
            return -1;
    return 0;
}

const struct data_column *columns_find(const struct data_columns *c, bool label, size_t i)
{
    for (size_t j = 0; j < c->n; j++) {
        const struct data_column *one = &c->c[j];
        if (one->used && !one->is_weight && one->is_label == label && i >= one->place && i - one->place < one->count)
            return one;
    }
    return NULL;
}

struct shape columns_shape(const struct data_columns *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct data_column *one = &c->c[i];
        if (one->used && !one->is_label && !one->is_weight && one->count == c->features && one->shape.rank > 0)
            return one->shape;
    }
    return shape_of(1, (int64_t[]){ (int64_t)c->features });
}

static int columns_by_place(const void *a, const void *b)
{
    const struct record_field *x = a, *y = b;
    return x->at < y->at ? -1 : x->at > y->at;
}

struct record_fields columns_fields(const struct data_columns *c, bool label)
{
    struct record_fields ret = { .v = xcalloc(c->n + 1, sizeof(ret.v[0])) };
    for (size_t i = 0; i < c->n; i++) {
        const struct data_column *one = &c->c[i];
        if (!one->used || one->is_weight || one->is_label != label)
            continue;
        bool number = one->shape.rank == 0 && one->count == 1; /* csv: count numbers; tfrecord: its shape */
        ret.v[ret.n++] = (struct record_field){
            .name = one->name,
            .at = one->place,
            .shape = one->shape.rank > 0 ? one->shape : shape_of(1, (int64_t[]){ (int64_t)one->count }),
            .integer = number && !(one->described && one->type == COLUMN_FLOAT),
            .numbers = one->encoding == COLUMN_INT_ENCODING ? column_words(one) : 0,
        };
    }
    qsort(ret.v, ret.n, sizeof(ret.v[0]), columns_by_place);
    return ret;
}

void columns_names(const struct data_columns *c, struct column_names *ret)
{
    const struct data_column **features = xcalloc(c->features + 1, sizeof(*features)),
                             **labels = xcalloc(c->labels + 1, sizeof(*labels));
    for (size_t i = 0; i < c->n; i++) {
        const struct data_column *one = &c->c[i];
        if (one->is_weight)
            ret->weight = xstrdup(one->name);
        else if (one->used)
            (one->is_label ? labels : features)[one->place] = one;
    }
    for (size_t i = 0; i < c->features; i++)
        if (features[i] != NULL)
            strlist_add(&ret->features, features[i]->name);
    for (size_t i = 0; i < c->labels; i++)
        if (labels[i] != NULL)
            strlist_add(&ret->labels, labels[i]->name);
    free(features);
    free(labels);
}

/* A label, a weight or a text is never replaced; only a column of type float has a mean. */
static void settle_missing(struct data_columns *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct data_column *one = &c->c[i];
        if (!data_missing_is_learned(one->missing))
            continue;
        if (one->is_label || one->is_weight || one->type == COLUMN_TEXT || one->shape.rank > 0)
            one->missing = MISSING_ERROR;
        else if (one->type != COLUMN_FLOAT)
            one->missing = MISSING_MODE;
    }
}

static int choose_columns(const struct data_place *at, const char *path, struct data_columns *c, struct err *e)
{
    const struct node *columns = &at->spec->columns;
    if (find_labels(at, c, e) < 0 || find_weight(at, c, e) < 0 || drop_columns(at, c, e) < 0 ||
        (node_present(columns) && node_array(columns, e) < 0))
        return -1;
    for (size_t i = 0; i < node_size(columns); i++) {
        struct node item = node_item(columns, i);
        if (describe_column(at, &item, c, e) < 0)
            return -1;
    }
    bool all = c->features == 0 && at->like == NULL;
    if (place_labels(c, e) < 0 || (at->like != NULL && order_as_in_run(at, path, c->features > 0, c, e) < 0))
        return -1;
    for (size_t i = 0; all && i < c->n; i++)
        if (!c->c[i].is_label && !c->c[i].is_weight && !c->c[i].dropped && add_feature(c, &c->c[i], e) < 0)
            return -1;
    settle_missing(c);
    return check_encodings(at, c, e) < 0 ? -1 : some_features(at, c, e);
}

int columns_of_names(const struct data_place *at, const char *path, const struct strlist *names,
                     struct data_columns *ret, struct err *e)
{
    AUTO_FINI(data_columns) c = { .c = xcalloc(MAX(names->n, 1), sizeof(*c.c)), .n = names->n };
    for (size_t i = 0; i < names->n; i++) {
        c.c[i].name = xstrdup(names->items[i]);
        c.c[i].count = 1;
        c.c[i].missing = at->spec->missing;
        index_name(&c, i);
    }
    if (choose_columns(at, path, &c, e) < 0)
        return -1;
    *ret = c;
    c = (struct data_columns){ .c = NULL };
    return 0;
}

/* The bytes of a PNG or JPEG file, which become an image of the column's shape: lib/job has checked that. */
static struct image_form image_of(const struct shape *shape, const struct image_spec *as)
{
    return (struct image_form){ .height = shape->dim[0],
                                .width = shape->dim[1],
                                .channels = (int)shape->dim[2],
                                .interpolation = as->interpolation,
                                .crop = as->crop_to_aspect_ratio,
                                .cure = "it was damaged when the record was written: write the file again" };
}

static int read_feature(const struct node *n, const struct image_spec *images, struct data_column *c, struct err *e)
{
    static const char *const KEYS[] = { "name", "type", "shape", "outputSequenceLength", "default" };
    static const char *const TYPES[] = { "float", "int64", "bytes", "image" };
    static const enum column_type MEANING[] = { COLUMN_FLOAT, COLUMN_INT, COLUMN_BYTES, COLUMN_IMAGE };
    struct node name_node = node_get(n, "name"), type_node = node_get(n, "type");
    const char *name;
    size_t type;
    if (node_only(n, KEYS, COUNT_OF(KEYS), e) < 0 || node_str(&name_node, &name, e) < 0 ||
        node_enum(&type_node, TYPES, COUNT_OF(TYPES), &type, e) < 0)
        return -1;
    c->name = xstrdup(name);
    c->type = MEANING[type];
    if (read_shape(n, c, e) < 0)
        return -1;
    if (c->type == COLUMN_IMAGE)
        c->image = image_of(&c->shape, images);
    return column_read_default(n, c, e);
}

static int place_features(const struct data_place *at, struct data_columns *c, struct err *e)
{
    if (find_labels(at, c, e) < 0 || find_weight(at, c, e) < 0 || place_labels(c, e) < 0)
        return -1;
    for (size_t i = 0; i < c->n; i++)
        if (!c->c[i].is_label && !c->c[i].is_weight && add_feature(c, &c->c[i], e) < 0)
            return -1;
    for (size_t i = 0; i < c->n; i++) {
        struct node item = node_item(&at->spec->columns, i);
        if (c->c[i].is_weight && tfrecord_weight_check(at->spec, &item, e) < 0)
            return -1;
    }
    return some_features(at, c, e);
}

bool columns_have_images(const struct data_columns *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->c[i].type == COLUMN_IMAGE)
            return true;
    return false;
}

int columns_of_spec(const struct data_place *at, struct data_columns *ret, struct err *e)
{
    const struct node *columns = &at->spec->columns;
    size_t n = node_size(columns);
    if (!node_present(columns) || n == 0)
        return data_error(at, "columns", e,
                          "tfrecord needs the names and types of its features: "
                          "columns: [{name: image, type: float, shape: [28, 28]}, ...]");
    if (node_array(columns, e) < 0)
        return -1;

    AUTO_FINI(data_columns) c = { .c = xcalloc(n, sizeof(*c.c)) };
    for (size_t i = 0; i < n; i++) {
        struct node item = node_item(columns, i);
        c.n = i + 1;
        if (node_object(&item, e) < 0 || read_feature(&item, &at->spec->images, &c.c[i], e) < 0)
            return -1;
        if (find_column(&c, c.c[i].name) >= 0)
            return node_error(&item, e, "feature '%s' is described twice", c.c[i].name);
        index_name(&c, i);
    }
    if (place_features(at, &c, e) < 0)
        return -1;
    *ret = c;
    c = (struct data_columns){ .c = NULL };
    return 0;
}
