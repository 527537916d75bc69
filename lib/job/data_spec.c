/* spec.data.train and spec.data.validation: the table, and checks of several fields together. */
#include <inttypes.h>
#include <string.h>

#include "job/columns_check.h"
#include "job/data_parts.h"
#include "job/fields.h"
#include "job/image_spec.h"

#define DEST(member) .offset = offsetof(struct data_spec, member), .size = sizeof(((struct data_spec *)NULL)->member)

const char *const DATA_FORMAT_NAMES[] = { "idx", "csv", "npy", "tfrecord", "npz", "cifar", "images", "jsonl", "text" };
static const char *const CIFAR_LABELS[] = { "fine", "coarse" };
static const char *const LABEL_FALLBACK[DATA_FORMAT_COUNT] = {
    [DATA_CSV] = "-1",     [DATA_JSONL] = "label",      [DATA_TFRECORD] = "label",
    [DATA_CIFAR] = "fine", [DATA_IMAGES] = "directory", [DATA_TEXT] = "label",
}; /* of the others it is named, or there is none */
static const char *const IMAGE_COLORS[] = { "rgb", "rgba", "grayscale" };
static const char *const IMAGE_INTERPOLATIONS[] = { "bilinear", "nearest" };
static const char *const TEXT_ENCODINGS[] = { "auto", "utf-8", "utf-16", "latin-1" };

const char *const DATA_MISSING_NAMES[] = {
    [MISSING_ERROR] = "error", [MISSING_DROP] = "drop", [MISSING_MEAN] = "mean", [MISSING_MODE] = "mode"
};
const char *const DATE_PART_NAMES[] = {
#define X(id, name) [id] = name,
    DATE_PARTS(X)
#undef X
};

const char *const COLUMN_ENCODING_NAMES[] = {
#define X(id, name) [id] = name,
    COLUMN_ENCODINGS(X)
#undef X
};
const char *const TEXT_STANDARDIZE_NAMES[] = {
    [STANDARDIZE_LOWER_AND_STRIP_PUNCTUATION] = "lower_and_strip_punctuation",
    [STANDARDIZE_LOWER] = "lower",
    [STANDARDIZE_STRIP_PUNCTUATION] = "strip_punctuation",
    [STANDARDIZE_NONE] = "none",
};
const char *const TEXT_SPLIT_NAMES[] = { [SPLIT_WHITESPACE] = "whitespace", [SPLIT_CHARACTER] = "character" };

