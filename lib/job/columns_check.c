/* The rows of a column of csv and tfrecord, and the checks of several fields of one together. */
#include "job/columns_check.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "job/fields.h"
#include "job/tfrecord_columns.h"

enum csv_type { CSV_FLOAT, CSV_INT, CSV_CATEGORY, CSV_DATE, CSV_TEXT };
static const char *const CSV_TYPES[] = { "float", "int", "category", "date", "text" };
static const char *const TFRECORD_TYPES[] = { "float", "int64", "bytes", "image" };

static const struct field CSV_COLUMN[] = {
    { "name", FIELD_STRING, .required = true, .help = "" },
    { "type", FIELD_CHOICE, .names = CSV_TYPES, .nnames = COUNT_OF(CSV_TYPES), .nworking = COUNT_OF(CSV_TYPES),
      .help = "" },
    { "vocabulary", FIELD_ANY, .help = "" },
    { "maxTokens", FIELD_INT, .min = MAX_TOKENS_MIN, .max = VOCABULARY_LEARNED_MAX + 2, .help = "" },
    { "idfWeights", FIELD_LIST, .help = "" },
    { "encoding", FIELD_CHOICE, .names = COLUMN_ENCODING_NAMES, .nnames = COLUMN_ENCODING_COUNT,
      .nworking = COLUMN_ENCODING_COUNT, .help = "" },
    { "numOovIndices", FIELD_INT, .min = 0, .max = 1, .help = "" },
    { "numBins", FIELD_INT, .min = 1, .max = HASH_BINS_MAX, .help = "" },
    { "salt", FIELD_ANY, .help = "" },
    { "binBoundaries", FIELD_LIST, .help = "" },
    { "outputSequenceLength", FIELD_INT, .min = 1, .max = TEXT_LENGTH_MAX, .help = "" },
    { "standardize", FIELD_CHOICE, .names = TEXT_STANDARDIZE_NAMES, .nnames = STANDARDIZE_COUNT,
      .nworking = STANDARDIZE_COUNT, .help = "" },
    { "split", FIELD_CHOICE, .names = TEXT_SPLIT_NAMES, .nnames = SPLIT_COUNT, .nworking = SPLIT_COUNT, .help = "" },
    { "ngrams", FIELD_ANY, .help = "" },
    { "shape", FIELD_LIST, .help = "" },
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
    { "outputSequenceLength", FIELD_INT, .min = 1, .max = TEXT_LENGTH_MAX, .help = "" },
    { "default", FIELD_ANY, .help = "" },
};
static const struct field_table CSV_COLUMN_FIELDS = { "", "", CSV_COLUMN, COUNT_OF(CSV_COLUMN), .check = NULL };
static const struct field_table TFRECORD_COLUMN_FIELDS = { "", "", TFRECORD_COLUMN, COUNT_OF(TFRECORD_COLUMN),
                                                           .check = NULL };

/* A column while it is checked. */
struct checked_column {
    const struct data_spec *d;
    const struct node *n;
    enum csv_type type;
    const char *name;
    bool is_label, is_weight;
};

/* ---- which fields go with which type, and which encodings ---- */

