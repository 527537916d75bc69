/* The identity of columns. It depends on all that affects values and on nothing else. Each option is mixed in only
 * where it is used, so that a new one leaves the identities of data sets without it as they are. */
#include <string.h>

#include "base/rng.h"
#include "data/columns.h"

static uint64_t text_hash(const struct data_column *c, uint64_t h)
{
    const size_t form[] = { c->encoding, c->text.standardize, c->text.split, c->count };
    if (c->text.n_ngrams > 0)
        h = hash64(c->text.ngrams, c->text.n_ngrams, h);
    const char *fallback = c->fallback_text != NULL ? c->fallback_text : "";
    return hash64(fallback, strlen(fallback), hash64(form, sizeof(form), h));
}

static uint64_t column_hash(const struct data_column *c)
{
    const struct map_slot *word;
    uint64_t h = hash64(c->name, strlen(c->name), (uint64_t)c->type * 4 + (c->used ? 2 : 0) + c->has_default);
    h = hash64_mix(h, c->place);
    if (c->encoding != COLUMN_INT_ENCODING)
        h = hash64_mix(h, c->count);
    if (c->type == COLUMN_TEXT)
        h = text_hash(c, h);
    else if (c->oov > 0)
        h = hash64(&c->oov, sizeof(c->oov), h);
    if (c->hash_bins > 0)
        h = hash64(&c->hash_bins, sizeof(c->hash_bins), h);
    if (c->salted)
        h = hash64(c->salt, sizeof(c->salt), h);
    if (c->idf != NULL)
        h = hash64(c->idf, column_words(c) * sizeof(*c->idf), h);
    if (c->n_bounds > 0)
        h = hash64(c->bounds, c->n_bounds * sizeof(*c->bounds), h);
    if (c->missing == MISSING_DROP)
        h = hash64_mix(h, true);
    for (size_t i = 0; c->type == COLUMN_DATE && i < c->count; i++)
        h = hash64_mix(h, c->parts[i]);
    if (c->type == COLUMN_IMAGE)
        h = hash64_mix(h, (uint64_t)c->image.interpolation * 2 + c->image.crop);
    if (c->format != NULL)
        h = hash64(c->format, strlen(c->format), h);
    h = hash64_mix(h, hash64(&c->fallback, sizeof(c->fallback), 0));
    for (int i = 0; i < c->shape.rank; i++)
        h = hash64_mix(h, (uint64_t)c->shape.dim[i]);
    if (c->length > 0)
        h = hash64(&c->length, sizeof(c->length), h);
    for (size_t i = 0; (word = map_next(&c->vocabulary, &i)) != NULL;)
        h = hash64(word->key, strlen(word->key), h);
    return h;
}

uint64_t columns_hash(const struct data_columns *c)
{
    uint64_t h = hash64_mix(c->n, (uint64_t)c->label);
    for (size_t i = 0; i < c->n; i++)
        h = hash64_mix(h, column_hash(&c->c[i]));
    for (size_t i = 0; c->n_labels > 1 && i < c->n; i++)
        if (c->c[i].is_label)
            h = hash64_mix(h, i);
    for (size_t i = 0; c->weighted && i < c->n; i++)
        if (c->c[i].is_weight)
            h = hash64_mix(h, ~(uint64_t)i);
    return h;
}
