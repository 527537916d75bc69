#include "check_main.h"
#include "chief/history.h"

#include <math.h>

#include "base/str.h"

static json_t *two_epochs(void)
{
    json_t *h = json_pack("{s:[], s:[]}", "epoch", "loss");
    history_add(h, 0);
    history_add(h, 1);
    return h;
}

START_TEST(entries_are_of_one_length)
{
    json_auto_t *h = two_epochs();
    double v = 0;
    history_set(h, 1, "loss", 0.25);
    history_set(h, 0, "val_loss", (double)INFINITY);
    history_set(h, 7, "loss", 1); /* no such epoch */
    ck_assert_int_eq(history_entries(h), 2);
    ck_assert_uint_eq(json_array_size(json_object_get(h, "val_loss")), 2);
    ck_assert(!history_find(h, 0, "loss", &v));
    ck_assert(history_find(h, 1, "loss", &v) && v == 0.25);
    ck_assert(history_find(h, 0, "val_loss", &v) && isinf(v)); /* a value that is not finite is recorded */
    ck_assert(history_last(h, "loss") == 0.25);
    ck_assert(isnan(history_last(h, "accuracy")));
}
END_TEST

START_TEST(levelling_cuts_and_fills)
{
    json_auto_t *h = two_epochs();
    history_set(h, 1, "loss", 0.25);
    history_level(h, 1);
    ck_assert_int_eq(history_entries(h), 1);
    history_level(h, 3);
    ck_assert_int_eq(history_entries(h), 3);
    ck_assert(json_is_null(json_array_get(json_object_get(h, "loss"), 2)));
    ck_assert_int_eq(json_integer_value(json_array_get(json_object_get(h, "epoch"), 2)), 2);
}
END_TEST

START_TEST(a_saved_history_is_taken)
{
    json_auto_t *h = two_epochs(), *saved = json_pack("{s:[i, i], s:[f, f]}", "epoch", 0, 1, "loss", 2.0, 1.0);
    json_auto_t *bad = json_pack("{s:i}", "loss", 1);
    struct node n = node_root(saved, NULL), wrong = node_root(bad, NULL);
    struct err e = { 0 };
    ck_assert(history_continues(saved, h));
    ck_ok_e(history_take(h, &n, 1, &e));
    ck_assert_int_eq(history_entries(h), 1);
    ck_assert(history_last(h, "loss") == 2.0);
    history_set(h, 0, "loss", 3.0);
    ck_assert(!history_continues(saved, h));
    ck_assert_int_eq(history_take(h, &wrong, 1, &e), -1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("history");
    TCase *t = tcase_create("history");
    tcase_add_test(t, entries_are_of_one_length);
    tcase_add_test(t, levelling_cuts_and_fills);
    tcase_add_test(t, a_saved_history_is_taken);
    suite_add_tcase(s, t);
    return s;
}
