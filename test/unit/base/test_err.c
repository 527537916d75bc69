#include "base/err.h"
#include "check_main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static int fails(struct err *e)
{
    return err_set(e, ERR_INPUT, "%d ps, at most %d", 7, 5);
}

START_TEST(says_what_went_wrong)
{
    struct err e = { 0 };
    ck_assert_int_eq(fails(&e), -1);
    ck_assert_str_eq(e.msg, "7 ps, at most 5");
    ck_assert(err_is(&e, ERR_INPUT));
    ck_assert(!err_is(&e, ERR_LOST));
    ck_assert_int_eq(err_exit_code(&e), 2);
}
END_TEST

START_TEST(context_goes_in_front_and_keeps_the_code)
{
    struct err e = { 0 };
    fails(&e);
    ck_assert_int_eq(err_wrap(&e, "job '%s'", "mnist"), -1);
    ck_assert_str_eq(e.msg, "job 'mnist': 7 ps, at most 5");
    ck_assert(err_is(&e, ERR_INPUT));
}
END_TEST

START_TEST(system_words_are_appended)
{
    struct err e = { 0 };
    errno = ENOENT;
    ck_assert_int_eq(err_errno(&e, ERR_IO, "mnist.yaml"), -1);
    ck_assert_str_eq(e.msg, "mnist.yaml: No such file or directory");
    ck_assert(err_is(&e, ERR_NOT_FOUND));
    errno = EIO;
    err_put_errno(&e, ERR_IO, "x");
    ck_assert(err_is(&e, ERR_IO));
    ck_assert_int_eq(errno, EIO);
    errno = ENOSPC; /* a retry does not make room */
    err_put_errno(&e, ERR_IO, "x");
    ck_assert(err_is(&e, ERR_NO_SPACE));
    ck_assert_str_eq(e.msg, "x: No space left on device; free space there, or raise the quota");
    struct rlimit files;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    char wanted[96];
    (void)snprintf(wanted, sizeof(wanted), "x: too many open files: the limit is %llu (ulimit -n); raise it",
                   (unsigned long long)files.rlim_cur);
    errno = EMFILE; /* whatever the caller takes its errors for */
    err_put_errno(&e, ERR_LOST, "x");
    ck_assert_str_eq(e.msg, wanted);
    ck_assert(err_is(&e, ERR_LIMIT));
    errno = EFBIG;
    err_put_errno(&e, ERR_IO, "x");
    ck_assert(err_is(&e, ERR_INPUT));
}
END_TEST

START_TEST(null_is_allowed)
{
    ck_assert_int_eq(fails(NULL), -1);
    ck_assert_int_eq(err_wrap(NULL, "x"), -1);
    ck_assert_int_eq(err_errno(NULL, ERR_IO, "x"), -1);
    ck_assert(!err_is(NULL, ERR_NONE));
    ck_assert_int_eq(err_exit_code(NULL), 138);
}
END_TEST

START_TEST(long_text_is_cut_visibly)
{
    struct err e = { 0 };
    char text[3000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_put(&e, ERR_INPUT, "%s", text);
    ck_assert_uint_eq(strlen(e.msg), ERR_TEXT_MAX - 1);
    ck_assert_str_eq(e.msg + ERR_TEXT_MAX - 6, "xx...");
    err_prefix(&e, "here");
    ck_assert_uint_eq(strlen(e.msg), ERR_TEXT_MAX - 1);
    ck_assert(strncmp(e.msg, "here: xxx", 9) == 0);
    errno = EIO;
    err_put_errno(&e, ERR_IO, "%s", text);
    ck_assert_uint_eq(strlen(e.msg), ERR_TEXT_MAX - 1);
}
END_TEST

START_TEST(a_message_may_quote_itself)
{
    struct err e = { 0 };
    fails(&e);
    err_put(&e, ERR_LOST, "was '%s'", e.msg);
    ck_assert_str_eq(e.msg, "was '7 ps, at most 5'");
}
END_TEST

START_TEST(every_code_has_its_exit_code)
{
    static const struct {
        enum err_code code;
        int exit_code;
    } WANT[] = { { ERR_NONE, 0 },      { ERR_INPUT, 2 },      { ERR_DIVERGED, 3 }, { ERR_IO, 138 },
                 { ERR_LOST, 138 },    { ERR_FENCED, 138 },   { ERR_REFUSED, 2 },  { ERR_NOT_FOUND, 2 },
                 { ERR_STOPPED, 143 }, { ERR_INTERNAL, 138 }, { ERR_NO_SPACE, 2 }, { ERR_LIMIT, 2 } };
    for (size_t i = 0; i < sizeof(WANT) / sizeof(WANT[0]); i++) {
        struct err e = { .code = WANT[i].code };
        ck_assert_int_eq(err_exit_code(&e), WANT[i].exit_code);
    }
    ck_assert_int_eq(err_exit_code(&(struct err){ .code = (enum err_code)999 }), 138);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("err");
    TCase *t = tcase_create("err");
    tcase_add_test(t, says_what_went_wrong);
    tcase_add_test(t, context_goes_in_front_and_keeps_the_code);
    tcase_add_test(t, system_words_are_appended);
    tcase_add_test(t, null_is_allowed);
    tcase_add_test(t, long_text_is_cut_visibly);
    tcase_add_test(t, a_message_may_quote_itself);
    tcase_add_test(t, every_code_has_its_exit_code);
    suite_add_tcase(s, t);
    return s;
}
