/* The table of the kinds of columns and the layers of Keras. Each layer must give the numbers that lib/data gives: the
 * trained model's weights know them. */
#include "column_layer.h"

#include <string.h>

#include "base/str.h"
#include "data/tokens.h"
#include "data/vocabulary.h"
#include "job/job.h"

const char *column_text(const json_t *item, const char *key, const char *fallback)
{
    const char *s = json_string_value(json_object_get(item, key));
    return s != NULL ? s : fallback;
}

static const char *encoding_of(const json_t *item)
{
    return column_text(item, "encoding", COLUMN_ENCODING_NAMES[COLUMN_INT_ENCODING]);
}

bool column_is_int(const json_t *item)
{
    return str_eq(encoding_of(item), COLUMN_ENCODING_NAMES[COLUMN_INT_ENCODING]);
}

static int64_t number_of(const json_t *item, const char *key)
{
    return json_integer_value(json_object_get(item, key));
}

/* Those of a text without "" and "[UNK]", which get_vocabulary() has before them. */
static json_t *words_json(const json_t *item, bool is_text)
{
    const json_t *words = json_object_get(item, "vocabulary");
    json_t *ret = json_array();
    AUTO_FINI(buf) word = BUF_INIT;
    for (size_t i = is_text ? vocabulary_special(words) : 0; i < json_array_size(words); i++) {
        vocabulary_word(json_array_get(words, i), is_text, &word);
        json_array_append_new(ret, json_stringn(word.data, word.len));
    }
    return ret;
}

static bool has_word(const json_t *words, const char *word)
{
    for (size_t i = 0; i < json_array_size(words); i++)
        if (str_eq(json_string_value(json_array_get(words, i)), word))
            return true;
    return false;
}

bool column_has_empty_word(const json_t *item)
{
    json_auto_t *words = words_json(item, true);
    return str_eq(column_type(item), "text") && has_word(words, "");
}

bool column_is_open(const json_t *item)
{
    bool is_number = !str_eq(column_type(item), "category") && !str_eq(column_type(item), "text");
    return str_eq(json_string_value(json_object_get(item, "vocabulary")), "auto") ||
           (is_number && json_object_get(item, "numBins") != NULL);
}

/* Keras takes this token for its own at the beginning of a vocabulary. */
static char *unknown_token(const json_t *words)
{
    auto_free char *token = xstrdup("[UNK]");
    while (has_word(words, token)) {
        char *longer = xasprintf("[%s]", token);
        free(token);
        token = longer;
    }
    return TAKE(token);
}

bool column_is_weighed(const json_t *item)
{
    return str_eq(encoding_of(item), COLUMN_ENCODING_NAMES[COLUMN_TF_IDF]);
}

/* tf_idf: the weights of all numbers. That of other words is listed, so the vocabulary begins with their token. */
static void put_weights(const json_t *item, bool is_text, bool oov, const char *unknown, json_t *config)
{
    auto_free float *weights = NULL;
    json_t *list = json_array();
    size_t n;
    weights =
        vocabulary_weights(json_object_get(item, "vocabulary"), json_object_get(item, "idfWeights"), is_text, oov, &n);
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_real((double)weights[i]));
    if (oov)
        json_array_insert_new(json_object_get(config, "vocabulary"), 0, json_string(unknown));
    json_object_set_new(config, "idf_weights", list);
}

static json_t *text_config(const json_t *item)
{
    const char *standardize = column_text(item, "standardize", TEXT_STANDARDIZE_NAMES[0]);
    bool none = str_eq(standardize, TEXT_STANDARDIZE_NAMES[STANDARDIZE_NONE]);
    json_t *ngrams = json_object_get(item, "ngrams");
    json_t *length = column_is_int(item) ? json_integer(number_of(item, "outputSequenceLength")) : json_null();
    json_t *config =
        json_pack("{s:s?, s:O?, s:s, s:s, s:o, s:o}", "standardize", none ? NULL : standardize, "ngrams", ngrams,
                  "split", column_text(item, "split", TEXT_SPLIT_NAMES[0]), "output_mode", encoding_of(item),
                  "output_sequence_length", length, "vocabulary", words_json(item, true));
    if (column_is_weighed(item))
        put_weights(item, true, true, TOKEN_UNKNOWN, config);
    return config;
}

static int64_t text_width(const json_t *item)
{
    json_auto_t *words = words_json(item, true);
    return column_is_int(item) ? number_of(item, "outputSequenceLength") : (int64_t)json_array_size(words) + 1;
}

static json_t *lookup_config(const json_t *item)
{
    json_t *words = words_json(item, false);
    auto_free char *unknown = unknown_token(words);
    json_int_t oov = number_of(item, "numOovIndices");
    json_t *config = json_pack("{s:I, s:n, s:s, s:s, s:o}", "num_oov_indices", oov, "mask_token", "oov_token", unknown,
                               "output_mode", encoding_of(item), "vocabulary", words);
    if (column_is_weighed(item))
        put_weights(item, false, oov > 0, unknown, config);
    return config;
}

static int64_t lookup_width(const json_t *item)
{
    size_t words = json_array_size(json_object_get(item, "vocabulary"));
    return column_is_int(item) ? 1 : (int64_t)words + number_of(item, "numOovIndices");
}

static json_t *hash_config(const json_t *item)
{
    return json_pack("{s:I, s:s, s:O*}", "num_bins", (json_int_t)number_of(item, "numBins"), "output_mode",
                     encoding_of(item), "salt", json_object_get(item, "salt"));
}

static int64_t hash_width(const json_t *item)
{
    return column_is_int(item) ? 1 : number_of(item, "numBins");
}

static json_t *bins_config(const json_t *item)
{
    const json_t *given = json_object_get(item, "binBoundaries");
    json_t *bounds = json_array();
    for (size_t i = 0; i < json_array_size(given); i++)
        json_array_append_new(bounds, json_real(json_number_value(json_array_get(given, i))));
    return json_pack("{s:o, s:s}", "bin_boundaries", bounds, "output_mode", encoding_of(item));
}

static int64_t bins_width(const json_t *item)
{
    return column_is_int(item) ? 1 : (int64_t)json_array_size(json_object_get(item, "binBoundaries")) + 1;
}

static const struct column_layer LAYERS[] = {
    { "text", "vocabulary", "string", "TextVectorization", "words", "int64", text_config, text_width, true },
    { "category", "numBins", "string", "Hashing", "hash", "int64", hash_config, hash_width, false },
    { "category", "vocabulary", "string", "StringLookup", "words", "int64", lookup_config, lookup_width, false },
    { "float", "binBoundaries", "float32", "Discretization", "bins", "int64", bins_config, bins_width, false },
    { "int", "binBoundaries", "float32", "Discretization", "bins", "int64", bins_config, bins_width, false },
    { "float", NULL, "float32", NULL, NULL, "float32", NULL, NULL, false },
    { "int", NULL, "float32", NULL, NULL, "float32", NULL, NULL, false },
};

const char *column_type(const json_t *item)
{
    return column_text(item, "type", "float");
}

const struct column_layer *column_layer_of(const json_t *item)
{
    for (size_t i = 0; i < COUNT_OF(LAYERS); i++)
        if (str_eq(LAYERS[i].type, column_type(item)) &&
            (LAYERS[i].field == NULL || json_object_get(item, LAYERS[i].field) != NULL))
            return &LAYERS[i];
    return NULL;
}

int64_t column_width(const json_t *item)
{
    const struct column_layer *as = column_layer_of(item);
    return as != NULL && as->width != NULL ? as->width(item) : 1;
}
