/* shard_fixture - a small model's layout, and shards to hold it. Shared by the tests of shard and params. */
#ifndef TRAINYARD_SHARD_SHARD_FIXTURE_H
#define TRAINYARD_SHARD_SHARD_FIXTURE_H

#include "check_main.h"

#include <string.h>

#include "base/rng.h"
#include "shard/shard.h"

#define UID      "uid-1"
#define ADAM     "{\"Adam\":{\"learning_rate\":0.01}}"
#define COUNTING "{\"Counting\":{}}"
#define SGD      "{\"SGD\":{\"learning_rate\":0.5}}"

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

static inline void cut_again(void *user)
{
    struct cut_bytes *c = user;
    c->at = c->next = 0;
}

static inline struct bytes_in cut(struct cut_bytes *c, const void *data, size_t size, const size_t *cuts, size_t ncuts)
{
    *c = (struct cut_bytes){ .data = data, .size = size, .cuts = cuts, .ncuts = ncuts };
    return (struct bytes_in){ .next = cut_next, .again = cut_again, .user = c, .size = size, .element = DT_FLOAT };
}

static const struct shard_caller CHIEF = { .job_uid = UID, .sender = "chief-0", .generation = 1 };

static inline void restore_from(struct shard *s, const struct shard_caller *who, const struct segment_spec *spec,
                                const float *vector)
{
    struct cut_bytes c;
    struct bytes_in in = cut(&c, vector + spec->offset, spec->count * sizeof(float), NULL, 0);
    AUTO_FINI(ordinal_set) none = ORDINAL_SET_INIT;
    struct err e;
    ck_ok_e(shard_restore(s, who, spec->id, false, 0, &none, &in, &e));
}

/* A shard with all segments of a layout. */
static inline struct shard *serving(const struct layout *l, const char *optimizer, const float *vector)
{
    struct shard *s = shard_new(11);
    struct err e;
    ck_ok_e(shard_init(s, &CHIEF, optimizer, l->segments, l->n, l->hash, &e));
    for (size_t i = 0; i < l->n; i++)
        restore_from(s, &CHIEF, &l->segments[i], vector);
    ck_ok_e(shard_serve(s, &CHIEF, &e));
    return s;
}

#endif
