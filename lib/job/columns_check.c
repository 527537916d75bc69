/* The rows of a column of csv and tfrecord, and the checks of several fields of one together. */
#include "job/columns_check.h"

#include "job/fields.h"
#include "job/tfrecord_columns.h"

static const char *const CSV_TYPES[] = { "float", "int", "category", "date" };
static const char *const ENCODINGS[] = { "one_hot", "int" };
static const char *const TFRECORD_TYPES[] = { "float", "int64", "bytes", "image" };

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
        if (data_spec_has_label(d, json_string_value(name.v)))
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
    if (learned && (data_spec_has_label(d, name) || (name != NULL && str_eq(name, d->sample_weight))))
        return node_error(&missing, e, "a missing %s is not replaced; use error or drop",
                          data_spec_has_label(d, name) ? "label" : "weight");
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
    if (date && data_spec_has_label(d, name))
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

int columns_check(const struct data_spec *d, struct err *e)
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
            data_spec_has_label(d, json_string_value(json_object_get(column.v, "name"))))
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

int columns_check_encodings(const struct data_spec *d, struct err *e)
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
        if (data_spec_has_label(d, name) || (name != NULL && str_eq(name, d->sample_weight)))
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
