/* What spec.columns says of one column: its type, words, parts of a date, default and rule for missing values. Every
 * error is reported at its place in the manifest. */
#include <math.h>
#include <string.h>

#include "data/columns.h"
#include "data/date.h"
#include "data/text.h"
#include "data/vocabulary.h"

/* A word of a vocabulary or a default. */
static int word_of(const struct node *n, const struct data_column *c, struct buf *ret, struct err *e)
{
    const char *s;
    if (!json_is_string(n->v) && !json_is_number(n->v) && !json_is_boolean(n->v))
        return node_error(n, e, "must be a word, is %s", node_type(n));
    if (json_is_string(n->v) && node_str(n, &s, e) < 0)
        return -1;
    vocabulary_word(n->v, c->type == COLUMN_TEXT, ret);
    if (ret->len > VOCABULARY_WORD_MAX)
        return node_error(n, e, "has %zu bytes, at most %d", ret->len, VOCABULARY_WORD_MAX);
    return 0;
}

static int read_vocabulary(const struct node *n, struct data_column *c, struct err *e)
{
    struct node words = node_get(n, "vocabulary");
    c->learns_words = str_eq(json_string_value(words.v), "auto");
    if (c->learns_words)
        return 0;
    if (!node_present(&words) || node_size(&words) == 0)
        return node_error(n, e, "column '%s' is a %s and needs its words: vocabulary: [...]", c->name,
                          c->type == COLUMN_TEXT ? "text" : "category");
    if (node_array(&words, e) < 0)
        return -1;

    AUTO_FINI(buf) word = BUF_INIT;
    for (size_t i = c->type == COLUMN_TEXT ? vocabulary_special(words.v) : 0; i < node_size(&words); i++) {
        struct node item = node_item(&words, i);
        if (word_of(&item, c, &word, e) < 0)
            return -1;
        if (map_get(&c->vocabulary, word.data) != NULL)
            return node_error(&item, e, "'%s' is in the vocabulary twice", word.data);
        map_put(&c->vocabulary, word.data, (void *)(intptr_t)(c->vocabulary.n + 1));
    }
    if (c->vocabulary.n == 0)
        return node_error(&words, e, "has no words but those that Keras's get_vocabulary() has before them");
    return 0;
}

static int read_default_date(const struct node *value, struct data_column *c, struct err *e)
{
    const char *text;
    if (node_str(value, &text, e) < 0)
        return -1;
    const unsigned char *p = (const unsigned char *)text;
    struct text_field field = text_trim((struct text_field){ .p = p, .end = p + strlen(text) });
    return date_parse(&field, c->format, &c->fallback)
               ? 0
               : node_error(value, e, "'%s' is not a date in the column's format", text);
}

int column_read_default(const struct node *n, struct data_column *c, struct err *e)
{
    struct node value = node_get(n, "default");
    if (!node_present(&value))
        return 0;
    c->has_default = true;
    if (c->type == COLUMN_CATEGORY) {
        AUTO_FINI(buf) word = BUF_INIT;
        if (word_of(&value, c, &word, e) < 0)
            return -1;
        if (c->learns_words)
            return node_error(&value, e,
                              "a vocabulary that is learned has no default; use missing: mode, or list the words");
        c->fallback = (double)column_word(c, word.data);
        return c->fallback < 0 ? node_error(&value, e, "'%s' is not in the vocabulary", word.data) : 0;
    }
    if (c->type == COLUMN_DATE)
        return read_default_date(&value, c, e);
    if (c->type == COLUMN_TEXT) {
        const char *text;
        if (node_str(&value, &text, e) < 0)
            return -1;
        c->fallback_text = xstrdup(text);
        return 0;
    }
    if (node_f64(&value, &c->fallback, e) < 0)
        return -1;
    if (c->type == COLUMN_INT && c->fallback != floor(c->fallback))
        return node_error(&value, e, "default %g is not an integer, but column '%s' has type int", c->fallback,
                          c->name);
    return 0;
}

static int read_encoding(const struct node *n, struct data_column *c, struct err *e)
{
    struct node encoding = node_get(n, "encoding");
    size_t i;
    if (!node_present(&encoding))
        return 0;
    if (node_enum(&encoding, COLUMN_ENCODING_NAMES, COLUMN_ENCODING_COUNT, &i, e) < 0)
        return -1;
    c->encoded = true;
    c->encoding = (enum column_encoding)i;
    return 0;
}

