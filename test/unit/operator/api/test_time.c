#include "check_main.h"

#include <stdio.h>
#include <time.h>

#include "api/time.h"
#include "base/mem.h"

#define S INT64_C(1000)

START_TEST(times_of_the_api_server_are_read)
{
    static const struct {
        const char *text;
        int64_t ms;
    } CASES[] = {
        { "1970-01-01T00:00:00Z", 0 },
        { "1970-01-01T00:00:01Z", 1 * S },
        { "2026-03-04T05:06:07Z", 1772600767 * S },
        { "2026-03-04T05:06:07.123456Z", 1772600767 * S + 123 },
        { "2026-03-04T05:06:07.9Z", 1772600767 * S + 900 },
        { "2026-03-04T05:06:07.123456789Z", 1772600767 * S + 123 },
        { "2026-03-04T07:06:07+02:00", 1772600767 * S },
        { "2026-03-03T23:36:07.5-05:30", 1772600767 * S + 500 },
        { "2026-03-04t05:06:07z", 1772600767 * S },
        { "2024-02-29T00:00:00Z", 1709164800 * S },
        { "2000-02-29T12:00:00Z", 951825600 * S },
        { "2016-12-31T23:59:60Z", 1483228800 * S }, /* a leap second is the second after */
        { "1969-12-31T23:59:59Z", -1 * S },
        { "0001-01-01T00:00:00Z", -62135596800 * S },
        { "9999-12-31T23:59:59Z", 253402300799 * S },
    };
    for (size_t i = 0; i < COUNT_OF(CASES); i++)
        ck_assert_msg(time_parse(CASES[i].text) == CASES[i].ms, "%s: %lld", CASES[i].text,
                      (long long)time_parse(CASES[i].text));
}
END_TEST

START_TEST(what_is_no_time_is_0)
{
    static const char *const TEXTS[] = { "",
                                         "null",
                                         "yesterday",
                                         "2026-03-04",
                                         "2026-03-04T05:06:07",
                                         "2026-03-04T05:06Z",
                                         "2026-13-04T05:06:07Z",
                                         "2026-00-04T05:06:07Z",
                                         "2026-03-32T05:06:07Z",
                                         "2026-03-00T05:06:07Z",
                                         "2025-02-29T05:06:07Z",
                                         "1900-02-29T05:06:07Z",
                                         "2026-03-04T24:06:07Z",
                                         "2026-03-04T05:60:07Z",
                                         "2026-03-04T05:06:61Z",
                                         "2026-03-04T05:06:07.Z",
                                         "2026-03-04T05:06:07ZZ",
                                         "2026-03-04T05:06:07+2:00",
                                         "2026-03-04T05:06:07+02:0",
                                         "2026-03-04T05:06:07+24:00",
                                         "2026-03-04T05:06:07+02:00x",
                                         "02026-03-04T05:06:07Z",
                                         "-026-03-04T05:06:07Z",
                                         "2026/03/04T05:06:07Z",
                                         "0000-01-01T00:00:00Z",
                                         " 2026-03-04T05:06:07Z" };
    ck_assert(time_parse(NULL) == 0);
    for (size_t i = 0; i < COUNT_OF(TEXTS); i++)
        ck_assert_msg(time_parse(TEXTS[i]) == 0, "'%s': %lld", TEXTS[i], (long long)time_parse(TEXTS[i]));
}
END_TEST

START_TEST(times_are_written_as_kubernetes_does)
{
    char out[32];
    ck_assert_str_eq(time_text(1772600767 * S + 999, out), "2026-03-04T05:06:07Z");
    ck_assert_str_eq(time_text(-1, out), "1969-12-31T23:59:59Z");
    ck_assert_str_eq(time_text(0, out), "1970-01-01T00:00:00Z");
    ck_assert_str_eq(time_text(INT64_MAX, out), "9999-12-31T23:59:59Z");
    ck_assert_str_eq(time_text(INT64_MIN, out), "0001-01-01T00:00:00Z");
}
END_TEST

/* A time in every week of eight thousand years, compared with the C library, in both directions. */
START_TEST(weeks_are_read_and_written_as_the_c_library_does)
{
    enum { DAY = 86400 };
    char out[32], expected[64];

    for (int64_t s = -62135596800; s < 200000000000; s += 7 * DAY + 3661) {
        struct tm tm;
        time_t t = (time_t)s;
        gmtime_r(&t, &tm);
        snprintf(expected, sizeof(expected), "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900, tm.tm_mon + 1,
                 tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
        ck_assert_str_eq(time_text(s * S, out), expected);
        ck_assert(time_parse(out) == s * S);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("time");
    TCase *t = tcase_create("all");

    tcase_add_test(t, times_of_the_api_server_are_read);
    tcase_add_test(t, what_is_no_time_is_0);
    tcase_add_test(t, times_are_written_as_kubernetes_does);
    tcase_add_test(t, weeks_are_read_and_written_as_the_c_library_does);
    suite_add_tcase(s, t);
    return s;
}
