/* spec.data.train and spec.data.validation: the table, and checks of several fields together. */
#include <inttypes.h>
#include <string.h>

#include "job/data_parts.h"
#include "job/fields.h"
#include "job/image_spec.h"
#include "job/tfrecord_columns.h"

#define DEST(member) .offset = offsetof(struct data_spec, member), .size = sizeof(((struct data_spec *)NULL)->member)

static const char *const FORMATS[] = { "idx", "csv", "npy", "tfrecord", "npz", "cifar", "images" };
static const char *const CIFAR_LABELS[] = { "fine", "coarse" };
static const char *const LABEL_FALLBACK[COUNT_OF(FORMATS)] = {
    [DATA_CSV] = "-1", [DATA_TFRECORD] = "label", [DATA_CIFAR] = "fine", [DATA_IMAGES] = "directory"
}; /* of the others it is named, or there is none */
static const char *const IMAGE_COLORS[] = { "rgb", "rgba", "grayscale" };
static const char *const IMAGE_INTERPOLATIONS[] = { "bilinear", "nearest" };
static const char *const TEXT_ENCODINGS[] = { "auto", "utf-8", "utf-16", "latin-1" };
static const char *const CSV_TYPES[] = { "float", "int", "category", "date" };
static const char *const ENCODINGS[] = { "one_hot", "int" };
static const char *const TFRECORD_TYPES[] = { "float", "int64", "bytes", "image" };

const char *const DATA_MISSING_NAMES[] = {
    [MISSING_ERROR] = "error", [MISSING_DROP] = "drop", [MISSING_MEAN] = "mean", [MISSING_MODE] = "mode"
};
const char *const DATE_PART_NAMES[] = {
#define X(id, name) [id] = name,
    DATE_PARTS(X)
#undef X
};

