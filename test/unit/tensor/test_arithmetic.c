#include "check_main.h"
#include "tensor/arithmetic.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tensor/gemm.h"

START_TEST(names_what_decides_the_bits)
{
    char text[ARITHMETIC_MAX], again[ARITHMETIC_MAX], core[60];
    unsetenv("OPENBLAS_L2_SIZE");
    arithmetic_describe(text);
    arithmetic_describe(again);
    ck_assert_str_eq(text, again);
    str_fmt(core, sizeof(core), ", core %s, 1 thread, glibc 2.", gemm_core());
    ck_assert_msg(str_starts(text, "OpenBLAS ") && strstr(text, core) != NULL, "%s", text);
    ck_assert_msg(strchr("0123456789", text[strlen("OpenBLAS ")]) != NULL, "%s", text);
    ck_assert_ptr_null(strstr(text, "DYNAMIC_ARCH"));
    setenv("OPENBLAS_L2_SIZE", "2147483647", 1); /* the longest */
    arithmetic_describe(text);
    ck_assert_msg(strstr(text, ", OPENBLAS_L2_SIZE 2147483647, 1 thread, glibc 2.") != NULL, "%s", text);
    ck_assert_uint_lt(strlen(text), ARITHMETIC_MAX - 1);
    setenv("OPENBLAS_L2_SIZE", "0", 1); /* OpenBLAS ignores it */
    arithmetic_describe(text);
    ck_assert_str_eq(text, again);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tensor/arithmetic");
    TCase *t = tcase_create("arithmetic");
    tcase_add_test(t, names_what_decides_the_bits);
    suite_add_tcase(s, t);
    return s;
}