#define NUMBERS (1u << CSV_FLOAT | 1u << CSV_INT)
static const struct {
    const char *key;
    unsigned types; /* bit set of enum csv_type */
    unsigned lists; /* jsonl: these, too */
} BELONGS[] = {
    { "vocabulary", 1u << CSV_CATEGORY | 1u << CSV_TEXT, 0 },
    { "maxTokens", 1u << CSV_CATEGORY | 1u << CSV_TEXT, 0 },
    { "idfWeights", 1u << CSV_CATEGORY | 1u << CSV_TEXT, 0 },
    { "encoding", NUMBERS | 1u << CSV_CATEGORY | 1u << CSV_TEXT, 0 },
    { "numBins", NUMBERS | 1u << CSV_CATEGORY, 0 },
    { "salt", 1u << CSV_CATEGORY, 0 },
    { "binBoundaries", NUMBERS, 0 },
    { "numOovIndices", 1u << CSV_CATEGORY, 0 },
    { "outputSequenceLength", 1u << CSV_TEXT, NUMBERS },
    { "standardize", 1u << CSV_TEXT, 0 },
    { "split", 1u << CSV_TEXT, 0 },
    { "ngrams", 1u << CSV_TEXT, 0 },
    { "shape", NUMBERS, 0 },
    { "parts", 1u << CSV_DATE, 0 },
    { "format", 1u << CSV_DATE, 0 },
};
static const unsigned ENCODINGS[COUNT_OF(CSV_TYPES)] = {
    [CSV_FLOAT] = 1u << COLUMN_INT_ENCODING | 1u << COLUMN_ONE_HOT,
    [CSV_INT] = 1u << COLUMN_INT_ENCODING | 1u << COLUMN_ONE_HOT,
    [CSV_CATEGORY] = 1u << COLUMN_INT_ENCODING | 1u << COLUMN_ONE_HOT | 1u << COLUMN_TF_IDF,
    [CSV_TEXT] = 1u << COLUMN_INT_ENCODING | 1u << COLUMN_MULTI_HOT | 1u << COLUMN_COUNT | 1u << COLUMN_TF_IDF,
};

/* "category or text" */
static void name_bits(unsigned bits, const char *const *names, size_t n, struct buf *ret)
{
    for (size_t i = 0; i < n; i++) {
        if ((bits >> i & 1) == 0)
            continue;
        bits &= ~(1u << i);
        buf_printf(ret, "%s%s", ret->len == 0 ? "" : bits == 0 ? " or " : ", ", names[i]);
    }
}

static int check_belongs(const struct checked_column *c, struct err *e)
{
    AUTO_FINI(buf) types = BUF_INIT;
    for (size_t i = 0; i < COUNT_OF(BELONGS); i++) {
        struct node value = node_get(c->n, BELONGS[i].key);
        unsigned allowed = BELONGS[i].types | (c->d->format == DATA_JSONL ? BELONGS[i].lists : 0);
        if (!node_present(&value) || (allowed >> c->type & 1) != 0)
            continue;
        name_bits(allowed, CSV_TYPES, COUNT_OF(CSV_TYPES), &types);
        return node_error(&value, e, "only a column of type %s has '%s'", types.data, BELONGS[i].key);
    }
    return 0;
}

static int check_encoding(const struct checked_column *c, struct err *e)
{
    AUTO_FINI(buf) names = BUF_INIT;
    struct node n = node_get(c->n, "encoding");
    size_t which;
    if (!node_present(&n))
        return 0;
    if (node_enum(&n, COLUMN_ENCODING_NAMES, COLUMN_ENCODING_COUNT, &which, e) < 0)
        return -1;
    if ((ENCODINGS[c->type] >> which & 1) != 0)
        return 0;
    name_bits(ENCODINGS[c->type], COLUMN_ENCODING_NAMES, COLUMN_ENCODING_COUNT, &names);
    return node_error(&n, e, "a column of type %s has the encoding %s", CSV_TYPES[c->type], names.data);
}

/* ---- labels, weights and missing values ---- */

static int check_label(const struct checked_column *c, struct err *e)
{
    static const char *const OF_FEATURES[] = { "encoding", "numOovIndices" };
    struct node type = node_get(c->n, "type");
    if (!c->is_label)
        return 0;
    if (c->type == CSV_DATE || c->type == CSV_TEXT)
        return node_error(c->n, e, "the label must be numbers or words, not %s",
                          c->type == CSV_DATE ? "dates" : "texts");
    if (c->type == CSV_CATEGORY && c->d->label.n > 1 && c->d->outputs.n == 0)
        return node_error(&type, e,
                          "is one of several labels, which must be numbers; write numbers into the file, make it the "
                          "only label, or give it to an output of its own (label: {OUTPUT: COLUMN})");
    for (size_t i = 0; i < COUNT_OF(OF_FEATURES); i++) {
        struct node value = node_get(c->n, OF_FEATURES[i]);
        if (node_present(&value))
            return node_error(&value, e, "the label is a class number; remove '%s'", OF_FEATURES[i]);
    }
    return 0;
}

