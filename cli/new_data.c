/* Builds the data set of `evaluate` and `predict` by changing the run's manifest, so that the readers, checks and error
 * messages of training are used. */
#include "new_data.h"

#include <string.h>

#include "job/data_inherit.h"

/* ---- the data set ---- */

static bool is_format(const json_t *data, const char *name)
{
    return str_eq(json_string_value(json_object_get(data, "format")), name);
}

static bool is_npz(const json_t *data)
{
    return is_format(data, "npz");
}

/* Each file is an example. */
static bool is_files(const json_t *data)
{
    return is_format(data, "images") || is_format(data, "text");
}

static bool is_arrays(const json_t *data)
{
    return is_format(data, "idx") || is_format(data, "npy") || is_npz(data);
}

/* The data set is given by --data, and what that leaves out by data.train, else by the run's own data set. */
static int pattern(const json_t *doc, const struct new_data *ask, json_t **ret, struct err *e)
{
    AUTO(source) *source = NULL;
    const json_t *own = json_at(doc, "spec.data.validation");
    if (ask->data != NULL) {
        json_auto_t *v = NULL;
        if (yaml_parse(ask->data, strlen(ask->data), "--data", &v, &source, e) < 0)
            return -1;
        if (!json_is_object(v))
            return err_set(
                e, ERR_INPUT,
                "--data must be a map with the fields of spec.data, such as '{format: csv, files: new.csv}'");
        data_inherit(json_at(doc, "spec.data.train"), v);
        *ret = json_incref(v);
        return 0;
    }
    if (ask->files->n == 0 && own == NULL && json_at(doc, "spec.fit.validationSplit") == NULL)
        return err_set(e, ERR_INPUT, "the run has no data.validation: name the files to read, or give --data");
    if (own == NULL)
        own = json_at(doc, "spec.data.train");
    *ret = json_deep_copy(own);
    return *ret != NULL ? 0 : err_set(e, ERR_INPUT, "the run's job has no data: give --data");
}

static json_t *list_of(const struct strlist *names)
{
    json_t *list = json_array();
    for (size_t i = 0; i < names->n; i++)
        json_array_append_new(list, json_string(names->items[i]));
    return list;
}

/* The labels of images and texts are directories; without labels any files and directories will do. */
static int put_examples(json_t *data, const struct new_data *ask, struct err *e)
{
    if (!ask->wants_labels) {
        json_object_del(data, "directory");
        json_object_del(data, "classNames");
        json_object_set_new(data, "files", list_of(ask->files));
        return 0;
    }
    if (ask->files->n > 1)
        return err_set(
            e, ERR_INPUT,
            "the run's data are files with an example each: name one directory, with a directory for each class");
    json_object_del(data, "files");
    json_object_set_new(data, "directory", json_string(ask->files->items[0]));
    return 0;
}

static bool all_end(const struct strlist *names, const char *end)
{
    auto_free char *packed = xasprintf("%s.gz", end);
    for (size_t i = 0; i < names->n; i++)
        if (!str_ends(names->items[i], end) && !str_ends(names->items[i], packed))
            return false;
    return names->n > 0;
}

/* Files of csv and jsonl have the same columns: the data set becomes one of the kind that the names say. */
static void put_kind(json_t *data, const struct strlist *names)
{
    const char *kind = is_format(data, "jsonl") && all_end(names, ".csv")   ? "csv"
                       : is_format(data, "csv") && all_end(names, ".jsonl") ? "jsonl"
                                                                            : NULL;
    if (kind == NULL)
        return;
    json_auto_t *other = json_pack("{s:s}", "format", kind);
    data_inherit(data, other);
    if (json_object_get(data, "sampleWeight") != NULL)
        json_object_set(other, "sampleWeight", json_object_get(data, "sampleWeight"));
    json_object_clear(data);
    json_object_update(data, other);
}

/* A manifest has texts in UTF-8 only. */
static int check_name(const char *file, struct err *e)
{
    json_auto_t *name = json_string(file);
    return name != NULL ? 0
                        : err_set(e, ERR_INPUT,
                                  "%s: the name of the file must be UTF-8; rename it, or name its directory", file);
}

static int put_files(json_t *data, const struct new_data *ask, struct err *e)
{
    if (ask->files->n == 0)
        return 0;
    for (size_t i = 0; i < ask->files->n; i++)
        if (check_name(ask->files->items[i], e) < 0)
            return -1;
    if (is_arrays(data) && ask->files->n > 1)
        return is_npz(data) ? err_set(e, ERR_INPUT, "the run's data are arrays of an npz file: name one such file")
                            : err_set(e, ERR_INPUT, "the run's data are arrays: name one file of features%s",
                                      ask->wants_labels ? " and --labels FILE" : "");
    if (is_npz(data)) { /* its arrays have the same names as in the run's file */
        json_object_set_new(data, "files", json_string(ask->files->items[0]));
        return 0;
    }
    if (is_arrays(data) && json_is_object(json_object_get(data, "features")))
        return err_set(e, ERR_INPUT,
                       "the run's features are a map of inputs: name the file of each with --data, such as "
                       "--data '{format: %s, features: {...}}'",
                       json_string_value(json_object_get(data, "format")));
    if (is_arrays(data)) {
        json_object_set_new(data, "features", json_string(ask->files->items[0]));
        json_object_del(data, "labels"); /* they belong to the other file */
        json_object_del(data, "sampleWeight");
        return 0;
    }
    if (is_files(data))
        return put_examples(data, ask, e);
    put_kind(data, ask->files);
    json_object_set_new(data, "files", list_of(ask->files));
    return 0;
}

