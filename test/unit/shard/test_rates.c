#include "check_main.h"

#include <math.h>

#include "shard/rates.h"

START_TEST(a_rate_holds_from_its_batch_to_the_next_one)
{
    AUTO_FINI(rates) r = RATES_INIT;
    ck_assert_double_eq(rates_at(&r, 5, 0.25), 0.25);
    rates_add(&r, 10, 0.5);
    rates_add(&r, 30, 2);
    rates_add(&r, 30, 3); /* another callback of the same epoch */
    const double want[] = { 0.25, 0.5, 0.5, 3, 3 };
    const int64_t at[] = { 9, 10, 29, 30, INT64_MAX };
    for (size_t i = 0; i < COUNT_OF(at); i++)
        ck_assert_double_eq(rates_at(&r, at[i], 0.25), want[i]);
}
END_TEST

START_TEST(what_makes_no_sense_is_refused)
{
    AUTO_FINI(rates) r = RATES_INIT;
    const int64_t twice[] = { 10, 10 }, before[] = { -1 }, fine[] = { 0, 10 };
    const double one[] = { 1, 1 }, below[] = { 1, -1 }, nan[] = { 1, (double)NAN }, huge[] = { 1, 1e39 };
    struct err e = { 0 };
    rates_add(&r, 7, 0.125);
    ck_assert_int_eq(rates_set(&r, twice, one, 2, &e), -1);
    ck_assert_int_eq(rates_set(&r, before, one, 1, &e), -1);
    ck_assert_int_eq(rates_set(&r, fine, below, 2, &e), -1);
    ck_assert_int_eq(rates_set(&r, fine, nan, 2, &e), -1);
    ck_assert_int_eq(rates_set(&r, fine, huge, 2, &e), -1);
    ck_assert_int_eq(rates_set(&r, fine, one, RATES_MAX + 1, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_double_eq(rates_at(&r, 8, 1), 0.125); /* as it was */
    ck_ok_e(rates_set(&r, fine, one, 2, &e));
    ck_ok_e(rates_set(&r, NULL, NULL, 0, &e));
    ck_assert_uint_eq(r.n, 0);
}
END_TEST

START_TEST(the_oldest_are_forgotten)
{
    AUTO_FINI(rates) r = RATES_INIT;
    for (int i = 0; i < RATES_MAX + 3; i++)
        rates_add(&r, i, i + 1);
    ck_assert_uint_eq(r.n, RATES_MAX);
    ck_assert_double_eq(rates_at(&r, RATES_MAX + 2, 0), RATES_MAX + 3);
    ck_assert_double_eq(rates_at(&r, 3, 0), 4);
    ck_assert_double_eq(rates_at(&r, 2, 0), 0);
}
END_TEST

START_TEST(json_keeps_every_bit)
{
    AUTO_FINI(rates) r = RATES_INIT;
    AUTO_FINI(rates) back = RATES_INIT;
    AUTO_FINI(buf) text = BUF_INIT;
    struct err e = { 0 };
    rates_add(&r, 10, (double)0.1F);
    rates_add(&r, 20, 1e-38);
    json_auto_t *v = rates_to_json(&r), *again = NULL, *bad = json_pack("[[i, f], [i, f]]", 5, 1.0, 4, 1.0);
    json_emit(v, &text);
    ck_ok_e(json_parse(text.data, text.len, "rates", &again, &e));
    struct node n = node_root(again, NULL), absent = node_root(NULL, NULL), wrong = node_root(bad, NULL);
    ck_ok_e(rates_from_json(&back, &n, &e));
    ck_assert_uint_eq(back.n, 2);
    ck_assert_double_eq(rates_at(&back, 10, 0), (double)0.1F);
    ck_assert_double_eq(rates_at(&back, 20, 0), 1e-38);
    ck_assert_int_eq(rates_from_json(&back, &wrong, &e), -1);
    ck_ok_e(rates_from_json(&back, &absent, &e));
    ck_assert_uint_eq(back.n, 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("rates");
    TCase *t = tcase_create("rates");
    tcase_add_test(t, a_rate_holds_from_its_batch_to_the_next_one);
    tcase_add_test(t, what_makes_no_sense_is_refused);
    tcase_add_test(t, the_oldest_are_forgotten);
    tcase_add_test(t, json_keeps_every_bit);
    suite_add_tcase(s, t);
    return s;
}