static int check_missing(const struct checked_column *c, struct err *e)
{
    struct node type = node_get(c->n, "type"), missing = node_get(c->n, "missing"),
                fallback = node_get(c->n, "default");
    const char *rule = json_string_value(missing.v);
    bool learned = str_eq(rule, "mean") || str_eq(rule, "mode");
    if (node_present(&missing) && node_present(&fallback))
        return node_error(&missing, e, "a missing value is the column's 'default'; remove one of the two");
    if (learned && (c->is_label || c->is_weight))
        return node_error(&missing, e, "a missing %s is not replaced; use error or drop",
                          c->is_label ? "label" : "weight");
    if (learned && c->type == CSV_TEXT)
        return node_error(&missing, e, "a missing text has no %s; use default: \"\", error or drop", rule);
    if (str_eq(rule, "mean") && node_present(&type) && c->type != CSV_FLOAT)
        return node_error(&missing, e, "only a column of type float has a mean; use mode");
    return 0;
}

/* ---- hashed words, and numbers in ranges ---- */

static bool has_encoding(const struct node *column, enum column_encoding encoding)
{
    return str_eq(json_string_value(json_object_get(column->v, "encoding")), COLUMN_ENCODING_NAMES[encoding]);
}

static int check_salt(const struct checked_column *c, const struct node *bins, struct err *e)
{
    struct node salt = node_get(c->n, "salt");
    bool list = json_is_array(salt.v);
    if (!node_present(&salt))
        return 0;
    if (!node_present(bins))
        return node_error(&salt, e, "only hashed words have a salt; set 'numBins', or remove it");
    bool whole = list ? node_size(&salt) == 2 : json_is_integer(salt.v);
    for (size_t i = 0; i < node_size(&salt); i++)
        whole = whole && json_is_integer(node_item(&salt, i).v);
    return whole ? 0 : node_error(&salt, e, "must be an integer of 64 bits, or a list of two");
}

/* As of Keras's Hashing. */
static int check_hash(const struct checked_column *c, struct node *bins, struct err *e)
{
    static const char *const OF_VOCABULARIES[] = { "vocabulary", "numOovIndices", "maxTokens", "idfWeights" };
    struct node encoding = node_get(c->n, "encoding");
    bool one_hot = has_encoding(c->n, COLUMN_ONE_HOT);
    int64_t n;
    if (has_encoding(c->n, COLUMN_TF_IDF))
        return node_error(&encoding, e, "hashed words have the encoding int or one_hot");
    for (size_t i = 0; i < COUNT_OF(OF_VOCABULARIES); i++) {
        struct node value = node_get(c->n, OF_VOCABULARIES[i]);
        if (node_present(&value))
            return node_error(&value, e,
                              "with 'numBins' every word has the number of its hash; remove '%s' or 'numBins'",
                              OF_VOCABULARIES[i]);
    }
    if (node_i64(bins, 1, HASH_BINS_MAX, &n, e) < 0)
        return -1;
    return one_hot && n > HASH_ONE_HOT_MAX
               ? node_error(bins, e,
                            "would make %lld numbers of each example, at most %d; use encoding: int with an Embedding",
                            (long long)n, HASH_ONE_HOT_MAX)
               : 0;
}

