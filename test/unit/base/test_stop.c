#include "base/stop.h"
#include "check_main.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

START_TEST(signals_are_counted_and_wake_a_poll)
{
    struct err e = { 0 };
    ck_ok_e(stop_install(&e));
    ck_ok_e(stop_install(&e)); /* again is harmless */
    struct pollfd p = { .fd = stop_fd(), .events = POLLIN };
    ck_assert_int_eq(stop_count(), 0);
    ck_assert_int_eq(poll(&p, 1, 0), 0);

    raise(SIGINT);
    ck_assert_int_eq(stop_count(), 1);
    ck_assert_int_eq(poll(&p, 1, 0), 1);

    raise(SIGTERM);
    ck_assert_int_eq(stop_count(), 2);
    stop_request();
    ck_assert_int_eq(stop_count(), 3);
    ck_assert_int_eq(poll(&p, 1, 0), 1); /* stays readable for every waiter */
    for (int i = 0; i < 100000; i++)     /* a full pipe does not block */
        stop_request();
    ck_assert_int_eq(stop_count(), 100003);
}
END_TEST

START_TEST(a_closed_terminal_asks_to_stop_unless_nohup)
{
    signal(SIGHUP, SIG_IGN);
    ck_assert_int_eq(stop_install(NULL), 0);
    int before = stop_count();
    raise(SIGHUP);
    ck_assert_int_eq(stop_count(), before);
    signal(SIGHUP, SIG_DFL);
    ck_assert_int_eq(stop_install(NULL), 0);
    raise(SIGHUP);
    ck_assert_int_eq(stop_count(), before + 1);
}
END_TEST

START_TEST(a_broken_pipe_is_no_death)
{
    int fds[2];
    ck_assert_int_eq(stop_install(NULL), 0);
    ck_assert_int_eq(pipe(fds), 0);
    close(fds[0]);
    ck_assert_int_eq(write(fds[1], "x", 1), -1);
    close(fds[1]);
}
END_TEST

START_TEST(a_file_that_is_too_large_is_no_death)
{
    FILE *f = tmpfile();
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(stop_install(NULL), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ .rlim_cur = 1, .rlim_max = RLIM_INFINITY }), 0);
    ck_assert_int_eq(pwrite(fileno(f), "x", 1, 1), -1);
    ck_assert_int_eq(errno, EFBIG);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY }), 0);
    fclose(f);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("stop");
    TCase *t = tcase_create("stop");
    tcase_add_test(t, signals_are_counted_and_wake_a_poll);
    tcase_add_test(t, a_closed_terminal_asks_to_stop_unless_nohup);
    tcase_add_test(t, a_broken_pipe_is_no_death);
    tcase_add_test(t, a_file_that_is_too_large_is_no_death);
    suite_add_tcase(s, t);
    return s;
}
