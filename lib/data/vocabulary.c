/* The one place that says which word an item of a vocabulary is: training, the layers that are exported and the names
 * of predicted classes must agree about it. */
#include "data/vocabulary.h"

#include <string.h>

#include "base/str.h"
#include "data/text.h"
#include "data/tokens.h"

void vocabulary_word(const json_t *item, bool is_token, struct buf *ret)
{
    const char *s = json_string_value(item);
    buf_clear(ret);
    if (s == NULL) {
        json_emit(item, ret);
        return;
    }
    const unsigned char *p = (const unsigned char *)s;
    struct text_field word = { .p = p, .end = p + strlen(s) };
    if (!is_token)
        word = text_trim(word);
    buf_add(ret, word.p, (size_t)(word.end - word.p));
}

size_t vocabulary_special(const json_t *words)
{
    static const char *const SPECIAL[] = { "", TOKEN_UNKNOWN };
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(SPECIAL); i++)
        n += str_eq(json_string_value(json_array_get(words, n)), SPECIAL[i]);
    return n;
}

float *vocabulary_weights(const json_t *words, const json_t *weights, bool is_text, bool oov, size_t *ret_n)
{
    size_t special = is_text ? vocabulary_special(words) : 0, n = json_array_size(weights) - special;
    bool named = special > 0 && str_eq(json_string_value(json_array_get(words, special - 1)), TOKEN_UNKNOWN);
    float *ret = xcalloc(n + oov, sizeof(*ret));
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double v = json_number_value(json_array_get(weights, special + i));
        ret[oov + i] = (float)v;
        sum += v;
    }
    if (oov)
        ret[0] = (float)(named ? json_number_value(json_array_get(weights, special - 1)) : sum / (double)MAX(n, 1));
    *ret_n = n + oov;
    return ret;
}