static const struct field ROWS[] = {
    { "format", FIELD_CHOICE, DEST(format), .names = FORMATS, .nnames = COUNT_OF(FORMATS),
      .nworking = COUNT_OF(FORMATS), .required = true,
      .help = "All but images may be compressed with gzip, which is detected by content." },
    { "features", FIELD_OWN, .type_text = "path or name, or a map of them",
      .help = "idx, npy: the file of examples; npz: the name of their array, such as `x_train`. Paths are relative to "
              "the data folder. For a model with several inputs: a map, such as `{image: x.npy, meta: m.npy}`." },
    { "labels", FIELD_OWN, .type_text = "path or name, or a map of them",
      .help = "idx, npy: the file of labels; npz: the name of their array. For a model with several outputs: a map." },
    { "files", FIELD_OWN, .type_text = "path or list of paths",
      .help = "cifar, csv, tfrecord: the files, in this order, with the wildcards `*` and `?`. npz: one archive of "
              "arrays. images: files without labels, instead of `directory`." },
    { "directory", FIELD_STRING, DEST(images.directory),
      .help = "images: the directory that has a directory of PNG and JPEG files for each class, as in Keras's "
              "`image_dataset_from_directory`." },
    { "imageSize", FIELD_OWN, .type_text = "[height, width]", .fallback_text = "`[256, 256]`",
      .help = "images: the size to which each image is resized." },
    { "colorMode", FIELD_CHOICE, DEST(images.color), .names = IMAGE_COLORS, .nnames = COUNT_OF(IMAGE_COLORS),
      .nworking = COUNT_OF(IMAGE_COLORS), .fallback = "rgb",
      .help = "images: the channels of an example, 3, 4 or 1; images of other channels are converted." },
    { "interpolation", FIELD_CHOICE, DEST(images.interpolation), .names = IMAGE_INTERPOLATIONS,
      .nnames = COUNT_OF(IMAGE_INTERPOLATIONS), .nworking = COUNT_OF(IMAGE_INTERPOLATIONS), .fallback = "bilinear",
      .help = "images, tfrecord: how images are resized." },
    { "cropToAspectRatio", FIELD_BOOL, DEST(images.crop_to_aspect_ratio), .fallback = "false",
      .help = "images, tfrecord: cut off what does not have the form of `imageSize`, or of the column's "
              "`shape`, at both ends, instead of distorting it." },
    { "classNames", FIELD_OWN, .type_text = "list of names", .fallback_text = "the directories, by name",
      .help = "images: the directories of the classes 0, 1, ..." },
    { "encoding", FIELD_CHOICE, DEST(encoding), .names = TEXT_ENCODINGS, .nnames = COUNT_OF(TEXT_ENCODINGS),
      .nworking = COUNT_OF(TEXT_ENCODINGS), .fallback = "auto",
      .help =
          "csv: the encoding of the text. auto: utf-16 if the file begins like it, else utf-8 if all of it is valid "
          "UTF-8, else latin-1, which means Windows-1252." },
    { "header", FIELD_BOOL, DEST(header), .fallback = "true", .help = "csv: the first line names the columns." },
    { "delimiter", FIELD_OWN, .type_text = "one character", .fallback_text = "`,`",
      .help = "csv: the separator of columns." },
    { "decimal", FIELD_OWN, .type_text = "one character", .fallback_text = "`.`",
      .help = "csv: the decimal point of numbers, such as `,` in `0,5`." },
    { "thousands", FIELD_OWN, .type_text = "one character", .fallback_text = "none",
      .help = "csv: the separator of thousands in numbers, such as `,` in `1,000`." },
    { "skipRows", FIELD_INT, DEST(skip_rows), .min = 0, .max = INT32_MAX, .fallback = "0",
      .help = "csv: the number of lines before the header that are skipped in each file." },
    { "naValues", FIELD_OWN, .type_text = "text or list of texts",
      .fallback_text = "those of pandas, such as `NA`, `N/A`, `nan`, `NULL` and `None`, and `?`",
      .help = "csv: what stands for a missing value, besides an empty field. A list replaces the default." },
    { "missing", FIELD_CHOICE, DEST(missing), .names = DATA_MISSING_NAMES, .nnames = MISSING_COUNT,
      .nworking = MISSING_COUNT, .fallback = "error",
      .help =
          "csv: an example that lacks a value in a column without `default` is an error, is left out (`drop`), or "
          "gets the `mean` or the most frequent value (`mode`) of the column in `data.train`. A column can have its "
          "own `missing`." },
    { "columns", FIELD_LIST, DEST(columns), .type_text = "list of columns", .fallback_text = "all columns, as numbers",
      .help = "The feature columns, in this order. csv: `{name: age, type: float}`; types are float, int, category "
              "(with a `vocabulary`, a list or `auto`, and `encoding`: `one_hot`, a number 0 or 1 for each word, or "
              "`int`, the word's "
              "number; with `numOovIndices: 1` other words count as the first one, 0) and date (with `parts` and "
              "`format`). tfrecord: `{name: image, type: float, shape: [28, 28]}`; "
              "types are float, int64, bytes, and image (PNG or JPEG). "
              "`default` replaces a missing value." },
    { "dropColumns", FIELD_LIST, DEST(drop_columns), .type_text = "list of names",
      .help = "csv: all columns except these are features, in the order of the file; `columns` then only describes "
              "them." },
    { "inputs", FIELD_OWN, .type_text = "map of names or lists of names",
      .fallback_text = "each input is the column of its name",
      .help = "csv, tfrecord: the columns of each input of a model with several, such as `{wide: [age], deep: [age, "
              "hours]}`." },
    { "label", FIELD_OWN, .type_text = "name or number, a list, or a map of them",
      .fallback_text = "the last column; tfrecord: `label`; cifar: `fine`; images: the directories",
      .help =
          "csv: the column of labels, by name or by number (from 0; -1 is the last). tfrecord: the feature's name. "
          "cifar: `fine` or `coarse`, which only CIFAR-100 has. images: only `\"\"`, for no labels. "
          "With a list, such as `[price, rent]`, the label of an example is all these numbers, in this order. For a "
          "model with several outputs: a map, such as `{price: price, kind: species}`, or the columns with the "
          "outputs' names." },
    { "sampleWeight", FIELD_OWN, .type_text = "name, number or path",
      .help = "Keras's `sample_weight`: how much each example counts in the loss and in `compile.weightedMetrics`. "
              "csv: a column, by name or by number; tfrecord: a feature, one number, that `columns` lists; idx, npy: a "
              "file with a number for each example; npz: an array of the file. 0 or more." },
    { "maxUnpackedBytes", FIELD_INT, DEST(max_unpacked), .min = 1, .max = INT64_MAX,
      .fallback_text = "the larger of 100 times its size and 256 MiB",
      .help = "Maximum decompressed size of a file, or of an array of an npz file, in the cache folder." },
    { "shuffle", FIELD_BOOL, DEST(shuffle), .fallback_text = "true for train, false for validation",
      .help = "Use a new order in every epoch, determined by `fit.seed`." },
};
const struct field_table DATA_FIELDS = { "spec.data.train, spec.data.validation", "One data set.", ROWS, COUNT_OF(ROWS),
                                         data_spec_check };

