#include "check_main.h"

#include "base/rng.h"
#include "shard/ordinal_set.h"

enum { SMALL = 9 };

/* A set whose low-water mark is `low` and whose members above it are low + the bits of `subset`. */
static void build(int64_t low, uint64_t subset, bool descending, struct ordinal_set *ret)
{
    ck_assert_int_eq(ordinal_set_from(low, NULL, 0, ret, NULL), 0);
    for (int i = 0; i < SMALL; i++) {
        int bit = descending ? SMALL - 1 - i : i;
        if ((subset >> bit & 1) != 0)
            ck_assert_int_eq(ordinal_set_add(ret, low + bit, NULL), 1);
    }
}

static void check_members(const struct ordinal_set *a, int64_t low, uint64_t subset)
{
    int64_t count = low;
    for (int i = -2; i < SMALL + 70; i++) {
        bool want = i < 0 ? low + i >= 0 : i < SMALL && (subset >> i & 1) != 0;
        if (ordinal_set_has(a, low + i) != want)
            ck_abort_msg("low %lld subset %llx: ordinal low%+d", (long long)low, (unsigned long long)subset, i);
        count += i >= 0 && want;
    }
    ck_assert_int_eq(ordinal_set_count(a), count);
    ck_assert(!ordinal_set_has(a, a->low));
}

static void check_round_trip(const struct ordinal_set *a)
{
    auto_free int64_t *ranges = NULL;
    AUTO_FINI(ordinal_set) back = ORDINAL_SET_INIT;
    size_t n = ordinal_set_ranges(a, &ranges);
    ck_assert_int_eq(ordinal_set_from(a->low, ranges, 2 * n, &back, NULL), 0);
    ck_assert(ordinal_set_equal(a, &back));
}

static const int64_t LOWS[] = { 0, 1, 55, 60, 63, 64, 250, 255, 256, 1000003 };

START_TEST(every_subset_at_every_edge)
{
    for (size_t l = 0; l < COUNT_OF(LOWS); l++) {
        for (uint64_t subset = 0; subset < 1 << SMALL; subset++) {
            AUTO_FINI(ordinal_set) a = ORDINAL_SET_INIT;
            AUTO_FINI(ordinal_set) b = ORDINAL_SET_INIT;
            build(LOWS[l], subset, false, &a);
            build(LOWS[l], subset, true, &b);
            check_members(&a, LOWS[l], subset);
            ck_assert(ordinal_set_equal(&a, &b));
            check_round_trip(&a);
            for (int i = 0; i < SMALL; i++) /* a member is not new */
                ck_assert_int_eq(ordinal_set_add(&a, LOWS[l] + i, NULL), (subset >> i & 1) == 0);
            ck_assert_int_eq(a.low, LOWS[l] + SMALL);
            ck_assert_int_eq(a.high, a.low);
        }
    }
}
END_TEST

START_TEST(intersection_of_every_pair)
{
    for (size_t l = 0; l + 1 < COUNT_OF(LOWS); l += 3) {
        for (uint64_t x = 0; x < 1 << 6; x++) {
            for (uint64_t y = 0; y < 1 << 6; y++) {
                AUTO_FINI(ordinal_set) a = ORDINAL_SET_INIT;
                AUTO_FINI(ordinal_set) b = ORDINAL_SET_INIT;
                build(LOWS[l], x << 4, true, &a);
                build(LOWS[l] + 3, y, false, &b); /* its low is 3 higher: low .. low+2 are in */
                ordinal_set_intersect(&a, &b);
                uint64_t in_b = y << 3 | 7;
                check_members(&a, LOWS[l], x << 4 & in_b);
            }
        }
    }
}
END_TEST

/* A moving window of ordinals in random order, compared with a plain array. */
START_TEST(long_random_walk)
{
    enum { TOTAL = 20000, WINDOW = 300 };
    auto_free bool *in = xcalloc(TOTAL + WINDOW, sizeof(*in));
    AUTO_FINI(ordinal_set) a = ORDINAL_SET_INIT;
    struct rng r = rng_at(3, RNG_TEST, 0, 0);
    int64_t low = 0, count = 0;

    while (low < TOTAL) {
        int64_t ordinal = MAX(0, low - 5) + (int64_t)rng_below(&r, WINDOW);
        if (ordinal_set_add(&a, ordinal, NULL) != !in[ordinal])
            ck_abort_msg("ordinal %lld", (long long)ordinal);
        count += !in[ordinal];
        in[ordinal] = true;
        while (in[low])
            low++;
        ck_assert_int_eq(a.low, low);
    }
    ck_assert_int_eq(ordinal_set_count(&a), count);
    ck_assert_uint_le(a.words, 16); /* memory follows the window, not the ordinals */
    check_round_trip(&a);
}
END_TEST

