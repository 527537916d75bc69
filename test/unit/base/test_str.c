#include "base/str.h"
#include "check_main.h"

#include <math.h>
#include <string.h>

START_TEST(comparisons)
{
    ck_assert(str_eq("a", "a") && !str_eq("a", "b") && !str_eq(NULL, "a") && !str_eq("a", NULL));
    ck_assert(str_eq(NULL, NULL));
    ck_assert(str_starts("worker-0", "worker") && !str_starts("wor", "worker") && str_starts("x", ""));
    ck_assert(str_ends("a.gz", ".gz") && !str_ends("gz", ".gz") && str_ends("x", ""));
}
END_TEST

static const struct {
    const char *text;
    bool good;
    int64_t value;
} WHOLE[] = {
    { "0", true, 0 },
    { "-5", true, -5 },
    { "100", true, 100 },
    { "+7", true, 7 },
    { "101", false, 0 },
    { "-6", false, 0 },
    { "", false, 0 },
    { " 1", false, 0 },
    { "1 ", false, 0 },
    { "1x", false, 0 },
    { "1.0", false, 0 },
    { "0x10", false, 0 },
    { "99999999999999999999", false, 0 },
    { "-", false, 0 },
};
START_TEST(whole_numbers)
{
    struct err e = { 0 };
    int64_t v = 42;
    ck_assert_int_eq(str_i64(WHOLE[_i].text, -5, 100, &v, &e), WHOLE[_i].good ? 0 : -1);
    ck_assert_int_eq(v, WHOLE[_i].good ? WHOLE[_i].value : 42);
    if (!WHOLE[_i].good)
        ck_assert_msg(err_is(&e, ERR_INPUT) && strstr(e.msg, WHOLE[_i].text) != NULL, "%s", e.msg);
}
END_TEST

START_TEST(a_range_is_named)
{
    struct err e = { 0 };
    int64_t v;
    ck_assert_int_eq(str_i64("101", -5, 100, &v, &e), -1);
    ck_assert_str_eq(e.msg, "101 is out of range; it must be -5 to 100");
}
END_TEST

START_TEST(real_numbers_and_truth)
{
    struct err e = { 0 };
    double d = 0;
    bool b = false;
    ck_assert(str_f64("1e-3", &d, &e) == 0 && d == 1e-3);
    ck_assert(str_f64("-2.5", &d, &e) == 0 && d == -2.5);
    ck_assert(str_f64("1e-320", &d, &e) == 0 && d > 0); /* subnormal is a number */
    ck_assert(str_f64("nan", &d, &e) == 0 && isnan(d));
    ck_assert_int_eq(str_f64("1e999", &d, &e), -1);
    ck_assert_int_eq(str_f64("1,5", &d, &e), -1);
    ck_assert_int_eq(str_f64("", &d, &e), -1);
    ck_assert(str_bool("Yes", &b, &e) == 0 && b);
    ck_assert(str_bool("off", &b, &e) == 0 && !b);
    ck_assert_int_eq(str_bool("maybe", &b, &e), -1);
    ck_assert_str_eq(e.msg, "'maybe' is neither true nor false");
}
END_TEST

static const char *const OPTIMIZERS[] = { "SGD",     "Adam",     "AdamW", NULL,  "RMSprop",
                                          "Adagrad", "Adadelta", "Nadam", "Ftrl" };