static int check_boundaries(const struct node *bounds, struct err *e)
{
    double before = 0, v;
    if (node_size(bounds) == 0)
        return node_error(bounds, e, "names no boundary");
    if (node_size(bounds) > BIN_BOUNDARIES_MAX)
        return node_error(bounds, e, "has %zu boundaries, at most %d", node_size(bounds), BIN_BOUNDARIES_MAX);
    for (size_t i = 0; i < node_size(bounds); i++) {
        struct node item = node_item(bounds, i);
        if (node_f64(&item, &v, e) < 0)
            return -1;
        if (!(fabs(v) <= (double)FLT_MAX))
            return node_error(&item, e, "%g is too large for a float", v);
        if (i > 0 && v < before)
            return node_error(&item, e, "%g follows %g; boundaries are listed from the least to the largest", v,
                              before);
        before = v;
    }
    return 0;
}

/* As of Keras's Discretization, and of Hashing. */
static int check_bins(const struct checked_column *c, struct err *e)
{
    struct node bins = node_get(c->n, "numBins"), bounds = node_get(c->n, "binBoundaries"),
                encoding = node_get(c->n, "encoding");
    bool number = c->type == CSV_FLOAT || c->type == CSV_INT, ranges = node_present(&bounds);
    struct node *given = ranges ? &bounds : &bins;
    int64_t ignored;
    if (check_salt(c, &bins, e) < 0)
        return -1;
    if (!node_present(given))
        return number && node_present(&encoding) ? node_error(&encoding, e,
                                                              "only a column of type category or text has 'encoding', "
                                                              "and a number with 'numBins' or 'binBoundaries'")
                                                 : 0;
    if (c->is_label || c->is_weight)
        return node_error(given, e, "a %s is not %s; remove '%s'", c->is_label ? "label" : "weight",
                          number ? "put into ranges" : "hashed", ranges ? "binBoundaries" : "numBins");
    if (!number)
        return check_hash(c, &bins, e);
    if (ranges && node_present(&bins))
        return node_error(&bins, e, "the column has 'binBoundaries'; remove one of the two");
    return ranges ? check_boundaries(&bounds, e) : node_i64(&bins, 2, BINS_MAX, &ignored, e);
}

/* ---- words, dates and texts ---- */

static bool has_words(const struct checked_column *c)
{
    return c->type == CSV_CATEGORY || c->type == CSV_TEXT;
}

static int check_words(const struct checked_column *c, const struct node *vocabulary, struct err *e)
{
    if (node_present(vocabulary) && !json_is_array(vocabulary->v))
        return node_error(vocabulary, e, "must be a list of words, or auto");
    if (node_size(vocabulary) > 0)
        return 0;
    return node_error(c->n, e,
                      c->type == CSV_TEXT
                          ? "a text needs its 'vocabulary', auto or a list of its words"
                          : "a category needs its 'vocabulary', a list of its values, or auto; or 'numBins'");
}

static bool is_numbered_text(const struct checked_column *c)
{
    struct node encoding = node_get(c->n, "encoding");
    return c->type == CSV_TEXT && (!node_present(&encoding) ||
                                   str_eq(json_string_value(encoding.v), COLUMN_ENCODING_NAMES[COLUMN_INT_ENCODING]));
}

/* Of the numbers that it allows, one at least is that of a word. */
static int check_max_tokens(const struct checked_column *c, const struct node *max, struct err *e)
{
    struct node oov = node_get(c->n, "numOovIndices");
    int64_t n;
    if (!node_present(max))
        return 0;
    if (c->type == CSV_CATEGORY && json_integer_value(oov.v) == 0)
        return node_error(max, e, "leaves words out, which need a number: set numOovIndices: 1");
    if (node_i64(max, MAX_TOKENS_MIN, VOCABULARY_LEARNED_MAX + 2, &n, e) < 0)
        return -1;
    return is_numbered_text(c) && n == MAX_TOKENS_MIN
               ? node_error(max, e,
                            "leaves no number for a word: with encoding: int 0 is for what follows the text, and 1 for "
                            "other words; set 3 or more")
               : 0;
}

