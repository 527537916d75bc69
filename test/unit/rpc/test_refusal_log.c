#include "rpc/refusal_log.h"

#include "check_main.h"

START_TEST(the_same_line_comes_once_a_minute)
{
    struct refusal_limit l = { 0 };
    uint64_t left_out = 9;
    ck_assert(refusal_due(&l, 5, 0, &left_out) && left_out == 0);
    for (int i = 1; i <= 100; i++)
        ck_assert(!refusal_due(&l, 5, i, &left_out));
    ck_assert(!refusal_due(&l, 5, REFUSAL_EVERY_MS - 1, &left_out));
    ck_assert(refusal_due(&l, 5, REFUSAL_EVERY_MS, &left_out) && left_out == 101);
    ck_assert(refusal_due(&l, 5, 2 * REFUSAL_EVERY_MS, &left_out) && left_out == 0);
}
END_TEST

START_TEST(so_many_different_lines_come_a_minute)
{
    struct refusal_limit l = { 0 };
    uint64_t left_out;
    for (uint64_t key = 1; key <= REFUSAL_LINES; key++)
        ck_assert(refusal_due(&l, key, 10, &left_out));
    for (uint64_t key = 100; key < 1000; key++)
        ck_assert(!refusal_due(&l, key, 20, &left_out));
    ck_assert(!refusal_due(&l, 3, 30, &left_out));
    ck_assert(refusal_due(&l, 100, 10 + REFUSAL_EVERY_MS, &left_out) && left_out == 0);
    ck_assert(refusal_due(&l, 3, 10 + REFUSAL_EVERY_MS, &left_out) && left_out == 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("refusal_log");
    TCase *t = tcase_create("refusal_log");
    tcase_add_test(t, the_same_line_comes_once_a_minute);
    tcase_add_test(t, so_many_different_lines_come_a_minute);
    suite_add_tcase(s, t);
    return s;
}
