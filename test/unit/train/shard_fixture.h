/* shard_fixture - a small model's layout, and shards to hold it: shared by the tests of shard and params. */
#ifndef TRAINYARD_TEST_SHARD_FIXTURE_H
#define TRAINYARD_TEST_SHARD_FIXTURE_H

#include "check_main.h"

#include <string.h>

#include "base/rng.h"
#include "train/shard.h"

#define UID "uid-1"
#define ADAM "{\"Adam\":{\"learning_rate\":0.01}}"
#define COUNTING "{\"Counting\":{}}"
#define SGD "{\"SGD\":{\"learning_rate\":0.5}}"

#define ck_float(value, wanted) ck_assert_double_eq((double)(value), (double)(wanted))

/* Two trainable variables, a moving one, a constant, a trainable one; with gaps between them. */
static inline struct layout *small_layout(void)
{
    static const struct variable V[] = {
        { .name = "a", .shape = { 2, { 5, 3 } }, .offset = 0, .count = 15, .kind = VAR_TRAINABLE },
        { .name = "b", .shape = { 1, { 7 } }, .offset = 16, .count = 7, .kind = VAR_TRAINABLE },
        { .name = "m", .shape = { 1, { 4 } }, .offset = 32, .count = 4, .kind = VAR_MOVING, .momentum = 0.75f },
        { .name = "k", .shape = { 1, { 2 } }, .offset = 48, .count = 2, .kind = VAR_CONST },
        { .name = "c", .shape = { 0, { 0 } }, .offset = 64, .count = 1, .kind = VAR_TRAINABLE },
    };
    const struct variable *list[COUNT_OF(V)];
    for (size_t i = 0; i < COUNT_OF(V); i++)
        list[i] = &V[i];
    return layout_of(list, COUNT_OF(V), 80);
}

/* A number in [-1, 1) that depends on both arguments. */
static inline float pattern(uint64_t seed, size_t i)
{
    struct rng r = rng_at(seed, RNG_TEST, i, 0);
    return 2 * rng_uniform(&r) - 1;
}

/* Fills the segments of a vector in the model's layout; gaps stay. */
static inline void fill(const struct layout *l, uint64_t seed, float *vector)
{
    for (size_t s = 0; s < l->n; s++)
        for (size_t i = 0; i < l->segments[s].count; i++)
            vector[l->segments[s].offset + i] = pattern(seed, l->segments[s].offset + i);
}

/* A bytes_in of one memory range, cut at the offsets of cuts[] (ascending). */
struct cut_bytes {
    const unsigned char *data;
    size_t size, at;
    const size_t *cuts;
    size_t ncuts, next;
};

static inline int cut_next(void *user, const void **ret, size_t *ret_size)
{
    struct cut_bytes *c = user;
    if (c->at == c->size)
        return 0;
    size_t end = c->next < c->ncuts ? c->cuts[c->next++] : c->size;
    *ret = c->data + c->at;
    *ret_size = end - c->at;
    c->at = end;
    return 1;
}

static inline struct bytes_in cut(struct cut_bytes *c, const void *data, size_t size, const size_t *cuts, size_t ncuts)
{
    *c = (struct cut_bytes){ .data = data, .size = size, .cuts = cuts, .ncuts = ncuts };
    return (struct bytes_in){ .next = cut_next, .user = c, .size = size };
}

#endif
