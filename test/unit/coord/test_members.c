/* What a member has been leased, and how many members there are. */
#include "check_main.h"
#include "coord/members.h"

START_TEST(ranges_that_were_leased)
{
    struct leased_ranges l = { 0 };
    ck_assert(!leased_ranges_has(&l, 0));
    leased_ranges_add(&l, 4, 8);
    leased_ranges_add(&l, 20, 21);
    for (int64_t i = 0; i < 30; i++)
        ck_assert_int_eq(leased_ranges_has(&l, i), (i >= 4 && i < 8) || i == 20);
}
END_TEST

START_TEST(neighbours_take_one_place)
{
    struct leased_ranges l = { 0 };
    for (int64_t i = 0; i < 10 * LEASED_RANGES; i++)
        leased_ranges_add(&l, 3 * i, 3 * i + 3);
    ck_assert(leased_ranges_has(&l, 0) && leased_ranges_has(&l, 30LL * LEASED_RANGES - 1));
    ck_assert(!leased_ranges_has(&l, 30LL * LEASED_RANGES));
}
END_TEST

START_TEST(the_oldest_range_is_forgotten)
{
    struct leased_ranges l = { 0 };
    for (int64_t i = 0; i < LEASED_RANGES; i++)
        leased_ranges_add(&l, 10 * i, 10 * i + 1);
    ck_assert(leased_ranges_has(&l, 0));
    leased_ranges_add(&l, 5, 6);
    ck_assert(!leased_ranges_has(&l, 0) && leased_ranges_has(&l, 5) && leased_ranges_has(&l, 10));
}
END_TEST

/* One that has left gives its place to another. */
START_TEST(so_many_members_at_most)
{
    struct members l = { .max = 3 };
    ck_assert_ptr_nonnull(members_add(&l, "worker-0"));
    ck_assert_ptr_nonnull(members_add(&l, "worker-1"));
    ck_assert_ptr_nonnull(members_add(&l, "evaluator-0"));
    for (size_t i = 0; i < l.n; i++)
        l.items[i].alive = true;
    members_find(&l, "evaluator-0")->role = ROLE_EVALUATOR;
    ck_assert_uint_eq(members_alive(&l, false), 3);
    ck_assert_uint_eq(members_alive(&l, true), 2);
    ck_assert_ptr_null(members_add(&l, "worker-2"));
    members_find(&l, "worker-0")->alive = false;
    ck_assert_ptr_nonnull(members_add(&l, "worker-2"));
    ck_assert_ptr_null(members_find(&l, "worker-0"));
    ck_assert_uint_eq(l.n, 3);
    members_fini(&l);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("members");
    TCase *t = tcase_create("all");
    tcase_add_test(t, ranges_that_were_leased);
    tcase_add_test(t, neighbours_take_one_place);
    tcase_add_test(t, the_oldest_range_is_forgotten);
    tcase_add_test(t, so_many_members_at_most);
    suite_add_tcase(s, t);
    return s;
}
