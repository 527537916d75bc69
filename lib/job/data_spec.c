/* spec.data.train and spec.data.validation: the table, and what only several fields together can tell. */
#include <inttypes.h>
#include <string.h>

#include "job/fields.h"

#define DEST(member) .offset = offsetof(struct data_spec, member), .size = sizeof(((struct data_spec *)NULL)->member)

static const char *const FORMATS[] = { "idx", "csv", "npy", "tfrecord" };
static const char *const CSV_TYPES[] = { "float", "int", "category" };
static const char *const TFRECORD_TYPES[] = { "float", "int64", "bytes" };

static const struct field ROWS[] = {
    { "format", FIELD_CHOICE, DEST(format), .names = FORMATS, .nnames = COUNT_OF(FORMATS),
      .nworking = COUNT_OF(FORMATS), .required = true,
      .help = "Any of them may be compressed with gzip; that is seen from the content." },
    { "features", FIELD_STRING, DEST(features), .type_text = "path",
      .help = "idx, npy: the file of examples. Paths are relative to the data folder." },
    { "labels", FIELD_STRING, DEST(labels), .type_text = "path", .help = "idx, npy: the file of labels." },
    { "files", FIELD_OWN, .type_text = "path or list of paths",
      .help = "csv, tfrecord: the files, in this order; `*` and `?` match names." },
    { "header", FIELD_BOOL, DEST(header), .fallback = "true", .help = "csv: the first line names the columns." },
    { "delimiter", FIELD_OWN, .type_text = "one character", .fallback_text = "`,`",
      .help = "csv: between two columns." },
    { "columns", FIELD_LIST, DEST(columns), .type_text = "list of columns", .fallback_text = "all columns, as numbers",
      .help = "Which columns are features, in this order. csv: `{name: age, type: float}`; types are float, int, "
              "category (with a `vocabulary`). tfrecord: `{name: image, type: float, shape: [28, 28]}`; types are "
              "float, int64, bytes. `default` is what a missing value counts as." },
    { "label", FIELD_OWN, .type_text = "name or number", .fallback_text = "the last column; tfrecord: `label`",
      .help = "csv: the column of labels, by name or by number (from 0; -1 is the last). tfrecord: the feature's "
              "name." },
    { "shuffle", FIELD_BOOL, DEST(shuffle), .fallback_text = "true for train, false for validation",
      .help = "A new order in every epoch, named by `fit.seed`." },
};
const struct field_table DATA_FIELDS = { "spec.data.train, spec.data.validation", "One data set.", ROWS,
                                         COUNT_OF(ROWS), data_spec_check };

/* ---- columns ---- */

static const struct field CSV_COLUMN[] = {
    { "name", FIELD_STRING, .required = true, .help = "" },
    { "type", FIELD_CHOICE, .names = CSV_TYPES, .nnames = COUNT_OF(CSV_TYPES), .nworking = COUNT_OF(CSV_TYPES),
      .help = "" },
    { "vocabulary", FIELD_LIST, .help = "" },
    { "default", FIELD_ANY, .help = "" },
};
static const struct field TFRECORD_COLUMN[] = {
    { "name", FIELD_STRING, .required = true, .help = "" },
    { "type", FIELD_CHOICE, .required = true, .names = TFRECORD_TYPES, .nnames = COUNT_OF(TFRECORD_TYPES),
      .nworking = COUNT_OF(TFRECORD_TYPES), .help = "" },
    { "shape", FIELD_LIST, .help = "" },
    { "default", FIELD_ANY, .help = "" },
};
static const struct field_table CSV_COLUMN_FIELDS = { "", "", CSV_COLUMN, COUNT_OF(CSV_COLUMN), .check = NULL };
static const struct field_table TFRECORD_COLUMN_FIELDS = { "", "", TFRECORD_COLUMN, COUNT_OF(TFRECORD_COLUMN),
                                                           .check = NULL };

static int check_columns(const struct data_spec *d, struct err *e)
{
    bool csv = d->format == DATA_CSV;

    for (size_t i = 0; i < node_size(&d->columns); i++) {
        struct node column = node_item(&d->columns, i), type = node_get(&column, "type");
        if (fields_read(csv ? &CSV_COLUMN_FIELDS : &TFRECORD_COLUMN_FIELDS, &column, NULL, e) < 0)
            return -1;
        struct node vocabulary = node_get(&column, "vocabulary");
        bool category = csv && json_is_string(type.v) && strcmp(json_string_value(type.v), "category") == 0;
        if (category && node_size(&vocabulary) == 0)
            return node_error(&column, e, "a category needs its 'vocabulary', a list of its values");
        if (!category && node_present(&vocabulary))
            return node_error(&vocabulary, e, "only a column of type category has a vocabulary");
    }
    return 0;
}