static const struct field ROWS[] = {
    { "format", FIELD_CHOICE, DEST(format), .names = DATA_FORMAT_NAMES, .nnames = DATA_FORMAT_COUNT,
      .nworking = DATA_FORMAT_COUNT, .required = true,
      .help = "All but images and text may be compressed with gzip, which is detected by content." },
    { "features", FIELD_OWN, .type_text = "path or name, or a map of them",
      .help = "idx, npy: the file of examples; npz: the name of their array, such as `x_train`. Paths are relative to "
              "the data folder. For a model with several inputs: a map, such as `{image: x.npy, meta: m.npy}`." },
    { "labels", FIELD_OWN, .type_text = "path or name, or a map of them",
      .help = "idx, npy: the file of labels; npz: the name of their array. For a model with several outputs: a map." },
    { "files", FIELD_OWN, .type_text = "path or list of paths",
      .help =
          "cifar, csv, jsonl, tfrecord: the files, in this order, with the wildcards `*` and `?`. npz: one archive of "
          "arrays. images, text: files without labels, instead of `directory`." },
    { "directory", FIELD_STRING, DEST(images.directory),
      .help = "images: the directory that has a directory of PNG and JPEG files for each class, as in Keras's "
              "`image_dataset_from_directory`. text: the same for .txt files, as in `text_dataset_from_directory`." },
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
      .help = "images, text: the directories of the classes 0, 1, ..." },
    { "encoding", FIELD_CHOICE, DEST(encoding), .names = TEXT_ENCODINGS, .nnames = COUNT_OF(TEXT_ENCODINGS),
      .nworking = COUNT_OF(TEXT_ENCODINGS), .fallback = "auto",
      .help = "csv, text: the encoding of the text. auto: utf-16 if the file begins like it, else utf-8 if all of it "
              "is valid "
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
      .help = "csv: what stands for a missing value, besides an empty field. A list replaces the default. jsonl: the "
              "same, besides `null`, an absent key and an empty text; default: nothing else." },
    { "missing", FIELD_CHOICE, DEST(missing), .names = DATA_MISSING_NAMES, .nnames = MISSING_COUNT,
      .nworking = MISSING_COUNT, .fallback = "error",
      .help =
          "csv, jsonl: an example that lacks a value in a column without `default` is an error, is left out (`drop`), "
          "or "
          "gets the `mean` or the most frequent value (`mode`) of the column in `data.train`. A column can have its "
          "own `missing`." },
    { "columns", FIELD_LIST, DEST(columns), .type_text = "list of columns", .fallback_text = "all columns, as numbers",
      .help = "The feature columns, in this order. csv and jsonl: `{name: age, type: float}`; types are float, int, "
              "category "
              "(with a `vocabulary`, a list or `auto`, and `encoding`: `one_hot`, a number 0 or 1 for each word, "
              "`tf_idf`, its weight in place of the 1, or `int`, the word's "
              "number; with `numOovIndices: 1` other words count as the first one, 0; with `numBins` instead of a "
              "vocabulary words are hashed, as by Keras's `Hashing`, also with its `salt`), date (with `parts` and "
              "`format`) and text (with a `vocabulary`, `outputSequenceLength` and `ngrams`, as Keras's "
              "`TextVectorization`; `idfWeights` are those of `encoding: tf_idf`). "
              "float and int with `binBoundaries` or `numBins`, and `encoding`, are ranges, as of Keras's "
              "`Discretization`. "
              "jsonl: `product.category` is a key of the object `product`, and `shape` describes a list of numbers. "
              "jsonl, tfrecord: with `outputSequenceLength` a list has any length, and is padded or cut to that many "
              "steps of the `shape`. "
              "tfrecord: `{name: image, type: float, shape: [28, 28]}`; "
              "types are float, int64, bytes, and image (PNG or JPEG), of `tf.train.Example` or "
              "`tf.train.SequenceExample`. "
              "`default` replaces a missing value. text: one column, `{name: text, type: text, ...}`." },
    { "dropColumns", FIELD_LIST, DEST(drop_columns), .type_text = "list of names",
      .help =
          "csv, jsonl: all columns except these are features, in the order of the file; `columns` then only describes "
          "them." },
    { "inputs", FIELD_OWN, .type_text = "map of names or lists of names",
      .fallback_text = "each input is the column of its name",
      .help =
          "csv, jsonl, tfrecord: the columns of each input of a model with several, such as `{wide: [age], deep: [age, "
          "hours]}`." },
    { "label", FIELD_OWN, .type_text = "name or number, a list, or a map of them",
      .fallback_text = "the last column; jsonl, tfrecord: `label`; cifar: `fine`; images, text: the directories",
      .help =
          "csv: the column of labels, by name or by number (from 0; -1 is the last). jsonl: the key. tfrecord: the "
          "feature's "
          "name. "
          "cifar: `fine` or `coarse`, which only CIFAR-100 has. images, text: only `\"\"`, for no labels. "
          "With a list, such as `[price, rent]`, the label of an example is all these numbers, in this order. For a "
          "model with several outputs: a map, such as `{price: price, kind: species}`, or the columns with the "
          "outputs' names." },
    { "sampleWeight", FIELD_OWN, .type_text = "name, number or path",
      .help = "Keras's `sample_weight`: how much each example counts in the loss and in `compile.weightedMetrics`. "
              "csv: a column, by name or by number; jsonl: a key; tfrecord: a feature, one number, that `columns` "
              "lists; idx, npy: a "
              "file with a number for each example; npz: an array of the file. 0 or more." },
    { "maxUnpackedBytes", FIELD_INT, DEST(max_unpacked), .min = 1, .max = INT64_MAX,
      .fallback_text = "the larger of 100 times its size and 256 MiB",
      .help = "Maximum decompressed size of a file, or of an array of an npz file, in the cache folder." },
    { "shuffle", FIELD_BOOL, DEST(shuffle), .fallback_text = "true for train, false for validation",
      .help = "Use a new order in every epoch, determined by `fit.seed`." },
};
const struct field_table DATA_FIELDS = { "spec.data.train, spec.data.validation", "One data set.", ROWS, COUNT_OF(ROWS),
                                         data_spec_check };

