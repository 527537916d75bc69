#include "check_main.h"

#include <string.h>

#include "base/rng.h"
#include "shard/layout.h"

static struct variable variable(const char *name, int64_t rows, int64_t columns, size_t offset)
{
    return (struct variable){ .name = name,
                              .shape = { .rank = 2, .dim = { rows, columns } },
                              .offset = offset,
                              .count = (size_t)(rows * columns),
                              .kind = VAR_TRAINABLE };
}

/* Variables one after the other, each at a multiple of 16 floats. */
static struct layout *layout_from(struct variable *v, size_t n)
{
    const struct variable *list[16];
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        v[i].offset = at;
        at += (v[i].count + 15) / 16 * 16;
        list[i] = &v[i];
    }
    return layout_of(list, n, at);
}

START_TEST(segments_tile_every_variable)
{
    struct variable v[] = {
        variable("small", 784, 128, 0),   variable("one", 1, 1, 0),
        variable("rows", 3000, 1000, 0), /* 1048 whole rows in 4 MiB */
        variable("wide", 2, 5000000, 0), /* a row is larger than a segment */
        variable("exact", 1024, 1024, 0), variable("over", 1025, 1024, 0),
    };
    AUTO(layout) *l = layout_from(v, COUNT_OF(v));

    size_t next = 0;
    for (uint32_t i = 0; i < COUNT_OF(v); i++) {
        size_t covered = 0;
        for (; next < l->n && l->segments[next].variable == i; next++) {
            const struct segment_spec *s = &l->segments[next];
            ck_assert_uint_eq(s->id, next);
            ck_assert_uint_eq(s->start, covered);
            ck_assert_uint_eq(s->offset, v[i].offset + covered);
            ck_assert_uint_gt(s->count, 0);
            ck_assert_uint_le(s->count * sizeof(float), SEGMENT_MAX);
            if (i != 3)
                ck_assert_uint_eq(s->count % (size_t)v[i].shape.dim[1], 0);
            covered += s->count;
        }
        ck_assert_uint_eq(covered, v[i].count);
    }
    ck_assert_uint_eq(next, l->n);
    ck_assert_uint_eq(l->segments[2].count, 1048 * 1000);
    ck_assert_uint_eq(l->n, 1 + 1 + 3 + 10 + 1 + 2);
}
END_TEST

START_TEST(hash_tells_models_apart)
{
    struct variable base[] = { variable("a", 4, 5, 0), variable("b", 2, 2, 0) };
    AUTO(layout) *first = layout_from(base, 2);
    AUTO(layout) *same = layout_from(base, 2);
    ck_assert_uint_eq(first->hash, same->hash);

    for (int change = 0; change < 6; change++) {
        struct variable v[] = { base[0], base[1] };
        size_t n = 2;
        if (change == 0)
            v[0].name = "c";
        else if (change == 1)
            v[0].shape = (struct shape){ .rank = 2, .dim = { 5, 4 } };
        else if (change == 2)
            v[1].kind = VAR_CONST;
        else if (change == 3)
            v[1].kind = VAR_MOVING;
        else if (change == 4)
            n = 1;
        else
            v[1] = (struct variable){
                .name = "b", .shape = { 2, { 2, 2 } }, .count = 4, .kind = VAR_MOVING, .momentum = 0.9f
            };
        AUTO(layout) *other = layout_from(v, n);
        ck_assert_msg(other->hash != first->hash, "change %d", change);
    }
}
END_TEST

static void check_placement(const struct layout *l, const struct placement *p)
{
    auto_free int *seen = xcalloc(l->n, sizeof(*seen));
    for (size_t ps = 0; ps < p->nps; ps++) {
        for (size_t i = 0; i < p->n[ps]; i++) {
            ck_assert_uint_lt(p->ids[ps][i], l->n);
            ck_assert(i == 0 || p->ids[ps][i] > p->ids[ps][i - 1]);
            seen[p->ids[ps][i]]++;
        }
    }
    for (size_t i = 0; i < l->n; i++)
        ck_assert_int_eq(seen[i], 1);
}

START_TEST(every_segment_has_one_home)
{
    struct variable v[] = { variable("a", 3000, 1000, 0), variable("b", 1, 7, 0), variable("c", 2, 5000000, 0),
                            variable("d", 1, 7, 0) };
    AUTO(layout) *l = layout_from(v, COUNT_OF(v));
    for (size_t nps = 1; nps <= 40; nps++) {
        AUTO(placement) *greedy = placement_new(l, PLACEMENT_GREEDY, nps);
        AUTO(placement) *round = placement_new(l, PLACEMENT_ROUND_ROBIN, nps);
        check_placement(l, greedy);
        check_placement(l, round);
        for (size_t ps = 0; ps < nps; ps++)
            for (size_t i = 0; i < round->n[ps]; i++)
                ck_assert_uint_eq(l->segments[round->ids[ps][i]].variable % nps, ps);
    }
}
END_TEST