/* As of Keras: given with a list of words, one for each. */
static int check_weights(const struct checked_column *c, const struct node *vocabulary, struct err *e)
{
    struct node weights = node_get(c->n, "idfWeights"), encoding = node_get(c->n, "encoding");
    bool weighed = has_encoding(c->n, COLUMN_TF_IDF), learned = json_is_string(vocabulary->v);
    double v;
    if (node_present(&weights) && (!weighed || learned))
        return node_error(&weights, e,
                          weighed ? "are learned with vocabulary: auto; remove them"
                                  : "only encoding: tf_idf has weights; remove them");
    if (weighed && !learned && !node_present(&weights))
        return node_error(&encoding, e, "needs 'idfWeights', a number for each word, or vocabulary: auto");
    if (node_present(&weights) && node_size(&weights) != node_size(vocabulary))
        return node_error(&weights, e, "has %zu numbers, and the vocabulary %zu words", node_size(&weights),
                          node_size(vocabulary));
    for (size_t i = 0; i < node_size(&weights); i++) {
        struct node item = node_item(&weights, i);
        if (node_f64(&item, &v, e) < 0)
            return -1;
        if (!(fabs(v) <= (double)FLT_MAX))
            return node_error(&item, e, "%g is too large for a float", v);
    }
    return 0;
}

/* Words, or "auto": those of the data. */
static int check_vocabulary(const struct checked_column *c, struct err *e)
{
    struct node vocabulary = node_get(c->n, "vocabulary"), max = node_get(c->n, "maxTokens"),
                bins = node_get(c->n, "numBins");
    bool learned = str_eq(json_string_value(vocabulary.v), "auto");
    if (!has_words(c) || node_present(&bins))
        return 0;
    if (!learned && check_words(c, &vocabulary, e) < 0)
        return -1;
    if (!learned && node_present(&max))
        return node_error(&max, e, "limits what vocabulary: auto learns; remove it");
    return check_max_tokens(c, &max, e) < 0 ? -1 : check_weights(c, &vocabulary, e);
}

static int check_date(const struct checked_column *c, struct err *e)
{
    struct node parts = node_get(c->n, "parts");
    size_t part;
    if (node_present(&parts) && node_size(&parts) == 0)
        return node_error(&parts, e, "names no part of a date");
    for (size_t i = 0; i < node_size(&parts); i++) {
        struct node item = node_item(&parts, i);
        if (node_enum(&item, DATE_PART_NAMES, DATE_PART_COUNT, &part, e) < 0)
            return -1;
    }
    return 0;
}

/* As of Keras's TextVectorization; without a length twice. */
static int check_ngrams(const struct checked_column *c, struct err *e)
{
    struct node ngrams = node_get(c->n, "ngrams");
    unsigned seen = 0;
    int64_t n;
    if (!node_present(&ngrams))
        return 0;
    if (!json_is_integer(ngrams.v) && !json_is_array(ngrams.v))
        return node_error(&ngrams, e, "must be a number, such as 2 for words and pairs of words, or a list of numbers");
    if (json_is_array(ngrams.v) && node_size(&ngrams) == 0)
        return node_error(&ngrams, e, "names no length; remove it for words that stand alone");
    if (json_is_integer(ngrams.v) && node_i64(&ngrams, 1, NGRAM_MAX, &n, e) < 0)
        return -1;
    for (size_t i = 0; i < node_size(&ngrams); i++) {
        struct node item = node_item(&ngrams, i);
        if (node_i64(&item, 1, NGRAM_MAX, &n, e) < 0)
            return -1;
        if ((seen >> n & 1) != 0)
            return node_error(&item, e, "the length %lld is named twice", (long long)n);
        seen |= 1u << n;
    }
    return 0;
}

/* Only the numbers of tokens have a length. */
static int check_text(const struct checked_column *c, struct err *e)
{
    struct node length = node_get(c->n, "outputSequenceLength");
    bool numbers = is_numbered_text(c);
    if (c->type != CSV_TEXT || numbers == node_present(&length))
        return 0;
    if (!numbers)
        return node_error(&length, e, "only encoding: int has a length; remove it");
    return node_error(
        c->n, e, "a text needs its 'outputSequenceLength': longer texts are cut, shorter ones are filled up with 0");
}

