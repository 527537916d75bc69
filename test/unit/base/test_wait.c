#include "base/wait.h"
#include "check_main.h"

#include "base/mem.h"
#include "base/str.h"

START_TEST(explanations_grow_apart)
{
    static const int64_t EXPECTED[] = { 105, 110, 115, 120, 125, 132, 140 };
    struct wait_state w = { 0 };
    size_t n = 0;
    wait_begin(&w, 100000, WAIT_EXPLAIN_MS);
    for (int64_t s = 100; s < 145; s++) {
        wait_begin(&w, s * 1000, 0); /* it has begun */
        if (!wait_due(&w, s * 1000))
            continue;
        if (n < COUNT_OF(EXPECTED))
            ck_assert_int_eq(s, EXPECTED[n]);
        n++;
    }
    ck_assert_uint_eq(n, COUNT_OF(EXPECTED));
    int64_t last = 0;
    for (int64_t s = 1000; s < 2000; s++) {
        if (!wait_due(&w, s * 1000))
            continue;
        ck_assert(last == 0 || s - last == WAIT_EXPLAIN_MAX_MS / 1000);
        last = s;
    }
    ck_assert_int_ne(last, 0);
}
END_TEST

START_TEST(the_end_is_said_of_what_was_explained)
{
    struct wait_state w = { 0 };
    int64_t ms = -1;
    ck_assert(!wait_due(&w, 1000));
    ck_assert(!wait_end(&w, 1000, &ms));
    wait_begin(&w, 1000, 1000);
    ck_assert(!wait_due(&w, 1999));
    ck_assert_int_eq(wait_ms(&w, 1999), 999);
    ck_assert(!wait_end(&w, 1999, &ms)); /* too short to be reported */
    ck_assert_int_eq(ms, -1);
    ck_assert_int_eq(wait_ms(&w, 5000), 0);
    wait_begin(&w, 5000, 0);
    ck_assert(wait_due(&w, 5000));
    ck_assert(!wait_due(&w, 5000));
    ck_assert(wait_end(&w, 7000, &ms));
    ck_assert_int_eq(ms, 2000);
    ck_assert(!wait_end(&w, 7000, NULL));
}
END_TEST

static void copy(void *user, enum log_level level, const char *msg, int n, const struct log_field *fields)
{
    (void)fields;
    ck_assert(level == LOG_INFO && n == 0);
    str_fmt(user, 64, "%s", msg);
}

START_TEST(a_wait_is_reported_when_due)
{
    char line[64] = "";
    const struct report r = { .write = copy, .user = line };
    struct wait_state w = { 0 };
    wait_begin(&w, 0, WAIT_EXPLAIN_MS);
    wait_report(&w, 4999, &r, "ps-0");
    ck_assert_str_eq(line, "");
    wait_report(&w, 5999, &r, "ps-0");
    ck_assert_str_eq(line, "waiting 5 s for ps-0");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("wait");
    TCase *t = tcase_create("wait");
    tcase_add_test(t, explanations_grow_apart);
    tcase_add_test(t, the_end_is_said_of_what_was_explained);
    tcase_add_test(t, a_wait_is_reported_when_due);
    suite_add_tcase(s, t);
    return s;
}