/* One number stands for both. */
static int read_salt(const struct node *n, struct data_column *c, struct err *e)
{
    struct node salt = node_get(n, "salt");
    int64_t half;
    c->salted = node_present(&salt);
    for (size_t i = 0; c->salted && i < COUNT_OF(c->salt); i++) {
        struct node item = json_is_array(salt.v) ? node_item(&salt, i) : salt;
        if (node_i64(&item, INT64_MIN, INT64_MAX, &half, e) < 0)
            return -1;
        c->salt[i] = (uint64_t)half;
    }
    return 0;
}

/* As of Keras's Hashing. */
static int read_hash(const struct node *n, struct data_column *c, struct err *e)
{
    struct node bins = node_get(n, "numBins");
    int64_t count;
    if (node_i64(&bins, 1, HASH_BINS_MAX, &count, e) < 0)
        return -1;
    c->hash_bins = (size_t)count;
    return read_salt(n, c, e);
}

/* As of Keras's Discretization. lib/job has checked their number and order. */
static int read_bins(const struct node *n, struct data_column *c, struct err *e)
{
    struct node bins = node_get(n, "numBins"), bounds = node_get(n, "binBoundaries");
    int64_t count = 0;
    if (node_present(&bins) && node_i64(&bins, 2, BINS_MAX, &count, e) < 0)
        return -1;
    c->learns_bins = (size_t)count;
    c->bounds = xcalloc(node_size(&bounds) + 1, sizeof(*c->bounds));
    for (size_t i = 0; i < node_size(&bounds); i++) {
        struct node item = node_item(&bounds, i);
        if (node_f64(&item, &c->bounds[i], e) < 0)
            return -1;
        c->n_bounds++;
    }
    return 0;
}

/* As of Keras's StringLookup. */
static int read_words(const struct node *n, struct data_column *c, struct err *e)
{
    struct node oov = node_get(n, "numOovIndices"), max = node_get(n, "maxTokens");
    int64_t count = 0, tokens = 0;
    if ((node_present(&oov) && node_i64(&oov, 0, 1, &count, e) < 0) ||
        (node_present(&max) && node_i64(&max, MAX_TOKENS_MIN, VOCABULARY_LEARNED_MAX + 2, &tokens, e) < 0))
        return -1;
    c->oov = (size_t)count;
    c->max_tokens = (size_t)tokens;
    return read_vocabulary(n, c, e);
}

/* A number n stands for 1 to n. */
static int read_ngrams(const struct node *n, struct text_form *form, struct err *e)
{
    struct node ngrams = node_get(n, "ngrams");
    bool list = json_is_array(ngrams.v);
    int64_t count = (int64_t)node_size(&ngrams), length;
    if (!node_present(&ngrams))
        return 0;
    if (!list && node_i64(&ngrams, 1, NGRAM_MAX, &count, e) < 0)
        return -1;
    if (count > NGRAM_MAX)
        return node_error(&ngrams, e, "has %lld lengths, at most %d", (long long)count, NGRAM_MAX);
    for (int64_t i = 0; i < count; i++) {
        struct node item = node_item(&ngrams, (size_t)i);
        length = i + 1;
        if (list && node_i64(&item, 1, NGRAM_MAX, &length, e) < 0)
            return -1;
        form->ngrams[form->n_ngrams++] = (unsigned char)length;
    }
    if (form->n_ngrams == 1 && form->ngrams[0] == 1)
        form->n_ngrams = 0;
    return 0;
}

/* As of Keras's TextVectorization. */
static int read_text(const struct node *n, struct data_column *c, struct err *e)
{
    struct node length = node_get(n, "outputSequenceLength"), standardize = node_get(n, "standardize"),
                split = node_get(n, "split");
    size_t how = STANDARDIZE_LOWER_AND_STRIP_PUNCTUATION, by = SPLIT_WHITESPACE;
    int64_t count = 1;
    c->oov = 1;
    c->mask = c->encoding == COLUMN_INT_ENCODING;
    if ((c->mask > 0 && node_i64(&length, 1, TEXT_LENGTH_MAX, &count, e) < 0) ||
        (node_present(&standardize) &&
         node_enum(&standardize, TEXT_STANDARDIZE_NAMES, STANDARDIZE_COUNT, &how, e) < 0) ||
        (node_present(&split) && node_enum(&split, TEXT_SPLIT_NAMES, SPLIT_COUNT, &by, e) < 0))
        return -1;
    c->count = (size_t)count;
    c->text = (struct text_form){ .standardize = (enum text_standardize)how, .split = (enum text_split)by };
    return read_ngrams(n, &c->text, e);
}