/* A list of numbers of a JSON object. */
static int check_list(const struct checked_column *c, struct err *e)
{
    struct node shape = node_get(c->n, "shape"), missing = node_get(c->n, "missing"),
                length = node_get(c->n, "outputSequenceLength");
    const struct node *list = node_present(&shape) ? &shape : &length;
    const char *rule = json_string_value(missing.v);
    if (!node_present(list) || c->type == CSV_TEXT)
        return 0;
    if (c->d->format != DATA_JSONL)
        return node_error(&shape, e, "a field of csv is not a list; remove it, or name a column for each number");
    if (c->is_weight)
        return node_error(list, e, "the weight is one number, not a list; remove it");
    if (str_eq(rule, "mean") || str_eq(rule, "mode"))
        return node_error(&missing, e, "a missing list has no %s; use default, error or drop", rule);
    if (json_object_get(c->n->v, "numBins") != NULL || json_object_get(c->n->v, "binBoundaries") != NULL)
        return node_error(list, e, "the numbers of a list are not put into ranges; name a key for each number");
    return !node_present(&shape) || node_size(&shape) > 0
               ? 0
               : node_error(&shape, e, "is empty; remove it for a single number");
}

static int check_csv_column(const struct data_spec *d, const struct node *n, struct err *e)
{
    struct node type = node_get(n, "type"), name = node_get(n, "name");
    size_t which = CSV_FLOAT;
    if (node_present(&type) && node_enum(&type, CSV_TYPES, COUNT_OF(CSV_TYPES), &which, e) < 0)
        return -1;
    struct checked_column c = { .d = d, .n = n, .type = (enum csv_type)which, .name = json_string_value(name.v) };
    c.is_label = data_spec_has_label(d, c.name);
    c.is_weight = c.name != NULL && str_eq(c.name, d->sample_weight);
    if (check_belongs(&c, e) < 0 || check_bins(&c, e) < 0 || check_vocabulary(&c, e) < 0 || check_label(&c, e) < 0 ||
        check_encoding(&c, e) < 0 || check_missing(&c, e) < 0 || check_date(&c, e) < 0 || check_list(&c, e) < 0)
        return -1;
    return check_ngrams(&c, e) < 0 ? -1 : check_text(&c, e);
}

/* What files of texts have. */
static int check_only_text(const struct data_spec *d, struct err *e)
{
    struct node only = node_item(&d->columns, 0);
    const char *name = json_string_value(json_object_get(only.v, "name")),
               *type = json_string_value(json_object_get(only.v, "type"));
    if (node_size(&d->columns) == 1 && str_eq(name, "text") && str_eq(type, "text"))
        return 0;
    return node_error(node_present(&d->columns) ? &d->columns : &d->node, e,
                      "files of texts have one column; write columns: [{name: text, type: text, vocabulary: auto, "
                      "outputSequenceLength: 200}]");
}

int columns_check(const struct data_spec *d, struct err *e)
{
    bool csv = data_has_fields(d->format);
    for (size_t i = 0; i < node_size(&d->columns); i++) {
        struct node column = node_item(&d->columns, i);
        if (fields_read(csv ? &CSV_COLUMN_FIELDS : &TFRECORD_COLUMN_FIELDS, &column, NULL, e) < 0 ||
            (csv && check_csv_column(d, &column, e) < 0))
            return -1;
    }
    if (d->format == DATA_TEXT)
        return check_only_text(d, e);
    return d->format == DATA_TFRECORD ? tfrecord_columns_check(d, e) : 0;
}

/* ---- encodings ---- */

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

static bool is_text(const struct node *column)
{
    return str_eq(json_string_value(json_object_get(column->v, "type")), "text");
}

static size_t numbers_of_text(const struct node *column)
{
    struct node length = node_get(column, "outputSequenceLength"), vocabulary = node_get(column, "vocabulary");
    return node_present(&length) ? (size_t)json_integer_value(length.v) : node_size(&vocabulary) + 1;
}