/* The value of the run's data set, or of the flag that replaces it. */
static int put_array(json_t *data, const char *key, const char *flag, const char *name, struct err *e)
{
    if (name == NULL)
        return 0;
    if (!is_arrays(data))
        return err_set(e, ERR_INPUT, "%s is for idx, npy and npz; files of other formats contain the %ss", flag,
                       str_eq(key, "labels") ? "label" : "weight");
    if (check_name(name, e) < 0)
        return -1;
    json_object_set_new(data, key, json_string(name));
    return 0;
}

/* A name, or a list of them. */
static bool names_column(const json_t *names, const char *column)
{
    for (size_t i = 0; column != NULL && i < json_array_size(names); i++)
        if (str_eq(column, json_string_value(json_array_get(names, i))))
            return true;
    return column != NULL && str_eq(column, json_string_value(names));
}

static bool names_label(const json_t *data, const char *column)
{
    const json_t *label = json_object_get(data, "label"), *of_output;
    const char *output;
    if (label == NULL)
        return str_eq(column, "label"); /* tfrecord's own */
    json_object_foreach((json_t *)(uintptr_t)label, output, of_output)
    {
        if (names_column(of_output, column))
            return true;
    }
    return names_column(label, column);
}

static void without_column(json_t *data, bool (*named)(const json_t *data, const char *column))
{
    json_t *columns = json_object_get(data, "columns");
    for (size_t i = json_array_size(columns); i > 0; i--)
        if (named(data, json_string_value(json_object_get(json_array_get(columns, i - 1), "name"))))
            json_array_remove(columns, i - 1);
    if (columns != NULL && json_array_size(columns) == 0)
        json_object_del(data, "columns");
}

static bool names_weight(const json_t *data, const char *column)
{
    const char *weight = json_string_value(json_object_get(data, "sampleWeight"));
    return weight != NULL && column != NULL && str_eq(column, weight);
}

static void without_weight(json_t *data)
{
    without_column(data, names_weight);
    json_object_del(data, "sampleWeight");
}

/* Removes the label columns from the columns that are read. Of such files the same examples are read with and without.
 */
static void without_label(json_t *data)
{
    json_object_del(data, "labels");
    if (is_arrays(data) || is_files(data))
        return;
    without_column(data, names_label);
    json_object_set_new(data, "label", json_string(""));
}

int new_data_job(const json_t *doc, const struct new_data *ask, unsigned drop, json_t **ret, struct err *e)
{
    json_auto_t *copy = json_deep_copy(doc);
    json_t *data = NULL, *sets = json_at(copy, "spec.data");
    if (pattern(doc, ask, &data, e) < 0)
        return -1;
    json_object_set_new(sets, "validation", data);
    json_object_del(json_at(copy, "spec.fit"), "validationSplit");
    if (put_files(data, ask, e) < 0 || put_array(data, "labels", "--labels", ask->labels, e) < 0 ||
        put_array(data, "sampleWeight", "--sample-weight", ask->weights, e) < 0)
        return -1;
    if ((drop & DROP_LABEL) != 0)
        without_label(data);
    if ((drop & DROP_WEIGHT) != 0)
        without_weight(data);
    *ret = json_incref(copy);
    return 0;
}

/* ---- opening ---- */

static int open_as(const struct job *run, const struct model *m, const struct new_data *ask, unsigned drop,
                   const char *data_dir, const char *cache_dir, struct dataset **ret, struct err *e)
{
    json_auto_t *doc = NULL;
    AUTO(job) *job = NULL;
    AUTO(dataset) *d = NULL, *rest = NULL;
    struct err cause = { 0 };
    bool part = run->fit.validation_split > 0 && ask->data == NULL && ask->files->n == 0; /* of data.train */
    if (new_data_job(run->doc, ask, drop, &doc, e) < 0 || job_from_value(doc, run->name, &job, e) < 0)
        return -1;
    job->validation.images.mixed = part; /* as data.train was */
    if (dataset_open(&job->validation, data_dir, cache_dir, ask->columns, &d, e) < 0)
        return -1;
    if (dataset_bind(d, &job->validation, m, &cause) < 0)
        return err_set(e, cause.code, "the data do not match the run's model: %s", cause.msg);
    if (part && job_data_split(run, d, &rest, e) < 0)
        return -1;
    *ret = part ? TAKE(rest) : TAKE(d);
    return 0;
}

int new_data_open(const struct job *run, const struct model *m, const struct new_data *ask, const char *data_dir,
                  const char *cache_dir, struct dataset **ret, struct err *e)
{
    /* columns of labels and weights may exist, and must not be read as features */
    static const unsigned OTHERS[] = { 0, DROP_LABEL, DROP_WEIGHT };
    struct err ignored = { 0 };
    if (ask->wants_labels)
        return open_as(run, m, ask, 0, data_dir, cache_dir, ret, e);
    int rc = open_as(run, m, ask, DROP_LABEL | DROP_WEIGHT, data_dir, cache_dir, ret, e);
    for (size_t i = 0; rc < 0 && i < COUNT_OF(OTHERS); i++)
        rc = open_as(run, m, ask, OTHERS[i], data_dir, cache_dir, ret, &ignored);
    return rc;
}
