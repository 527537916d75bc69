/* An index in the cache folder: a header, then the places. An incomplete file is ignored and made again. */
#include <string.h>

#include "codec/crc32c.h"
#include "data/indexed.h"

static const char INDEX_MAGIC[8] = { 'T', 'Y', 'i', 'n', 'd', 'e', 'x', '3' };

struct index_header { /* little endian, as all machines this is built for */
    char magic[8];
    uint64_t key;
    int64_t n, labels, label_min_at, label_max_at, rounded_at, rounded, left_out;
    double label_min, label_max, rounded_from;
    uint32_t labels_whole, crc; /* crc: of this with 0 in its place, then the places */
};
_Static_assert(sizeof(struct index_header) == 104, "the layout of cached files");

static struct index_notes notes_of(const struct index_header *h)
{
    return (struct index_notes){ .labels = { .n = h->labels,
                                             .min = h->label_min,
                                             .max = h->label_max,
                                             .min_at = h->label_min_at,
                                             .max_at = h->label_max_at,
                                             .whole = h->labels_whole != 0 },
                                 .rounded_at = h->rounded_at,
                                 .rounded = h->rounded,
                                 .rounded_from = h->rounded_from,
                                 .left_out = h->left_out };
}

static struct index_header header_of(uint64_t key, const struct record_index *x)
{
    const struct label_span *s = &x->notes.labels;
    struct index_header h = { .key = key,
                              .n = x->n,
                              .labels = s->n,
                              .label_min_at = s->min_at,
                              .label_max_at = s->max_at,
                              .rounded_at = x->notes.rounded_at,
                              .rounded = x->notes.rounded,
                              .label_min = s->min,
                              .label_max = s->max,
                              .rounded_from = x->notes.rounded_from,
                              .left_out = x->notes.left_out,
                              .labels_whole = s->whole };
    memcpy(h.magic, INDEX_MAGIC, sizeof(h.magic));
    return h;
}

static uint32_t crc_of(struct index_header h, const void *places, size_t bytes)
{
    h.crc = 0;
    return crc32c(crc32c(0, &h, sizeof(h)), places, bytes);
}

static size_t place_count(int64_t n)
{
    return (size_t)(n / INDEX_STRIDE + (n % INDEX_STRIDE != 0));
}

void record_index_fini(struct record_index *x)
{
    file_map_free(x->map);
    free(x->own);
    *x = (struct record_index){ .n = 0 };
}

static bool places_ok(const uint64_t *place, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++)
        if (place[i] >= size || (i > 0 && place[i] <= place[i - 1]))
            return false;
    return true;
}

int record_index_load(const char *path, uint64_t key, size_t size, struct record_index *ret)
{
    AUTO(file_map) *map = NULL;
    struct index_header h;
    if (!file_exists(path) || file_map_open(path, &map, NULL) < 0 || map->size < sizeof(h))
        return -1;
    memcpy(&h, map->data, sizeof(h));
    size_t bytes = map->size - sizeof(h);
    if (memcmp(h.magic, INDEX_MAGIC, sizeof(h.magic)) != 0 || h.key != key || h.n < 0 ||
        bytes % sizeof(uint64_t) != 0 || place_count(h.n) != bytes / sizeof(uint64_t) ||
        crc_of(h, map->data + sizeof(h), bytes) != h.crc)
        return -1;
    const uint64_t *place = (const void *)(map->data + sizeof(h)); /* 104 bytes into a page: aligned */
    if (!places_ok(place, place_count(h.n), size))
        return -1;
    *ret = (struct record_index){ .n = h.n, .offset = place, .notes = notes_of(&h) };
    ret->map = TAKE(map);
    return 0;
}

int record_index_save(const char *path, uint64_t key, const struct record_index *x, struct err *e)
{
    size_t bytes = place_count(x->n) * sizeof(uint64_t);
    struct index_header h = header_of(key, x);
    h.crc = crc_of(h, x->offset, bytes);

    AUTO(file_out) *out = NULL;
    if (file_out_open(path, &out, e) < 0 || file_out_write(out, &h, sizeof(h), e) < 0 ||
        file_out_write(out, x->offset, bytes, e) < 0)
        return -1;
    return file_out_commit(out, e);
}