/* The numbers that one_hot or tf_idf makes of a column of category or of ranges; as far as they are known. */
static size_t numbers_one_hot(const struct node *column)
{
    struct node vocabulary = node_get(column, "vocabulary"), bins = node_get(column, "numBins"),
                bounds = node_get(column, "binBoundaries");
    if (node_present(&bins))
        return (size_t)json_integer_value(bins.v);
    return node_present(&bounds) ? node_size(&bounds) + 1 : node_size(&vocabulary) + oov_of(column);
}

/* Of a column, before a category has its encoding. */
static size_t numbers_of(const struct node *column)
{
    struct node type = node_get(column, "type"), parts = node_get(column, "parts");
    if (is_text(column))
        return numbers_of_text(column);
    struct node shape = node_get(column, "shape"), length = node_get(column, "outputSequenceLength");
    size_t count = node_present(&length) ? (size_t)json_integer_value(length.v) : 1;
    for (size_t i = 0; i < node_size(&shape); i++)
        count *= (size_t)json_integer_value(json_array_get(shape.v, i));
    if (node_present(&shape) || node_present(&length))
        return count;
    if (has_encoding(column, COLUMN_ONE_HOT) || has_encoding(column, COLUMN_TF_IDF))
        return numbers_one_hot(column);
    if (!str_eq(json_string_value(type.v), "date"))
        return 1;
    return node_present(&parts) ? node_size(&parts) : DATE_DEFAULT_PARTS;
}

static bool is_category(const struct node *column)
{
    return str_eq(json_string_value(json_object_get(column->v, "type")), "category");
}

/* Its numbers are those of words or ranges, and stand for no quantity. */
static bool needs_encoding(const struct node *column)
{
    static const char *const NUMBERED[] = { "vocabulary", "numBins", "binBoundaries" };
    for (size_t i = 0; i < COUNT_OF(NUMBERED) && !is_text(column); i++)
        if (json_object_get(column->v, NUMBERED[i]) != NULL)
            return json_object_get(column->v, "encoding") == NULL;
    return false;
}

/* How many there are is known once the data have been read. */
static bool numbers_are_learned(const struct node *column)
{
    return json_is_string(json_object_get(column->v, "vocabulary")) ||
           (!is_category(column) && json_object_get(column->v, "numBins") != NULL);
}

int columns_check_encodings(const struct data_spec *d, struct err *e)
{
    const struct node *columns = &d->columns;
    struct node first = { .v = NULL };
    size_t words = 0, as_int = 0;
    bool learned = false; /* the number of words is not known yet */

    /* the column of a number, and those that are not named, are known once the file is open: lib/data/columns.c checks
     * those */
    if (!data_has_fields(d->format) || d->categories_are_int || label_is_number(d) || node_present(&d->drop_columns))
        return 0;
    for (size_t i = 0; i < node_size(columns); i++) {
        struct node column = node_item(columns, i);
        const char *name = json_string_value(json_object_get(column.v, "name"));
        if (data_spec_has_label(d, name) || (name != NULL && str_eq(name, d->sample_weight)))
            continue;
        as_int += numbers_of(&column);
        learned = learned || numbers_are_learned(&column);
        if (!needs_encoding(&column))
            continue;
        words += numbers_one_hot(&column) - 1;
        first = first.v == NULL ? column : first;
    }
    if (first.v == NULL)
        return 0;
    const char *what = is_category(&first) ? "a category feature" : "a number in ranges";
    if (learned || d->inputs.n > 0)
        return node_error(&first, e, "is %s and needs an encoding: 'encoding: one_hot' or 'encoding: int'", what);
    return node_error(&first, e,
                      "is %s and needs an encoding: 'encoding: one_hot' (model input [%zu]) or 'encoding: int' ([%zu])",
                      what, as_int + words, as_int);
}
