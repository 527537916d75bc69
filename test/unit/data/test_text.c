#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "check_main.h"
#include "data/text.h"

static struct text_field field_of(const char *s)
{
    return (struct text_field){ .p = (const unsigned char *)s, .end = (const unsigned char *)s + strlen(s) };
}

static const char *const NUMBERS[] = {
    "0",
    "-0",
    "1",
    "+1",
    "1.",
    ".5",
    "-.5",
    "1e3",
    "1E+3",
    "1e-3",
    "1.25e2",
    "0.1",
    "0.2",
    "0.3",
    "123456789",
    "3.14159265358979",
    "9007199254740992",
    "9007199254740993",
    "9007199254740995",
    "18446744073709551616",
    "1e22",
    "1e23",
    "1e-22",
    "1e-23",
    "123456789012345678901234567890",
    "0.000000000000000000000000000000000000012345",
    "1.7976931348623157e308",
    "5e-324",
    "2.2250738585072011e-308",
    "00000000000000000000000000000001",
    "0.00000000000000000000000000000001e32",
    "1e-400",
    "100000000000000000000000000000000000e-35",
    "0e99999999999",
    "6.02214076e23",
    "9999999999999999999",
    "99999999999999999999",
};

START_TEST(numbers_are_those_of_strtod)
{
    const char *s = NUMBERS[_i];
    struct text_field f = field_of(s);
    double v, want = strtod(s, NULL);
    ck_assert_msg(text_number(&f, &v), "%s", s);
    ck_assert_msg(memcmp(&v, &want, sizeof(v)) == 0, "%s: %.17g, strtod says %.17g", s, v, want);
}
END_TEST

START_TEST(random_numbers_are_those_of_strtod)
{
    static const int DIGITS[] = { 17, 6, 3, 9, 1 };
    struct rng r = rng_at(3, RNG_TEST, 0, 0);
    for (int i = 0; i < 20000; i++) {
        char s[400];
        double x = rng_normal(&r) * pow(10, (double)rng_below(&r, 60) - 30), v;
        if (i % 2 == 0)
            snprintf(s, sizeof(s), "%.*g", DIGITS[i % 5], x);
        else
            snprintf(s, sizeof(s), "%.*f", DIGITS[i % 5], x);
        struct text_field f = field_of(s);
        double want = strtod(s, NULL);
        if (!text_number(&f, &v) || memcmp(&v, &want, sizeof(v)) != 0)
            ck_abort_msg("%s: %.17g, strtod says %.17g", s, v, want);
    }
}
END_TEST

static const char *const NO_NUMBERS[] = {
    "",
    "-",
    "+",
    ".",
    "e",
    "e5",
    ".e5",
    "1e",
    "1e+",
    "1..2",
    "1.2.3",
    "--1",
    "1 2",
    " 1",
    "1 ",
    "0x10",
    "inf",
    "nan",
    "-inf",
    "infinity",
    "1,5",
    "1e999",
    "-1e400",
    "1_000",
    "1f",
    ("\xc2\xa0"
     "1"),
    "\"1\"",
};

START_TEST(other_texts_are_no_numbers)
{
    struct text_field f = field_of(NO_NUMBERS[_i]);
    double v;
    ck_assert_msg(!text_number(&f, &v), "%s", NO_NUMBERS[_i]);
}
END_TEST

static bool take_short(const char *text, size_t n, const unsigned char **ret_end, double *ret,
                       enum text_result *ret_more)
{
    const unsigned char *p = (const unsigned char *)text;
    bool taken = text_short_number(&p, p + n, ',', ret, ret_more);
    *ret_end = p;
    if (!taken && p != (const unsigned char *)text)
        ck_abort_msg("%s: it was left, but the place moved", text);
    return taken;
}

/* What it takes is what text_field() and text_number() make of it. */
static bool assert_short_number(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + n, *got_end;
    struct text_field f;
    enum text_result got_more;
    double got, want;
    if (!take_short(text, n, &got_end, &got, &got_more))
        return false;
    enum text_result more = text_field(&p, end, ',', &f);
    if (!text_number(&f, &want) || memcmp(&got, &want, sizeof(got)) != 0 || p != got_end || more != got_more)
        ck_abort_msg("'%.*s': got %.17g", (int)n, text, got);
    return true;
}

static const char *const SHORT_NUMBERS[] = {
    "5,6",      "-3.25,",           "0\n7", "12", "123456789012345,", "-0,", "1.,", ".5\n", "1.23456789012345,1",
    "00000.1,", "-123456.789012345"
};
static const char *const NOT_SHORT_NUMBERS[] = { "",
                                                 ",1",
                                                 "\n",
                                                 "-,",
                                                 ".,",
                                                 "-",
                                                 "1 ,",
                                                 " 1,",
                                                 "+1,",
                                                 "1e3,",
                                                 "1\r\n",
                                                 "1\"2,",
                                                 "\"1\",2",
                                                 "1234567890123456,",
                                                 "1..2",
                                                 "x,",
                                                 "1;2",
                                                 "--1,",
                                                 "0.0000000000000001" };

