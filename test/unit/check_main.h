/* check_main - shared by every unit test program. main() runs the suite that test_suite() returns, fails when no check
 * ran, and prints check's closing line. Tests run in the parent folder of test/data. */
#ifndef TRAINYARD_TEST_CHECK_MAIN_H
#define TRAINYARD_TEST_CHECK_MAIN_H

#include <check.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"

Suite *test_suite(void); /* each test file defines it */

/* Like ck_ok for calls whose err variable is named e: prints its message. */
#define ck_ok_e(call) ck_assert_msg((call) == 0, "%s: %s", #call, e.msg)

/* The call fails with this code, and its message has the text. */
#define ck_fails(call, wanted, text)                                                                                   \
    do {                                                                                                               \
        e = (struct err){ 0 };                                                                                         \
        ck_assert_int_eq((call), -1);                                                                                  \
        ck_assert_msg(e.code == (wanted) && strstr(e.msg, (text)) != NULL, "%s: %d %s", #call, (int)e.code, e.msg);    \
    } while (0)

/* Waits until the condition holds, for something that another thread or process does. Pauses are counted, and not the
 * time: this process may be stopped. */
#define ck_wait(condition)                                                                                             \
    for (int pauses_ = 0; !(condition); clock_sleep_ms(2))                                                             \
    ck_assert_msg(pauses_++ < 15000, "it never holds: %s", #condition)

#endif
