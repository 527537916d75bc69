#include "base/clock.h"
#include "check_main.h"

#include "base/mem.h"

static const struct {
    double wall;
    const char *text;
} TIMES[] = {
    { 0, "1970-01-01T00:00:00.000Z" },
    { 1772600767.089, "2026-03-04T05:06:07.089Z" },
    { 1772600767.9999, "2026-03-04T05:06:08.000Z" },
    { -0.5, "1969-12-31T23:59:59.500Z" },
    { 1e15, "0000-00-00T00:00:00.000Z" },
};
START_TEST(times_read_as_rfc_3339)
{
    char out[32];
    ck_assert_str_eq(clock_rfc3339(TIMES[_i].wall, out), TIMES[_i].text);
}
END_TEST

START_TEST(clocks_go_forward)
{
    int64_t ns = clock_ns(), cpu = clock_cpu_ns();
    ck_assert_int_ge(clock_ns(), ns);
    ck_assert_int_ge(clock_ms(), ns / 1000000);
    ck_assert_int_ge(clock_cpu_ns(), cpu);
    ck_assert_double_gt(clock_wall(), 1.7e9);
    clock_sleep_ms(0);
    clock_sleep_ms(-5);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("clock");
    TCase *t = tcase_create("clock");
    tcase_add_loop_test(t, times_read_as_rfc_3339, 0, COUNT_OF(TIMES));
    tcase_add_test(t, clocks_go_forward);
    suite_add_tcase(s, t);
    return s;
}
