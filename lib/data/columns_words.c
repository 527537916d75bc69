/* The numbers of a column's words. Models know a word by its number, so it must never change for the same column. */
#include <string.h>

#include "codec/farmhash.h"
#include "codec/siphash.h"
#include "data/columns.h"

bool column_is_binned(const struct data_column *c)
{
    return c->n_bounds > 0 || c->learns_bins > 0;
}

int64_t column_hashed_word(const struct data_column *c, const void *word, size_t n)
{
    uint64_t hash = c->salted ? siphash(c->salt, word, n) : farmhash_fingerprint64(word, n);
    return (int64_t)(hash % c->hash_bins);
}

int64_t column_word(const struct data_column *c, const char *word)
{
    if (c->hash_bins > 0)
        return column_hashed_word(c, word, strlen(word));
    int64_t place = (int64_t)(intptr_t)map_get(&c->vocabulary, word) - 1;
    return place < 0 ? -1 : place + (int64_t)(c->mask + c->oov);
}

size_t column_words(const struct data_column *c)
{
    bool known = (c->type == COLUMN_CATEGORY || c->type == COLUMN_TEXT) && !c->learns_words;
    if (c->hash_bins > 0)
        return c->hash_bins;
    if (c->n_bounds > 0)
        return c->n_bounds + 1;
    return known ? c->mask + c->oov + c->vocabulary.n : 0;
}
