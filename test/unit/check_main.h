/* check_main - shared by every unit test program. main() runs the suite that test_suite() returns, fails when no check
 * ran, and prints check's closing line. Tests run in the parent folder of test/data. */
#ifndef TRAINYARD_TEST_CHECK_MAIN_H
#define TRAINYARD_TEST_CHECK_MAIN_H

#include <check.h>

Suite *test_suite(void); /* each test file defines it */

/* Like ck_ok for calls whose err variable is named e: prints its message. */
#define ck_ok_e(call) ck_assert_msg((call) == 0, "%s: %s", #call, e.msg)

#endif