bool data_spec_has_label(const struct data_spec *d, const char *name)
{
    return name != NULL && map_get(&d->label_names, name) != NULL;
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
    for (size_t i = 0;
         !node_present(&values) && d->format != DATA_JSONL && d->format != DATA_TEXT && i < COUNT_OF(NA_VALUES); i++)
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
    if (json_is_integer(n->v) && d->format == DATA_JSONL)
        return node_error(n, e, "must be the name of a key: the values of a JSON object have no places");
    if (data_parts_column(n, text, &name, e) < 0)
        return -1;
    if (data_spec_has_label(d, name))
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
            if (data_spec_has_label(d, p->from.items[k])) {
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

    if (!node_present(&label) && fallback != NULL && !(data_has_classes(d->format) && d->files.n > 0))
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
    if (data_spec_has_label(d, name))
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
    { "files", 1u << DATA_CIFAR | 1u << DATA_CSV | 1u << DATA_JSONL | 1u << DATA_TFRECORD | 1u << DATA_NPZ |
                   1u << DATA_IMAGES | 1u << DATA_TEXT },
    { "directory", 1u << DATA_IMAGES | 1u << DATA_TEXT },
    { "imageSize", 1u << DATA_IMAGES },
    { "colorMode", 1u << DATA_IMAGES },
    { "interpolation", 1u << DATA_IMAGES | 1u << DATA_TFRECORD },
    { "cropToAspectRatio", 1u << DATA_IMAGES | 1u << DATA_TFRECORD },
    { "classNames", 1u << DATA_IMAGES | 1u << DATA_TEXT },
    { "encoding", 1u << DATA_CSV | 1u << DATA_TEXT },
    { "header", 1u << DATA_CSV },
    { "delimiter", 1u << DATA_CSV },
    { "decimal", 1u << DATA_CSV },
    { "thousands", 1u << DATA_CSV },
    { "skipRows", 1u << DATA_CSV },
    { "naValues", 1u << DATA_CSV | 1u << DATA_JSONL },
    { "missing", 1u << DATA_CSV | 1u << DATA_JSONL },
    { "columns", 1u << DATA_CSV | 1u << DATA_JSONL | 1u << DATA_TFRECORD | 1u << DATA_TEXT },
    { "dropColumns", 1u << DATA_CSV | 1u << DATA_JSONL },
    { "label", 1u << DATA_CIFAR | 1u << DATA_CSV | 1u << DATA_JSONL | 1u << DATA_TFRECORD | 1u << DATA_IMAGES |
                   1u << DATA_TEXT },
    { "inputs", 1u << DATA_CSV | 1u << DATA_JSONL | 1u << DATA_TFRECORD | 1u << DATA_TEXT },
    { "sampleWeight",
      1u << DATA_IDX | 1u << DATA_NPY | 1u << DATA_NPZ | 1u << DATA_CSV | 1u << DATA_JSONL | 1u << DATA_TFRECORD },
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
                                  DATA_FORMAT_NAMES[d->format],
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
    if (by_files && !data_has_classes(d->format) && !json_object_get(n->v, "files"))
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
    if (data_has_classes(d->format) && image_spec_read(d, n, e) < 0)
        return -1;
    if (columns_check(d, e) < 0)
        return -1;
    d->sound = true;
    return 0;
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