/* tf_idf: lib/job has checked that there is one for each word. */
static void read_weights(const struct node *n, struct data_column *c)
{
    struct node words = node_get(n, "vocabulary"), weights = node_get(n, "idfWeights");
    size_t ignored;
    if (c->encoding == COLUMN_TF_IDF && !c->learns_words)
        c->idf = vocabulary_weights(words.v, weights.v, c->type == COLUMN_TEXT, c->oov > 0, &ignored);
}

/* date: the numbers, and how it is written. */
static int read_date(const struct node *n, struct data_column *c, struct err *e)
{
    struct node parts = node_get(n, "parts"), format = node_get(n, "format");
    const char *text;
    size_t part;
    c->count = DATE_DEFAULT_PARTS;
    for (size_t i = 0; i < DATE_DEFAULT_PARTS; i++)
        c->parts[i] = (enum date_part)i;
    if (node_present(&parts)) {
        if (node_array(&parts, e) < 0)
            return -1;
        c->count = node_size(&parts);
        if (c->count == 0 || c->count > DATE_PART_COUNT)
            return node_error(&parts, e, "names %zu parts, must be 1 to %d", c->count, DATE_PART_COUNT);
    }
    for (size_t i = 0; i < node_size(&parts); i++) {
        struct node item = node_item(&parts, i);
        if (node_enum(&item, DATE_PART_NAMES, DATE_PART_COUNT, &part, e) < 0)
            return -1;
        c->parts[i] = (enum date_part)part;
    }
    if (!node_present(&format))
        return 0;
    if (node_str(&format, &text, e) < 0)
        return -1;
    if (!date_format_check(text))
        return node_error(
            &format, e,
            "'%s' is not a format of dates: it has %%Y %%y %%m %%b %%d %%H %%M %%S, such as \"%%d.%%m.%%Y\"", text);
    c->format = xstrdup(text);
    return 0;
}

/* What becomes of an example without this value, when the column has its own rule. */
static int read_missing(const struct node *n, struct data_column *c, struct err *e)
{
    struct node missing = node_get(n, "missing");
    size_t i;
    if (!node_present(&missing))
        return 0;
    if (node_enum(&missing, DATA_MISSING_NAMES, MISSING_COUNT, &i, e) < 0)
        return -1;
    c->missing = (enum data_missing)i;
    return 0;
}

int column_read_csv(const struct node *n, struct data_column *c, struct err *e)
{
    static const char *const TYPES[] = { "float", "int", "category", "date", "text" };
    static const enum column_type MEANING[] = { COLUMN_FLOAT, COLUMN_INT, COLUMN_CATEGORY, COLUMN_DATE, COLUMN_TEXT };
    size_t type = 0;
    struct node type_node = node_get(n, "type");
    if (node_present(&type_node) && node_enum(&type_node, TYPES, COUNT_OF(TYPES), &type, e) < 0)
        return -1;
    c->type = MEANING[type];
    struct node bins = node_get(n, "numBins");
    bool number = c->type == COLUMN_FLOAT || c->type == COLUMN_INT;
    bool hashed = c->type == COLUMN_CATEGORY && node_present(&bins);
    bool words = !hashed && (c->type == COLUMN_CATEGORY || c->type == COLUMN_TEXT);
    if (read_encoding(n, c, e) < 0 || (words && read_words(n, c, e) < 0) || (hashed && read_hash(n, c, e) < 0) ||
        (number && read_bins(n, c, e) < 0) || (c->type == COLUMN_DATE && read_date(n, c, e) < 0) ||
        (c->type == COLUMN_TEXT && read_text(n, c, e) < 0) || column_read_default(n, c, e) < 0)
        return -1;
    if (words)
        read_weights(n, c);
    return read_missing(n, c, e);
}