START_TEST(short_numbers_are_read_in_one_pass)
{
    for (size_t i = 0; i < COUNT_OF(SHORT_NUMBERS); i++)
        ck_assert_msg(assert_short_number(SHORT_NUMBERS[i], strlen(SHORT_NUMBERS[i])), "%s", SHORT_NUMBERS[i]);
    for (size_t i = 0; i < COUNT_OF(NOT_SHORT_NUMBERS); i++)
        ck_assert_msg(!assert_short_number(NOT_SHORT_NUMBERS[i], strlen(NOT_SHORT_NUMBERS[i])), "%s",
                      NOT_SHORT_NUMBERS[i]);
    struct rng r = rng_at(4, RNG_TEST, 0, 0);
    int taken = 0;
    for (int i = 0; i < 200000; i++) {
        char s[20];
        size_t n = rng_below(&r, sizeof(s));
        for (size_t k = 0; k < n; k++)
            s[k] = "01234567890123456789..-,\n\r \"e"[rng_below(&r, 29)];
        taken += assert_short_number(s, n);
    }
    ck_assert_int_gt(taken, 20000);
}
END_TEST

/* Records as "[field|field] [field]", errors as !N at byte N. */
static void render(const char *text, size_t n, char delimiter, char *out, size_t out_size)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + n;
    size_t at = 0;
    out[0] = '\0';
    while ((p = text_record(p, end)) < end) {
        enum text_result more;
        const char *before = at > 0 ? " [" : "[";
        do {
            struct text_field f;
            char value[64];
            more = text_field(&p, end, delimiter, &f);
            if (more > TEXT_LAST) {
                snprintf(out + at, out_size - at, " !%td", p - (const unsigned char *)text);
                return;
            }
            text_copy(&f, value, sizeof(value));
            at += (size_t)snprintf(out + at, out_size - at, "%s%s", before, value);
            before = "|";
        } while (more == TEXT_MORE);
        at += (size_t)snprintf(out + at, out_size - at, "]");
    }
}

static const struct {
    const char *text, *want;
} RECORDS[] = {
    { "", "" },
    { "\n\r\n\n", "" },
    { "a", "[a]" },
    { "a,b\nc,d\n", "[a|b] [c|d]" },
    { "a,b\r\nc,d", "[a|b] [c|d]" },
    { "a,b\r\nc,d\r", "[a|b] [c|d]" },
    { ",\n", "[|]" },
    { "a,", "[a|]" },
    { "\"a,\"\"b\"\"\n\",c\n", "[a,\"b\"\n|c]" },
    { "\"\",\"\"\n", "[|]" },
    { "\"\"\"\"", "[\"]" },
    { "5\" disk,1\n", "[5\" disk|1]" },
    { "\n\n a , b \n", "[ a | b ]" },
    { "\"a", " !0" },
    { "x,\"a\"\"", "[x !2" },
    { "\"a\"b,c", " !3" },
    { "\"a\"\r,c", " !3" },
};

START_TEST(records_are_cut_as_rfc_4180_says)
{
    char got[256];
    render(RECORDS[_i].text, strlen(RECORDS[_i].text), ',', got, sizeof(got));
    ck_assert_str_eq(got, RECORDS[_i].want);
}
END_TEST

/* Skipping a field must end where reading it ends, whatever the record holds. */
START_TEST(skipping_a_record_ends_where_reading_it_ends)
{
    static const char *const PIECES[] = { "a", ",", "\n", "\r\n", "\"x\"", "\"x,\n\"", "\"\"\"\"", "b\"c", "\n\n" };
    struct rng r = rng_at(4, RNG_TEST, 0, 0);
    for (int i = 0; i < 20000; i++) {
        char text[64] = "";
        for (uint64_t j = rng_below(&r, 8); j > 0; j--)
            strcat(text, PIECES[rng_below(&r, COUNT_OF(PIECES))]);
        const unsigned char *end = (const unsigned char *)text + strlen(text);
        const unsigned char *p = text_record((const unsigned char *)text, end), *q = (const unsigned char *)text;
        if (p == end)
            continue;
        enum text_result more;
        struct text_field f;
        do {
            more = text_field(&p, end, ',', &f);
        } while (more == TEXT_MORE);
        if (more != TEXT_LAST)
            continue; /* the index pass refuses it */
        q = text_skip(q, end, ',');
        if (p != q)
            ck_abort_msg("'%s': reading ends at %td, skipping at %td", text, p - (const unsigned char *)text,
                         q - (const unsigned char *)text);
    }
}
END_TEST

START_TEST(a_place_is_line_and_column)
{
    static const unsigned char text[] = "ab\n\ncd\n";
    static const struct {
        size_t at, line, column;
    } WANT[] = { { 0, 1, 1 }, { 1, 1, 2 }, { 2, 1, 3 }, { 3, 2, 1 }, { 4, 3, 1 }, { 5, 3, 2 }, { 7, 4, 1 } };
    for (size_t i = 0; i < COUNT_OF(WANT); i++) {
        size_t line, column;
        text_place(text, text + WANT[i].at, &line, &column);
        ck_assert_uint_eq(line, WANT[i].line);
        ck_assert_uint_eq(column, WANT[i].column);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/text");
    TCase *t = tcase_create("text");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, numbers_are_those_of_strtod, 0, COUNT_OF(NUMBERS));
    tcase_add_test(t, random_numbers_are_those_of_strtod);
    tcase_add_test(t, short_numbers_are_read_in_one_pass);
    tcase_add_loop_test(t, other_texts_are_no_numbers, 0, COUNT_OF(NO_NUMBERS));
    tcase_add_loop_test(t, records_are_cut_as_rfc_4180_says, 0, COUNT_OF(RECORDS));
    tcase_add_test(t, skipping_a_record_ends_where_reading_it_ends);
    tcase_add_test(t, a_place_is_line_and_column);
    return s;
}
