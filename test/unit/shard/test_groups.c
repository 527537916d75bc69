#include "check_main.h"

#include "base/mem.h"
#include "shard/groups.h"

/* 10 batches of 4 an epoch, the last one of 3; groups of 4: 4, 4, 2. */
static const struct groups G = { .size = 4, .batches = 10, .examples = 4, .rest = 3 };

START_TEST(groups_never_cross_an_epoch)
{
    static const struct {
        int64_t ordinal, first, end, below;
    } WANT[] = {
        { 0, 0, 4, 0 },    { 3, 0, 4, 0 },    { 4, 4, 8, 1 },    { 8, 8, 10, 2 },   { 9, 8, 10, 2 },
        { 10, 10, 14, 3 }, { 19, 18, 20, 5 }, { 20, 20, 24, 6 }, { 29, 28, 30, 8 },
    };
    for (size_t i = 0; i < COUNT_OF(WANT); i++) {
        ck_assert_int_eq(groups_first(&G, WANT[i].ordinal), WANT[i].first);
        ck_assert_int_eq(groups_end(&G, WANT[i].ordinal), WANT[i].end);
        ck_assert_int_eq(groups_below(&G, WANT[i].ordinal), WANT[i].below);
        ck_assert_int_eq(groups_ordinal(&G, WANT[i].below), WANT[i].first);
    }
}
END_TEST

START_TEST(groups_of_one_are_batches)
{
    const struct groups one = { .size = 1, .batches = 10, .examples = 4, .rest = 3 };
    for (int64_t i = 0; i < 35; i++) {
        ck_assert_int_eq(groups_first(&one, i), i);
        ck_assert_int_eq(groups_end(&one, i), i + 1);
        ck_assert_int_eq(groups_below(&one, i), i);
        ck_assert_int_eq(groups_ordinal(&one, i), i);
        ck_assert_double_eq((double)groups_weight(&one, i), 1);
    }
}
END_TEST

/* The weights of a group are in the ratio of the examples, and their mean is 1. */
START_TEST(each_example_counts_the_same)
{
    for (int64_t i = 0; i < 8; i++)
        ck_assert_double_eq((double)groups_weight(&G, i), 1);
    ck_assert_double_eq_tol((double)groups_weight(&G, 8), 8.0 / 7, 1e-7);
    ck_assert_double_eq_tol((double)groups_weight(&G, 9), 6.0 / 7, 1e-7);
    ck_assert_double_eq((double)groups_weight(&G, 10), 1);
    ck_assert_double_eq((double)groups_weight(&G, 19), (double)groups_weight(&G, 9));
}
END_TEST

START_TEST(groups_of_a_space)
{
    const struct ordinal_space space = { .examples = 39, .batch_size = 4 }, even = { .examples = 40, .batch_size = 4 };
    struct groups g = groups_of(&space, 4), h = groups_of(&even, 4);
    ck_assert(g.size == 4 && g.batches == 10 && g.examples == 4 && g.rest == 3);
    ck_assert(h.batches == 10 && h.rest == 4);
}
END_TEST

START_TEST(groups_that_differ)
{
    struct groups g = G;
    ck_assert(groups_same(&G, &g));
    int64_t *const field[] = { &g.size, &g.batches, &g.examples, &g.rest };
    for (size_t i = 0; i < COUNT_OF(field); i++) {
        ++*field[i];
        ck_assert(!groups_same(&G, &g));
        --*field[i];
    }
}
END_TEST

START_TEST(what_the_wire_may_say)
{
    struct err e = { 0 };
    ck_ok_e(groups_check(&G, &e));
    for (int i = 0; i < 7; i++) {
        struct groups g = G;
        int64_t *const field[] = { &g.size, &g.size, &g.batches, &g.batches, &g.examples, &g.rest, &g.rest };
        static const int64_t BAD[] = { 0, GROUP_MAX + 1, 0, INT64_MAX, 0, 0, 5 };
        *field[i] = BAD[i];
        ck_fails(groups_check(&g, &e), ERR_INPUT, i < 2 ? "must be 1 to 10000" : "an epoch of");
    }
    ck_assert_int_gt(groups_ordinal(&G, INT64_MAX), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("groups");
    TCase *c = tcase_create("all");
    tcase_add_test(c, groups_never_cross_an_epoch);
    tcase_add_test(c, groups_of_one_are_batches);
    tcase_add_test(c, each_example_counts_the_same);
    tcase_add_test(c, groups_of_a_space);
    tcase_add_test(c, groups_that_differ);
    tcase_add_test(c, what_the_wire_may_say);
    suite_add_tcase(s, c);
    return s;
}
