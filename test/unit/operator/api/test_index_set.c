#include "check_main.h"

#include <stdlib.h>

#include "api/index_set.h"

START_TEST(indexes_join_to_ranges)
{
    static const int ADD[] = { 5, 0, 2, 1, 9, 7, 8 };
    AUTO_FINI(index_set) s = { .n = 0 };
    AUTO_FINI(buf) text = BUF_INIT;
    for (size_t i = 0; i < COUNT_OF(ADD); i++)
        ck_assert(index_set_add(&s, ADD[i]));
    ck_assert(!index_set_add(&s, 2));
    ck_assert(!index_set_add(&s, -1));
    index_set_emit(&s, &text);
    ck_assert_str_eq(text.data, "0-2,5,7-9");
    ck_assert_int_eq(index_set_count(&s), 7);
    for (int i = 0; i < 12; i++)
        ck_assert_msg(index_set_has(&s, i) == (i != 3 && i != 4 && i != 6 && i < 10), "%d", i);
}
END_TEST

START_TEST(any_order_gives_the_same_set)
{
    for (int mask = 0; mask < 256; mask++)
        for (int turn = 0; turn < 8; turn++) {
            AUTO_FINI(index_set) s = { .n = 0 };
            AUTO_FINI(index_set) again = { .n = 0 };
            AUTO_FINI(buf) text = BUF_INIT;
            struct err e = { .code = ERR_NONE };
            for (int i = 0; i < 8; i++)
                if (mask & 1 << (i * 3 + turn) % 8)
                    ck_assert(index_set_add(&s, (i * 3 + turn) % 8));
            index_set_emit(&s, &text);
            ck_ok_e(index_set_parse(text.data, &again, &e));
            for (int i = 0; i < 8; i++)
                ck_assert(index_set_has(&again, i) == ((mask >> i & 1) != 0));
            ck_assert_int_eq(index_set_count(&again), __builtin_popcount((unsigned)mask));
        }
}
END_TEST

START_TEST(an_index_can_be_taken_out)
{
    for (int mask = 0; mask < 256; mask++)
        for (int out = -1; out <= 8; out++) {
            AUTO_FINI(index_set) s = { .n = 0 };
            for (int i = 0; i < 8; i++)
                if (mask & 1 << i)
                    ck_assert(index_set_add(&s, i));
            bool was = out >= 0 && (mask >> out & 1) != 0;
            ck_assert(index_set_remove(&s, out) == was);
            for (int i = 0; i < 8; i++)
                ck_assert_msg(index_set_has(&s, i) == ((mask >> i & 1) != 0 && i != out), "%d of %x without %d", i,
                              (unsigned)mask, out);
            ck_assert_int_eq(index_set_count(&s), __builtin_popcount((unsigned)mask) - was);
        }
}
END_TEST

START_TEST(what_is_no_list_of_indexes_is_refused)
{
    static const char *const BAD[] = { "x",    "1-",  "-1",          "3-1",   "1,1",  "5,2",
                                       "1 ,2", "1;2", "99999999999", "1-2-3", "0-4,4" };
    for (size_t i = 0; i < COUNT_OF(BAD); i++) {
        struct err e = { .code = ERR_NONE };
        struct index_set s = { .n = 0 };
        ck_assert_msg(index_set_parse(BAD[i], &s, &e) == -1, "%s", BAD[i]);
        ck_assert_int_eq(e.code, ERR_INPUT);
    }
}
END_TEST

START_TEST(counts_of_indexes_stay_sorted)
{
    struct index_counts c = { .n = 0 };
    index_counts_set(&c, 7, 1);
    index_counts_set(&c, 2, 1);
    index_counts_set(&c, 7, 2);
    ck_assert_int_eq(index_counts_get(&c, 7), 2);
    ck_assert_int_eq(index_counts_get(&c, 2), 1);
    ck_assert_int_eq(index_counts_get(&c, 3), 0);
    ck_assert_uint_eq(c.n, 2);
    ck_assert_int_eq(c.items[0].index, 2);
    free(c.items);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("index_set");
    TCase *t = tcase_create("index_set");
    tcase_add_test(t, indexes_join_to_ranges);
    tcase_add_test(t, any_order_gives_the_same_set);
    tcase_add_test(t, an_index_can_be_taken_out);
    tcase_add_test(t, what_is_no_list_of_indexes_is_refused);
    tcase_add_test(t, counts_of_indexes_stay_sorted);
    suite_add_tcase(s, t);
    return s;
}
