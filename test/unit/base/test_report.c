#include "base/report.h"
#include "check_main.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct seen {
    int calls, n;
    enum log_level level;
    char msg[64];
};

static void note(void *user, enum log_level level, const char *msg, int n, const struct log_field *fields)
{
    struct seen *s = user;
    s->calls++;
    s->level = level;
    s->n = n;
    ck_assert(n == 0 || str_eq(fields[0].key, "step"));
    str_fmt(s->msg, sizeof(s->msg), "%s", msg);
}

START_TEST(a_report_reaches_the_caller)
{
    struct seen s = { 0 };
    const struct report r = { .write = note, .user = &s };
    report_info(&r, "%d of %s", 3, "four");
    ck_assert_str_eq(s.msg, "3 of four");
    ck_assert_int_eq(s.level, LOG_INFO);
    report_warning(&r, "careful");
    ck_assert_int_eq(s.level, LOG_WARNING);
    report_fields(&r, LOG_INFO, "done", 1, (struct log_field[]){ LOG_INT("step", 7) });
    ck_assert_int_eq(s.n, 1);
    ck_assert_str_eq(s.msg, "done");
    ck_assert_int_eq(s.calls, 3);
}
END_TEST

START_TEST(no_report_is_silent)
{
    report_info(NULL, "%s", "nothing");
    report_fields(NULL, LOG_INFO, "", 0, NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("report");
    TCase *t = tcase_create("report");
    tcase_add_test(t, a_report_reaches_the_caller);
    tcase_add_test(t, no_report_is_silent);
    suite_add_tcase(s, t);
    return s;
}
