#include "check_main.h"
#include "cli/tensor_element.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

/* little-endian bytes, type, element -> text, number */
static const struct {
    enum dtype dtype;
    const char *bytes;
    size_t i;
    const char *text;
    double number;
} CASES[] = {
    { DT_FLOAT, "\x00\x00\x80\x3f\xcd\xcc\xcc\x3d", 1, "0.1", 0.10000000149011612 },
    { DT_DOUBLE, "\x9a\x99\x99\x99\x99\x99\xb9\x3f", 0, "0.1", 0.1 },
    { DT_INT8, "\x01\xff", 1, "-1", -1 },
    { DT_INT16, "\xd4\xfe", 0, "-300", -300 },
    { DT_INT32, "\xff\xff\xff\xff", 0, "-1", -1 },
    { DT_INT64, "\xff\xff\xff\xff\xff\xff\xff\x7f", 0, "9223372036854775807", 9223372036854775807.0 },
    { DT_UINT8, "\xff", 0, "255", 255 },
    { DT_BOOL, "\x01", 0, "true", 1 },
    { DT_UINT16, "\xff\xff", 0, "65535", 65535 },
    { DT_UINT32, "\xff\xff\xff\xff", 0, "4294967295", 4294967295.0 },
    { DT_UINT64, "\xff\xff\xff\xff\xff\xff\xff\xff", 0, "18446744073709551615", 18446744073709551616.0 },
    { DT_HALF, "\x00\x3c", 0, "1", 1 },
    { DT_HALF, "\x01\x80", 0, "-5.9605e-08", -5.9604644775390625e-08 },
    { DT_HALF, "\xff\x7b", 0, "65504", 65504 },
    { DT_HALF, "\x00\xfc", 0, "-inf", -(double)INFINITY },
    { DT_BFLOAT16, "\x20\x40", 0, "2.5", 2.5 },
    { DT_COMPLEX64, "\x00\x00\x80\x3f\x00\x00\x00\xc0", 0, "(1-2j)", 1 },
};
START_TEST(elements)
{
    AUTO_FINI(buf) out = BUF_INIT;
    tensor_element_text(CASES[_i].dtype, CASES[_i].bytes, CASES[_i].i, &out);
    ck_assert_str_eq(out.data, CASES[_i].text);
    double got = tensor_element_number(CASES[_i].dtype, CASES[_i].bytes, CASES[_i].i);
    ck_assert(isinf(got) ? isinf(CASES[_i].number) : fabs(got - CASES[_i].number) <= 0);
}
END_TEST

START_TEST(strings_are_printable)
{
    AUTO_FINI(buf) out = BUF_INIT;
    tensor_element_string("a\"\\\n\x00z", 6, 100, &out);
    ck_assert_str_eq(out.data, "\"a\\\"\\\\\\x0a\\x00z\"");
    buf_clear(&out);
    char longer[300];
    memset(longer, 'x', sizeof(longer));
    tensor_element_string(longer, sizeof(longer), 200, &out);
    ck_assert(str_ends(out.data, "xx\"... (300 bytes)"));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("element");
    TCase *t = tcase_create("element");
    tcase_add_loop_test(t, elements, 0, COUNT_OF(CASES));
    tcase_add_test(t, strings_are_printable);
    suite_add_tcase(s, t);
    return s;
}