static const struct {
    const char *word, *want;
} MISSPELT[] = {
    { "Adamm", "Adam" },
    { "adam", "Adam" },
    { "RMSProp", "RMSprop" },
    { "rmsprob", "RMSprop" },
    { "AdaGrad", "Adagrad" },
    { "sgd", "SGD" },
    { "Adadelte", "Adadelta" },
    { "Lion", NULL },
    { "", NULL },
    { "x", NULL },
    { "qqqqqq", NULL },
    { "Flrt", "Ftrl" },
    { "sdg", "SGD" },
    { "sg", "SGD" },
    { "Ftlr", "Ftrl" },
    { "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL },
};
START_TEST(misspelt_words_find_their_neighbour)
{
    const char *got = str_nearest(MISSPELT[_i].word, OPTIMIZERS, COUNT_OF(OPTIMIZERS));
    ck_assert_msg(str_eq(got, MISSPELT[_i].want), "'%s' -> %s", MISSPELT[_i].word, got != NULL ? got : "nothing");
}
END_TEST

START_TEST(suggestions_read_as_a_sentence)
{
    char hint[40];
    ck_assert_str_eq(str_did_you_mean("Adamm", OPTIMIZERS, COUNT_OF(OPTIMIZERS), hint, sizeof(hint)),
                     "; did you mean 'Adam'?");
    ck_assert_str_eq(str_did_you_mean("qqqq", OPTIMIZERS, COUNT_OF(OPTIMIZERS), hint, sizeof(hint)), "");
    char tiny[8];
    ck_assert_str_eq(str_did_you_mean("Adamm", OPTIMIZERS, COUNT_OF(OPTIMIZERS), tiny, sizeof(tiny)), "; did y");
    static const char *const LOSSES[] = { "binary_crossentropy", NULL, "mse", "sparse_categorical_crossentropy",
                                          "huber" };
    char room[96];
    ck_assert_str_eq(str_did_you_mean("crossentropy", LOSSES, COUNT_OF(LOSSES), room, sizeof(room)),
                     "; did you mean 'binary_crossentropy' or 'sparse_categorical_crossentropy'?");
    ck_assert_str_eq(str_did_you_mean("categorical", LOSSES, COUNT_OF(LOSSES), room, sizeof(room)),
                     "; did you mean 'sparse_categorical_crossentropy'?");
    ck_assert_str_eq(str_did_you_mean("crossentropy", LOSSES, COUNT_OF(LOSSES), hint, sizeof(hint)), "");
    ck_assert_str_eq(str_did_you_mean("ary", LOSSES, COUNT_OF(LOSSES), room, sizeof(room)), "");
}
END_TEST

START_TEST(formatting_says_when_it_was_cut)
{
    char out[5];
    ck_assert(str_fmt(out, sizeof(out), "%s", "abcd"));
    ck_assert_str_eq(out, "abcd");
    ck_assert(!str_fmt(out, sizeof(out), "%s", "abcde"));
    ck_assert_str_eq(out, "abcd");
}
END_TEST

static const struct {
    uint64_t bytes;
    const char *text;
} BYTES[] = { { 0, "0 B" },           { 812, "812 B" },       { 1023, "1023 B" },         { 1024, "1.0 KiB" },
              { 1572864, "1.5 MiB" }, { 1048575, "1.0 MiB" }, { UINT64_MAX, "16.0 EiB" }, { 1 << 30, "1.0 GiB" } };
START_TEST(bytes_for_people)
{
    char out[32];
    ck_assert_str_eq(str_bytes(BYTES[_i].bytes, out), BYTES[_i].text);
}
END_TEST

static const struct {
    double seconds;
    const char *text;
} DURATIONS[] = { { 0, "0 ms" },         { 0.18, "180 ms" },       { 0.9999, "1 s" },    { 1.5, "1.5 s" },
                  { 42, "42 s" },        { 59.9, "1 min" },        { 60, "1 min" },      { 125, "2 min 5 s" },
                  { 7380, "2 h 3 min" }, { 86400 * 3, "3 d" },     { 90000, "1 d 1 h" }, { (double)NAN, "?" },
                  { -1, "?" },           { (double)INFINITY, "?" } };
START_TEST(durations_for_people)
{
    char out[32];
    ck_assert_str_eq(str_duration(DURATIONS[_i].seconds, out), DURATIONS[_i].text);
}
END_TEST

static const struct {
    float v;
    const char *text;
} FLOATS[] = { { 0.905f, "0.905" },
               { 0.1f, "0.1" },
               { 1, "1" },
               { 60, "60" },
               { -0.0f, "-0" },
               { 1e-45f, "1.4013e-45" },
               { 16777216, "16777216" },
               { 0.00018561725f, "0.00018561725" },
               { 1018.95447f, "1018.95447" } };
START_TEST(floats_have_the_fewest_digits)
{
    char text[32];
    ck_assert_str_eq(str_float(FLOATS[_i].v, text), FLOATS[_i].text);
    ck_assert(strtof(text, NULL) == FLOATS[_i].v);
    ck_assert(str_float_decimal(FLOATS[_i].v) == strtod(FLOATS[_i].text, NULL));
}
END_TEST

START_TEST(doubles_have_the_fewest_digits)
{
    char text[32];
    ck_assert_str_eq(str_double(0.905, text), "0.905");
    ck_assert_str_eq(str_double((double)0.905f, text), "0.9049999713897705");
    ck_assert_str_eq(str_double(1.0 / 3, text), "0.3333333333333333");
    ck_assert_str_eq(str_double(0.1 + 0.2, text), "0.30000000000000004");
}
END_TEST

START_TEST(lists_split_and_find)
{
    AUTO_FINI(strlist) l = { 0 };
    strlist_split(&l, " a:1 , b:2,, ,c:3", ',');
    ck_assert_uint_eq(l.n, 3);
    ck_assert_str_eq(l.items[0], "a:1");
    ck_assert_str_eq(l.items[1], "b:2");
    ck_assert_str_eq(l.items[2], "c:3");
    ck_assert(strlist_has(&l, "b:2") && !strlist_has(&l, "b"));
    for (int i = 0; i < 100; i++)
        strlist_add(&l, "more");
    ck_assert_uint_eq(l.n, 103);
}
END_TEST

START_TEST(lists_are_the_same_in_the_same_order)
{
    static const char *const LISTS[] = { "", "a", "b", "a,b", "b,a", "a,b,c" };
    for (size_t i = 0; i < COUNT_OF(LISTS); i++)
        for (size_t k = 0; k < COUNT_OF(LISTS); k++) {
            AUTO_FINI(strlist) a = { .n = 0 }, b = { .n = 0 };
            strlist_split(&a, LISTS[i], ',');
            strlist_split(&b, LISTS[k], ',');
            ck_assert_msg(strlist_same(&a, &b) == (i == k), "'%s' and '%s'", LISTS[i], LISTS[k]);
        }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("str");
    TCase *t = tcase_create("str");
    tcase_add_test(t, comparisons);
    tcase_add_loop_test(t, whole_numbers, 0, COUNT_OF(WHOLE));
    tcase_add_test(t, a_range_is_named);
    tcase_add_test(t, real_numbers_and_truth);
    tcase_add_loop_test(t, misspelt_words_find_their_neighbour, 0, COUNT_OF(MISSPELT));
    tcase_add_test(t, suggestions_read_as_a_sentence);
    tcase_add_test(t, formatting_says_when_it_was_cut);
    tcase_add_loop_test(t, bytes_for_people, 0, COUNT_OF(BYTES));
    tcase_add_loop_test(t, durations_for_people, 0, COUNT_OF(DURATIONS));
    tcase_add_loop_test(t, floats_have_the_fewest_digits, 0, COUNT_OF(FLOATS));
    tcase_add_test(t, doubles_have_the_fewest_digits);
    tcase_add_test(t, lists_split_and_find);
    tcase_add_test(t, lists_are_the_same_in_the_same_order);
    suite_add_tcase(s, t);
    return s;
}
