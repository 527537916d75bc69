/* sync_fixture - a shard with synchronous updates, whose gradients are functions of their ordinals. */
#ifndef TRAINYARD_SHARD_SYNC_FIXTURE_H
#define TRAINYARD_SHARD_SYNC_FIXTURE_H

#include "shard_fixture.h"

/* 10 batches of 4 an epoch, the last one of 3; groups of 4: 4, 4, 2. */
#ifndef GROUP_SIZE
#define GROUP_SIZE 4
#endif
static const struct groups G = { .size = GROUP_SIZE, .batches = 10, .examples = 4, .rest = 3 };
static const struct shard_part ALL = { 0, 0 };
enum { FLOATS = 80, PULLED = 29, EPOCH = 10 };

static inline void begin(struct shard *s, const struct shard_caller *who, const struct groups *groups,
                         const struct layout *l, const char *optimizer, const float *vector)
{
    struct err e;
    ck_ok_e(shard_init(s, who, optimizer, l->segments, l->n, l->hash, &e));
    ck_ok_e(shard_set_groups(s, who, groups, &e));
    for (size_t i = 0; i < l->n; i++)
        restore_from(s, who, &l->segments[i], vector);
    ck_ok_e(shard_serve(s, who, &e));
}

/* place: the values are there, or NULL. */
static inline struct shard *synchronous_in(float *place, const struct layout *l, const char *optimizer,
                                           const float *vector)
{
    struct shard *s = shard_new(11);
    if (place != NULL)
        shard_use_vector(s, place);
    begin(s, &CHIEF, &G, l, optimizer, vector);
    return s;
}

static inline struct shard *synchronous(const struct layout *l, const char *optimizer, const float *vector)
{
    return synchronous_in(NULL, l, optimizer, vector);
}

/* The gradient of an ordinal: a function of it, and of nothing else. */
static inline int push_part(struct shard *s, int64_t ordinal, struct shard_part part, bool *duplicate, struct err *e)
{
    AUTO(layout) *l = small_layout();
    float grads[FLOATS] = { 0 };
    int64_t versions[5];
    fill(l, (uint64_t)ordinal + 1, grads);
    size_t n = part.count == 0 ? 5 - part.first : part.count;
    const struct shard_vectors v = { .grads = grads, .floats = FLOATS };
    return shard_push_vectors(s, &CHIEF, part, ordinal, NULL, &v, versions, n, duplicate, e);
}

static inline bool push(struct shard *s, int64_t ordinal)
{
    bool duplicate;
    struct err e = { 0 };
    ck_ok_e(push_part(s, ordinal, ALL, &duplicate, &e));
    return duplicate;
}

static inline int pull_at(struct shard *s, int64_t at, float values[FLOATS], struct err *e)
{
    int64_t versions[5];
    const struct shard_vectors v = { .values = values, .floats = FLOATS };
    return shard_pull_vectors_at(s, &CHIEF, ALL, at, &v, versions, 5, e);
}

static inline void values_at(struct shard *s, int64_t at, float values[FLOATS])
{
    struct err e = { 0 };
    ck_ok_e(pull_at(s, at, values, &e));
}

static inline void check_same(const float a[FLOATS], const float b[FLOATS])
{
    AUTO(layout) *l = small_layout();
    for (size_t i = 0; i < l->n; i++)
        ck_assert_mem_eq(a + l->segments[i].offset, b + l->segments[i].offset, l->segments[i].count * sizeof(float));
}

#endif