/* ---- columns ---- */

static const struct field CSV_COLUMN[] = {
    { "name", FIELD_STRING, .required = true, .help = "" },
    { "type", FIELD_CHOICE, .names = CSV_TYPES, .nnames = COUNT_OF(CSV_TYPES), .nworking = COUNT_OF(CSV_TYPES),
      .help = "" },
    { "vocabulary", FIELD_ANY, .help = "" },
    { "encoding", FIELD_CHOICE, .names = ENCODINGS, .nnames = COUNT_OF(ENCODINGS), .nworking = COUNT_OF(ENCODINGS),
      .help = "" },
    { "numOovIndices", FIELD_INT, .min = 0, .max = 1, .help = "" },
    { "parts", FIELD_LIST, .help = "" },
    { "format", FIELD_STRING, .help = "" },
    { "default", FIELD_ANY, .help = "" },
    { "missing", FIELD_CHOICE, .names = DATA_MISSING_NAMES, .nnames = MISSING_COUNT, .nworking = MISSING_COUNT,
      .help = "" },
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

static bool is_label(const struct data_spec *d, const char *name)
{
    return name != NULL && map_get(&d->label_names, name) != NULL;
}

/* How a category feature becomes numbers; the label is always a class number. */
static int check_encoding(const struct data_spec *d, const struct node *column, bool category, struct err *e)
{
    static const char *const KEYS[] = { "encoding", "numOovIndices" };
    struct node name = node_get(column, "name");

    for (size_t i = 0; i < COUNT_OF(KEYS); i++) {
        struct node n = node_get(column, KEYS[i]);
        if (!node_present(&n))
            continue;
        if (!category)
            return node_error(&n, e, "only a column of type category has '%s'", KEYS[i]);
        if (is_label(d, json_string_value(name.v)))
            return node_error(&n, e, "the label is a class number; remove '%s'", KEYS[i]);
    }
    return 0;
}

static int check_missing(const struct data_spec *d, const struct node *column, struct err *e)
{
    struct node type = node_get(column, "type"), missing = node_get(column, "missing"),
                fallback = node_get(column, "default");
    const char *name = json_string_value(json_object_get(column->v, "name")), *rule = json_string_value(missing.v);
    if (node_present(&missing) && node_present(&fallback))
        return node_error(&missing, e, "a missing value is the column's 'default'; remove one of the two");
    bool learned = str_eq(rule, "mean") || str_eq(rule, "mode");
    if (learned && (is_label(d, name) || (name != NULL && str_eq(name, d->sample_weight))))
        return node_error(&missing, e, "a missing %s is not replaced; use error or drop",
                          is_label(d, name) ? "label" : "weight");
    if (str_eq(rule, "mean") && node_present(&type) && !str_eq(json_string_value(type.v), "float"))
        return node_error(&missing, e, "only a column of type float has a mean; use mode");
    return 0;
}

/* Words, or "auto": those of the data. */
static int check_vocabulary(const struct node *column, bool category, struct err *e)
{
    struct node vocabulary = node_get(column, "vocabulary");
    if (!category)
        return node_present(&vocabulary) ? node_error(&vocabulary, e, "only a column of type category has a vocabulary")
                                         : 0;
    if (str_eq(json_string_value(vocabulary.v), "auto"))
        return 0;
    if (node_present(&vocabulary) && !json_is_array(vocabulary.v))
        return node_error(&vocabulary, e, "must be a list of words, or auto");
    return node_size(&vocabulary) > 0
               ? 0
               : node_error(column, e, "a category needs its 'vocabulary', a list of its values, or auto");
}

/* A date has parts, and is neither a label nor a weight. */
static int check_date(const struct data_spec *d, const struct node *column, bool date, struct err *e)
{
    struct node parts = node_get(column, "parts"), format = node_get(column, "format");
    const char *name = json_string_value(json_object_get(column->v, "name"));
    size_t part;
    if (!date && (node_present(&parts) || node_present(&format)))
        return node_error(node_present(&parts) ? &parts : &format, e, "only a column of type date has '%s'",
                          node_present(&parts) ? "parts" : "format");
    if (date && is_label(d, name))
        return node_error(column, e, "the label must be numbers or words, not dates");
    if (node_present(&parts) && node_size(&parts) == 0)
        return node_error(&parts, e, "names no part of a date");
    for (size_t i = 0; i < node_size(&parts); i++) {
        struct node item = node_item(&parts, i);
        if (node_enum(&item, DATE_PART_NAMES, DATE_PART_COUNT, &part, e) < 0)
            return -1;
    }
    return 0;
}

static int check_columns(const struct data_spec *d, struct err *e)
{
    bool csv = d->format == DATA_CSV;

    for (size_t i = 0; i < node_size(&d->columns); i++) {
        struct node column = node_item(&d->columns, i), type = node_get(&column, "type");
        if (fields_read(csv ? &CSV_COLUMN_FIELDS : &TFRECORD_COLUMN_FIELDS, &column, NULL, e) < 0)
            return -1;
        bool category = csv && str_eq(json_string_value(type.v), "category");
        bool date = csv && str_eq(json_string_value(type.v), "date");
        if (check_vocabulary(&column, category, e) < 0)
            return -1;
        if (category && d->label.n > 1 && d->outputs.n == 0 &&
            is_label(d, json_string_value(json_object_get(column.v, "name"))))
            return node_error(&type, e,
                              "is one of several labels, which must be numbers; write numbers into the file, make it "
                              "the only label, or give it to an output of its own (label: {OUTPUT: COLUMN})");
        if (check_encoding(d, &column, category, e) < 0 || check_missing(d, &column, e) < 0 ||
            check_date(d, &column, date, e) < 0)
            return -1;
    }
    return d->format == DATA_TFRECORD ? tfrecord_columns_check(d, e) : 0;
}

static bool label_is_number(const struct data_spec *d)
{
    int64_t index;
    for (size_t i = 0; i < d->label.n; i++)
        if (str_i64(d->label.items[i], INT32_MIN, INT32_MAX, &index, NULL) == 0)
            return true;
    return false;
}

static size_t oov_of(const struct node *column)
{
    struct node oov = node_get(column, "numOovIndices");
    return (size_t)json_integer_value(oov.v);
}

/* Of a column, before a category has its encoding. */
static size_t numbers_of(const struct node *column)
{
    struct node vocabulary = node_get(column, "vocabulary"), encoding = node_get(column, "encoding"),
                type = node_get(column, "type"), parts = node_get(column, "parts");
    if (str_eq(json_string_value(encoding.v), "one_hot"))
        return node_size(&vocabulary) + oov_of(column);
    if (!str_eq(json_string_value(type.v), "date"))
        return 1;
    return node_present(&parts) ? node_size(&parts) : DATE_DEFAULT_PARTS;
}

int data_spec_check_encodings(const struct data_spec *d, struct err *e)
{
    const struct node *columns = &d->columns;
    struct node first = { .v = NULL };
    size_t words = 0, as_int = 0;
    bool learned = false; /* the number of words is not known yet */

    /* the column of a number, and those that are not named, are known once the file is open: lib/data/columns.c checks
     * those */
    if (d->format != DATA_CSV || d->categories_are_int || label_is_number(d) || node_present(&d->drop_columns))
        return 0;
    for (size_t i = 0; i < node_size(columns); i++) {
        struct node column = node_item(columns, i), vocabulary = node_get(&column, "vocabulary"),
                    encoding = node_get(&column, "encoding");
        const char *name = json_string_value(json_object_get(column.v, "name"));
        if (is_label(d, name) || (name != NULL && str_eq(name, d->sample_weight)))
            continue;
        as_int += numbers_of(&column);
        learned = learned || json_is_string(vocabulary.v);
        if (!node_present(&vocabulary) || node_present(&encoding))
            continue;
        words += node_size(&vocabulary) + oov_of(&column) - 1;
        first = first.v == NULL ? column : first;
    }
    if (first.v == NULL)
        return 0;
    if (learned || d->inputs.n > 0)
        return node_error(&first, e,
                          "is a category feature and needs an encoding: 'encoding: one_hot' or 'encoding: int'");
    return node_error(&first, e,
                      "is a category feature and needs an encoding: 'encoding: one_hot' (model input [%zu]) or "
                      "'encoding: int' ([%zu])",
                      as_int + words, as_int);
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

/* One character that is not in `forbidden`; fallback NULL: none. */
static int read_character(const struct node *n, const char *key, const char *fallback, const char *forbidden, char *ret,
                          struct err *e)
{
    const char *text;
    struct node value = node_get(n, key);
    if (!node_present(&value) && fallback == NULL)
        return 0;
    if (node_str_or(n, key, fallback, &text, e) < 0)
        return -1;
    if (strlen(text) != 1 || strchr(forbidden, *text) != NULL)
        return node_error(&value, e, "must be one character, such as ',' or %s",
                          str_eq(key, "delimiter") ? "\"\\t\"" : "'.'");
    *ret = *text;
    return 0;
}

static int read_dialect(struct data_spec *d, const struct node *n, struct err *e)
{
    static const char OF_NUMBERS[] = "0123456789+-eE\"\r\n\t";
    struct node thousands = node_get(n, "thousands");
    if (read_character(n, "delimiter", ",", "\"\r\n", &d->delimiter, e) < 0 ||
        read_character(n, "decimal", ".", OF_NUMBERS, &d->decimal, e) < 0 ||
        read_character(n, "thousands", NULL, OF_NUMBERS, &d->thousands, e) < 0)
        return -1;
    if (d->thousands == d->decimal)
        return node_error(&thousands, e, "'%c' is the decimal point, too; set 'decimal' to another character",
                          d->thousands);
    return 0;
}

/* Of pandas (pandas/_libs/parsers.pyx, STR_NA_VALUES), and the sign of the UCI repository's files. */
static const char *const NA_VALUES[] = { "#N/A",   "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN", "-nan",
                                         "1.#IND", "1.#QNAN",  "<NA>", "N/A",     "NA",       "NULL", "NaN",
                                         "None",   "n/a",      "nan",  "null",    "?" };

static int add_na_value(struct data_spec *d, const struct node *n, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    const char *word;
    if (n->v != NULL && !json_is_string(n->v) && !json_is_array(n->v) && !json_is_object(n->v)) {
        json_emit(n->v, &text); /* numbers, truth values and null are texts here */
        word = text.data;
    } else if (node_str(n, &word, e) < 0) {
        return -1;
    }
    if (strlen(word) > NA_VALUE_MAX)
        return node_error(n, e, "has %zu bytes, at most %d", strlen(word), NA_VALUE_MAX);
    strlist_add(&d->na_values, word);
    return 0;
}

static int read_na_values(struct data_spec *d, const struct node *n, struct err *e)
{
    struct node values = node_get(n, "naValues");
    for (size_t i = 0; !node_present(&values) && i < COUNT_OF(NA_VALUES); i++)
        strlist_add(&d->na_values, NA_VALUES[i]);
    if (!node_present(&values))
        return 0;
    d->own_na_values = true;
    if (!json_is_array(values.v))
        return add_na_value(d, &values, e);
    if (node_size(&values) > NA_VALUES_MAX)
        return node_error(&values, e, "has %zu texts, at most %d", node_size(&values), NA_VALUES_MAX);
    for (size_t i = 0; i < node_size(&values); i++) {
        struct node item = node_item(&values, i);
        if (add_na_value(d, &item, e) < 0)
            return -1;
    }
    return 0;
}

static void put_label(struct data_spec *d, const char *name)
{
    strlist_add(&d->label, name);
    map_put(&d->label_names, name, d);
}

/* A name, or the number of a column. */
static int add_label(struct data_spec *d, const struct node *n, struct err *e)
{
    char text[COLUMN_NUMBER_MAX];
    const char *name;
    if (data_parts_column(n, text, &name, e) < 0)
        return -1;
    if (is_label(d, name))
        return node_error(n, e, "label '%s' is named twice", name);
    if (name[0] != '\0')
        put_label(d, name);
    return 0;
}

/* A file or array, or a map of them. */
static int read_array_names(const struct node *n, const char *key, const char **ret, struct data_parts *ret_parts,
                            struct err *e)
{
    struct node value = node_get(n, key);
    if (!node_present(&value))
        return 0;
    if (json_is_object(value.v))
        return data_parts_read(ret_parts, &value, false, e);
    if (node_str(&value, ret, e) < 0)
        return -1;
    return (*ret)[0] != '\0' ? 0 : node_error(&value, e, "is empty");
}

/* A map of outputs: all their columns are labels, in its order. */
static int read_label_map(struct data_spec *d, const struct node *label, struct err *e)
{
    if (data_parts_read(&d->outputs, label, true, e) < 0)
        return -1;
    for (size_t i = 0; i < d->outputs.n; i++) {
        const struct data_part *p = &d->outputs.v[i];
        for (size_t k = 0; k < p->from.n; k++) {
            if (is_label(d, p->from.items[k])) {
                struct node item = node_get(label, p->name);
                return node_error(&item, e, "label '%s' is named twice", p->from.items[k]);
            }
            put_label(d, p->from.items[k]);
        }
    }
    return 0;
}

static int read_label(struct data_spec *d, const struct node *n, struct err *e)
{
    struct node label = node_get(n, "label");
    const char *fallback = LABEL_FALLBACK[d->format];
    size_t which;

    if (!node_present(&label) && fallback != NULL && !(d->format == DATA_IMAGES && d->files.n > 0))
        put_label(d, fallback);
    if (!node_present(&label))
        return 0;
    if (d->format == DATA_CIFAR && !str_eq(json_string_value(label.v), "") &&
        node_enum(&label, CIFAR_LABELS, COUNT_OF(CIFAR_LABELS), &which, e) < 0)
        return -1;
    if (json_is_object(label.v))
        return read_label_map(d, &label, e);
    if (!json_is_array(label.v))
        return add_label(d, &label, e);
    for (size_t i = 0; i < node_size(&label); i++) {
        struct node item = node_item(&label, i);
        if (add_label(d, &item, e) < 0)
            return -1;
        if (d->label.n != i + 1)
            return node_error(&item, e, "is empty; a list names columns");
    }
    return d->label.n > 0 ? 0 : node_error(&label, e, "names no column; for data without labels write label: \"\"");
}

static int read_sample_weight(struct data_spec *d, const struct node *n, struct err *e)
{
    struct node weight = node_get(n, "sampleWeight");
    const char *name;

    if (!node_present(&weight))
        return 0;
    if (json_is_integer(weight.v) && d->format == DATA_CSV) {
        d->sample_weight = xasprintf("%" PRId64, (int64_t)json_integer_value(weight.v));
        return 0;
    }
    if (node_str(&weight, &name, e) < 0)
        return -1;
    if (name[0] == '\0')
        return node_error(&weight, e, "is empty");
    if (is_label(d, name))
        return node_error(&weight, e, "'%.60s' is the label already", name);
    d->sample_weight = xstrdup(name);
    return 0;
}

/* ---- which fields go with which format ---- */

static const struct {
    const char *key;
    unsigned formats; /* bit set of enum data_format */
} BELONGS[] = {
    { "features", 1u << DATA_IDX | 1u << DATA_NPY | 1u << DATA_NPZ },
    { "labels", 1u << DATA_IDX | 1u << DATA_NPY | 1u << DATA_NPZ },
    { "files", 1u << DATA_CIFAR | 1u << DATA_CSV | 1u << DATA_TFRECORD | 1u << DATA_NPZ | 1u << DATA_IMAGES },
    { "directory", 1u << DATA_IMAGES },
    { "imageSize", 1u << DATA_IMAGES },
    { "colorMode", 1u << DATA_IMAGES },
    { "interpolation", 1u << DATA_IMAGES | 1u << DATA_TFRECORD },
    { "cropToAspectRatio", 1u << DATA_IMAGES | 1u << DATA_TFRECORD },
    { "classNames", 1u << DATA_IMAGES },
    { "encoding", 1u << DATA_CSV },
    { "header", 1u << DATA_CSV },
    { "delimiter", 1u << DATA_CSV },
    { "decimal", 1u << DATA_CSV },
    { "thousands", 1u << DATA_CSV },
    { "skipRows", 1u << DATA_CSV },
    { "naValues", 1u << DATA_CSV },
    { "missing", 1u << DATA_CSV },
    { "columns", 1u << DATA_CSV | 1u << DATA_TFRECORD },
    { "dropColumns", 1u << DATA_CSV },
    { "label", 1u << DATA_CIFAR | 1u << DATA_CSV | 1u << DATA_TFRECORD | 1u << DATA_IMAGES },
    { "inputs", 1u << DATA_CSV | 1u << DATA_TFRECORD },
    { "sampleWeight", 1u << DATA_IDX | 1u << DATA_NPY | 1u << DATA_NPZ | 1u << DATA_CSV | 1u << DATA_TFRECORD },
};

static bool takes(const struct data_spec *d, const char *key)
{
    size_t i = 0;
    while (!str_eq(BELONGS[i].key, key))
        i++;
    return (BELONGS[i].formats >> d->format & 1) != 0;
}

static int check_belongs(const struct data_spec *d, const struct node *n, struct err *e)
{
    for (size_t i = 0; i < COUNT_OF(BELONGS); i++) {
        struct node value = node_get(n, BELONGS[i].key);
        if (node_present(&value) && (BELONGS[i].formats >> d->format & 1) == 0)
            return node_key_error(n, BELONGS[i].key, e, "'%s' does not go with format %s%s", BELONGS[i].key,
                                  FORMATS[d->format],
                                  str_eq(BELONGS[i].key, "files")    ? "; its files are 'features' and 'labels'"
                                  : str_eq(BELONGS[i].key, "inputs") ? "; its inputs are a map in 'features'"
                                                                     : "");
    }
    return 0;
}

int data_spec_check(void *base, const struct node *n, struct err *e)
{
    struct data_spec *d = base;
    bool by_files = takes(d, "files"), by_features = takes(d, "features");

    d->present = true;
    d->node = *n;
    if (check_belongs(d, n, e) < 0)
        return -1;
    if (by_files && d->format != DATA_IMAGES && !json_object_get(n->v, "files"))
        return node_error(n, e, "'files' is missing");
    struct node inputs = node_get(n, "inputs");
    if (read_array_names(n, "features", &d->features, &d->inputs, e) < 0 ||
        read_array_names(n, "labels", &d->labels, &d->outputs, e) < 0 ||
        (node_present(&inputs) && data_parts_read(&d->inputs, &inputs, true, e) < 0))
        return -1;
    if (by_features && d->features == NULL && d->inputs.n == 0)
        return node_error(n, e, "'features' is missing%s",
                          by_files ? ": the name of an array in the file, such as x_train" : "");
    if (d->format == DATA_TFRECORD && node_size(&d->columns) == 0)
        return node_error(n, e, "'columns' is missing: which features of a record are read, and their shapes");
    if (read_files(d, n, e) < 0 || read_dialect(d, n, e) < 0 || read_na_values(d, n, e) < 0 ||
        read_label(d, n, e) < 0 || read_sample_weight(d, n, e) < 0)
        return -1;
    if (d->format == DATA_IMAGES && image_spec_read(d, n, e) < 0)
        return -1;
    return check_columns(d, e);
}

void data_spec_fini(struct data_spec *d)
{
    strlist_fini(&d->files);
    strlist_fini(&d->images.class_names);
    strlist_fini(&d->na_values);
    strlist_fini(&d->label);
    map_fini(&d->label_names);
    free(d->sample_weight);
    data_parts_fini(&d->inputs);
    data_parts_fini(&d->outputs);
}