/* ---- values of more than one type ---- */

static int read_files(struct data_spec *d, const struct node *n, struct err *e)
{
    const char *path;
    struct node files = node_get(n, "files");

    if (!node_present(&files))
        return 0;
    if (!json_is_array(files.v)) {
        if (node_str(&files, &path, e) < 0)
            return -1;
        strlist_add(&d->files, path);
    }
    for (size_t i = 0; json_is_array(files.v) && i < node_size(&files); i++) {
        struct node item = node_item(&files, i);
        if (node_str(&item, &path, e) < 0)
            return -1;
        strlist_add(&d->files, path);
    }
    return d->files.n > 0 ? 0 : node_error(&files, e, "names no file");
}

static int read_delimiter(struct data_spec *d, const struct node *n, struct err *e)
{
    const char *text;
    struct node delimiter = node_get(n, "delimiter");

    if (node_str_or(n, "delimiter", ",", &text, e) < 0)
        return -1;
    if (strlen(text) != 1 || strchr("\"\r\n", *text) != NULL)
        return node_error(&delimiter, e, "must be one character, such as ',' or \"\\t\"");
    d->delimiter = *text;
    return 0;
}

static int read_label(struct data_spec *d, const struct node *n, struct err *e)
{
    struct node label = node_get(n, "label");

    if (json_is_integer(label.v)) {
        char text[32];
        str_fmt(text, sizeof(text), "%" PRId64, (int64_t)json_integer_value(label.v));
        strlist_add(&d->texts, text);
        d->label = d->texts.items[0];
        return 0;
    }
    const char *fallback = d->format == DATA_CSV ? "-1" : d->format == DATA_TFRECORD ? "label" : NULL;
    return node_str_or(n, "label", fallback, &d->label, e);
}

/* ---- which fields go with which format ---- */

static const struct {
    const char *key;
    unsigned formats; /* bit set of enum data_format */
} BELONGS[] = {
    { "features", 1u << DATA_IDX | 1u << DATA_NPY }, { "labels", 1u << DATA_IDX | 1u << DATA_NPY },
    { "files", 1u << DATA_CSV | 1u << DATA_TFRECORD }, { "header", 1u << DATA_CSV },
    { "delimiter", 1u << DATA_CSV }, { "columns", 1u << DATA_CSV | 1u << DATA_TFRECORD },
    { "label", 1u << DATA_CSV | 1u << DATA_TFRECORD },
};

static int check_belongs(const struct data_spec *d, const struct node *n, struct err *e)
{
    for (size_t i = 0; i < COUNT_OF(BELONGS); i++) {
        struct node value = node_get(n, BELONGS[i].key);
        if (node_present(&value) && (BELONGS[i].formats >> d->format & 1) == 0)
            return node_key_error(n, BELONGS[i].key, e, "'%s' does not go with format %s%s", BELONGS[i].key,
                                  FORMATS[d->format],
                                  strcmp(BELONGS[i].key, "files") == 0 ? "; its files are 'features' and 'labels'" : "");
    }
    return 0;
}

int data_spec_check(void *base, const struct node *n, struct err *e)
{
    struct data_spec *d = base;
    bool by_files = d->format == DATA_CSV || d->format == DATA_TFRECORD;

    d->present = true;
    d->node = *n;
    if (check_belongs(d, n, e) < 0)
        return -1;
    if (by_files ? !json_object_get(n->v, "files") : d->features == NULL)
        return node_error(n, e, "'%s' is missing", by_files ? "files" : "features");
    if (d->format == DATA_TFRECORD && node_size(&d->columns) == 0)
        return node_error(n, e, "'columns' is missing: which features of a record are read, and their shapes");
    if (read_files(d, n, e) < 0 || read_delimiter(d, n, e) < 0 || read_label(d, n, e) < 0)
        return -1;
    return check_columns(d, e);
}

void data_spec_fini(struct data_spec *d)
{
    strlist_fini(&d->files);
    strlist_fini(&d->texts);
}