START_TEST(greedy_balances_bytes)
{
    struct rng r = rng_at(1, RNG_TEST, 0, 0);
    for (int round = 0; round < 50; round++) {
        struct variable v[12];
        size_t total = 0, largest = 0;
        for (size_t i = 0; i < COUNT_OF(v); i++)
            v[i] = variable("v", 1 + (int64_t)rng_below(&r, 2000), 1 + (int64_t)rng_below(&r, 600), 0);
        AUTO(layout) *l = layout_from(v, COUNT_OF(v));
        for (size_t i = 0; i < l->n; i++) {
            total += l->segments[i].count;
            largest = MAX(largest, l->segments[i].count);
        }
        size_t nps = 1 + rng_below(&r, 5);
        AUTO(placement) *p = placement_new(l, PLACEMENT_GREEDY, nps);
        for (size_t ps = 0; ps < nps; ps++) {
            size_t load = 0;
            for (size_t i = 0; i < p->n[ps]; i++)
                load += l->segments[p->ids[ps][i]].count;
            ck_assert_uint_le(load, total / nps + largest);
        }
    }
}
END_TEST

START_TEST(more_ps_than_segments)
{
    struct variable v[] = { variable("a", 1, 8, 0), variable("b", 1, 8, 0) };
    AUTO(layout) *l = layout_from(v, 2);
    AUTO(placement) *p = placement_new(l, PLACEMENT_GREEDY, 5);
    ck_assert_uint_eq(p->n[0] + p->n[1], 2);
    ck_assert_uint_eq(p->ids[0][0], 0); /* ties: lowest id, lowest ps */
    ck_assert_uint_eq(p->n[2] + p->n[3] + p->n[4], 0);
}
END_TEST

START_TEST(pinned_variables_are_on_their_ps)
{
    struct variable v[] = { variable("a", 3000, 1000, 0), variable("b", 100, 100, 0), variable("c", 50, 50, 0),
                            variable("d", 10, 10, 0) };
    v[0].pin = 2; /* ps:1, with all its segments */
    v[3].pin = 1;
    AUTO(layout) *l = layout_from(v, COUNT_OF(v));
    for (int kind = 0; kind < 2; kind++) {
        AUTO(placement) *p = placement_new(l, kind == 0 ? PLACEMENT_GREEDY : PLACEMENT_ROUND_ROBIN, 2);
        check_placement(l, p);
        for (size_t ps = 0; ps < 2; ps++)
            for (size_t i = 0; i < p->n[ps]; i++) {
                const struct segment_spec *s = &l->segments[p->ids[ps][i]];
                if (s->pin > 0)
                    ck_assert_uint_eq(ps, (size_t)s->pin - 1);
                else if (kind == 0)
                    ck_assert_uint_eq(ps, 0); /* a fills ps:1, so greedy puts the others here */
                else
                    ck_assert_uint_eq(ps, s->variable % 2); /* as if nothing was pinned */
            }
    }
    AUTO(placement) *one = placement_new(l, PLACEMENT_GREEDY, 1); /* a process without ps */
    check_placement(l, one);

    v[1].pin = 1;
    v[2].pin = 2; /* two ps with as many segments, and others */
    AUTO(layout) *here = layout_from(v, COUNT_OF(v));
    v[1].pin = 2;
    v[2].pin = 1;
    AUTO(layout) *there = layout_from(v, COUNT_OF(v));
    AUTO(placement) *a = placement_new(here, PLACEMENT_GREEDY, 2), *b = placement_new(there, PLACEMENT_GREEDY, 2),
                    *again = placement_new(here, PLACEMENT_ROUND_ROBIN, 2);
    ck_assert_uint_eq(here->hash, there->hash);
    ck_assert_uint_ne(placement_hash(a), placement_hash(b));
    ck_assert_uint_eq(placement_hash(a), placement_hash(again)); /* all are pinned */
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("layout");
    TCase *c = tcase_create("all");
    tcase_add_test(c, segments_tile_every_variable);
    tcase_add_test(c, hash_tells_models_apart);
    tcase_add_test(c, every_segment_has_one_home);
    tcase_add_test(c, greedy_balances_bytes);
    tcase_add_test(c, more_ps_than_segments);
    tcase_add_test(c, pinned_variables_are_on_their_ps);
    suite_add_tcase(s, c);
    return s;
}
