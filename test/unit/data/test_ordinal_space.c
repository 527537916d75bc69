#include "check_main.h"
#include "data/ordinal_space.h"

START_TEST(the_last_batch_may_be_short)
{
    struct ordinal_space s = { .examples = 100, .batch_size = 32 };
    ck_assert_int_eq(ordinal_space_batches(&s), 4);
    s.examples = 128;
    ck_assert_int_eq(ordinal_space_batches(&s), 4);
}
END_TEST

START_TEST(a_batch_has_at_most_the_examples_there_are)
{
    struct ordinal_space s = { .examples = 100, .batch_size = 32 };
    ck_assert_uint_eq(ordinal_space_rows(&s), 32);
    s.examples = 7;
    ck_assert_uint_eq(ordinal_space_rows(&s), 7);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/ordinal_space");
    TCase *t = tcase_create("ordinal_space");
    suite_add_tcase(s, t);
    tcase_add_test(t, the_last_batch_may_be_short);
    tcase_add_test(t, a_batch_has_at_most_the_examples_there_are);
    return s;
}
