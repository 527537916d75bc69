#include "check_main.h"
#include "cli/curve_scale.h"

#include <string.h>

#include "base/buf.h"

/* The ticks of a range, as a reader sees them. */
static const struct {
    double low, high;
    bool log;
    const char *ticks;
} CASES[] = {
    { 0, 1, false, "0 0.2 0.4 0.6 0.8 1" },
    { 0.5, 0.5, false, "0.46 0.48 0.5 0.52 0.54" },
    { 0, 0, false, "-0.4 -0.2 0 0.2 0.4" },
    { 0, 1500, false, "0 200 400 600 800 1k 1.2k 1.4k" },
    { 0, 30000, false, "0 5k 10k 15k 20k 25k 30k" },
    { 0, 3e6, false, "0 500k 1M 1.5M 2M 2.5M 3M" },
    { 0, 3e12, false, "0 500G 1T 1.5T 2T 2.5T 3T" },
    { 1e18, 3e18, false, "1e+18 1.2e+18 1.4e+18 1.6e+18 1.8e+18 2e+18 2.2e+18 2.4e+18 2.6e+18 2.8e+18 3e+18" },
    { 1234500, 1234900, false, "1234.5k 1234.55k 1234.6k 1234.65k 1234.7k 1234.75k 1234.8k 1234.85k 1234.9k" },
    { 1000001, 1000004, false, "1000001 1000001.5 1000002 1000002.5 1000003 1000003.5 1000004" },
    { -3e-7, 2e-7, false, "-3e-07 -2e-07 -1e-07 0 1e-07 2e-07" },
    { 0.01, 1, true, "0.01 0.02 0.05 0.1 0.2 0.5 1" },
    { 0.03, 20, true, "0.05 0.1 0.2 0.5 1 2 5 10 20" },
    { 1e-5, 1e4, true, "0.0001 0.01 1 100 10k" },
    { 0.5, 3e6, true, "1 10 100 1k 10k 100k 1M" },
};

START_TEST(ticks_are_round)
{
    AUTO_FINI(buf) got = BUF_INIT;
    struct curve_scale s = curve_scale_new(100, 0);
    char text[32];
    double v;
    curve_scale_include(&s, CASES[_i].high);
    curve_scale_include(&s, CASES[_i].low);
    if (CASES[_i].log) {
        ck_assert(curve_scale_spans_decades(&s));
        curve_scale_settle_log(&s, 0);
    } else {
        curve_scale_settle(&s, 0, 6);
    }
    for (size_t i = 0; curve_scale_tick(&s, i, &v); i++) {
        ck_assert_int_lt((int)i, 12);
        ck_assert(curve_scale_place(&s, v) >= -1e-6 && curve_scale_place(&s, v) <= 100 + 1e-6);
        buf_printf(&got, "%s%s", i > 0 ? " " : "", curve_scale_text(&s, v, text));
    }
    ck_assert_str_eq(got.data, CASES[_i].ticks);
}
END_TEST

START_TEST(only_positive_values_span_decades)
{
    static const double PAIRS[][3] = {
        { 1, 100, 1 }, { 1, 99, 0 }, { 0, 100, 0 }, { -100, -1, 0 }, { 1e-300, 1e300, 1 }
    };
    for (size_t i = 0; i < COUNT_OF(PAIRS); i++) {
        struct curve_scale s = curve_scale_new(0, 1);
        ck_assert(!curve_scale_spans_decades(&s));
        curve_scale_include(&s, PAIRS[i][0]);
        curve_scale_include(&s, PAIRS[i][1]);
        ck_assert_int_eq(curve_scale_spans_decades(&s), PAIRS[i][2] > 0);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("cli/curve_scale");
    TCase *t = tcase_create("curve_scale");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, ticks_are_round, 0, COUNT_OF(CASES));
    tcase_add_test(t, only_positive_values_span_decades);
    return s;
}