START_TEST(intersection_of_far_apart_sets)
{
    AUTO_FINI(ordinal_set) a = ORDINAL_SET_INIT;
    AUTO_FINI(ordinal_set) b = ORDINAL_SET_INIT;
    int64_t sparse[] = { 500, 501, 700, 900 };
    ck_assert_int_eq(ordinal_set_from(0, sparse, 4, &a, NULL), 0);
    ck_assert_int_eq(ordinal_set_from(800, NULL, 0, &b, NULL), 0);
    ordinal_set_intersect(&a, &b);
    ck_assert_int_eq(a.low, 0);
    ck_assert_int_eq(ordinal_set_count(&a), 101);
    ck_assert(ordinal_set_has(&a, 500) && ordinal_set_has(&a, 799) && !ordinal_set_has(&a, 800));

    AUTO_FINI(ordinal_set) none = ORDINAL_SET_INIT;
    ordinal_set_intersect(&a, &none);
    ck_assert_int_eq(ordinal_set_count(&a), 0);
}
END_TEST

START_TEST(copies_are_independent)
{
    AUTO_FINI(ordinal_set) a = ORDINAL_SET_INIT;
    AUTO_FINI(ordinal_set) b = ORDINAL_SET_INIT;
    ordinal_set_add(&a, 400, NULL);
    ordinal_set_copy(&b, &a);
    ordinal_set_add(&b, 401, NULL);
    ck_assert(!ordinal_set_has(&a, 401));
    ordinal_set_copy(&b, &a);
    ck_assert(ordinal_set_equal(&a, &b));
}
END_TEST

START_TEST(bad_ordinals_are_refused)
{
    AUTO_FINI(ordinal_set) a = ORDINAL_SET_INIT;
    struct err e;
    ck_assert_int_eq(ordinal_set_add(&a, -1, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_int_eq(ordinal_set_add(&a, ORDINAL_SET_SPAN_MAX, &e), -1);
    ck_assert_int_eq(ordinal_set_add(&a, INT64_MAX, &e), -1);
    ck_assert_int_eq(ordinal_set_add(&a, ORDINAL_SET_SPAN_MAX - 1, &e), 1);
    ck_assert_int_eq(ordinal_set_count(&a), 1);
}
END_TEST

START_TEST(bad_ranges_are_refused)
{
    static const struct {
        int64_t low;
        size_t n;
        int64_t r[4];
    } CASES[] = {
        { -1, 0, { 0 } },
        { INT64_MAX, 0, { 0 } },
        { 5, 1, { 6 } },
        { 5, 2, { 4, 6 } },
        { 5, 2, { 7, 7 } },
        { 5, 2, { 8, 7 } },
        { 5, 4, { 6, 9, 8, 10 } },
        { 5, 4, { 8, 9, 6, 7 } },
        { 5, 2, { 6, 6 + ORDINAL_SET_SPAN_MAX } },
        { 5, 2, { INT64_MIN, INT64_MAX } },
        { 5, 2, { 6, INT64_MAX } },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct ordinal_set a = { .low = 77 };
        struct err e;
        ck_assert_msg(ordinal_set_from(CASES[i].low, CASES[i].r, CASES[i].n, &a, &e) == -1, "case %zu", i);
        ck_assert_int_eq(e.code, ERR_INPUT);
        ck_assert_int_eq(a.low, 77);
    }
    /* ranges that touch low or one another are one */
    AUTO_FINI(ordinal_set) a = ORDINAL_SET_INIT;
    ck_assert_int_eq(ordinal_set_from(5, (int64_t[]){ 5, 7, 7, 9 }, 4, &a, NULL), 0);
    ck_assert_int_eq(a.low, 9);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("ordinal_set");
    TCase *c = tcase_create("all");
    tcase_add_test(c, every_subset_at_every_edge);
    tcase_add_test(c, intersection_of_every_pair);
    tcase_add_test(c, long_random_walk);
    tcase_add_test(c, intersection_of_far_apart_sets);
    tcase_add_test(c, copies_are_independent);
    tcase_add_test(c, bad_ordinals_are_refused);
    tcase_add_test(c, bad_ranges_are_refused);
    suite_add_tcase(s, c);
    return s;
}
