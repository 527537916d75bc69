#include "check_main.h"
#include "tensor/tensor.h"

#include <string.h>

START_TEST(types_have_tensorflows_numbers)
{
    ck_assert_int_eq(DT_FLOAT, 1);
    ck_assert_int_eq(DT_INT64, 9);
    ck_assert_int_eq(DT_HALF, 19);
    ck_assert_str_eq(dtype_name(DT_BFLOAT16), "bfloat16");
    ck_assert_str_eq(dtype_name((enum dtype)99), "unknown type");
    ck_assert_uint_eq(dtype_size(DT_INT64), 8);
    ck_assert_uint_eq(dtype_size(DT_STRING), 0);
    ck_assert_uint_eq(dtype_size((enum dtype)99), 0);
}
END_TEST

START_TEST(shapes)
{
    struct shape image = shape_of(2, (int64_t[]){ 28, 28 }), scalar = shape_of(0, NULL),
                 vector = shape_of(1, (int64_t[]){ 3 });
    struct err e = { 0 };
    size_t n = 0;
    char text[128];

    ck_assert_str_eq(shape_text(&image, text), "(28, 28)");
    ck_assert_str_eq(shape_text(&vector, text), "(3,)");
    ck_assert_str_eq(shape_text(&scalar, text), "()");
    ck_assert(shape_eq(&image, &image));
    ck_assert(!shape_eq(&image, &vector));
    ck_assert_int_eq(shape_count(&image, &n, &e), 0);
    ck_assert_uint_eq(n, 784);
    ck_assert_int_eq(shape_count(&scalar, &n, &e), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert_uint_eq(shape_elements(&vector), 3);
}
END_TEST

START_TEST(impossible_shapes_are_refused)
{
    struct shape huge = shape_of(3, (int64_t[]){ INT64_MAX, INT64_MAX, 2 }), negative = shape_of(1, (int64_t[]){ -3 });
    struct shape deep = { .rank = SHAPE_MAX_RANK + 1 };
    struct err e = { 0 };
    size_t n;
    ck_assert_int_eq(shape_count(&huge, &n, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_int_eq(shape_count(&negative, &n, &e), -1);
    ck_assert_int_eq(shape_count(&deep, &n, &e), -1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tensor/tensor");
    TCase *t = tcase_create("tensor");
    tcase_add_test(t, types_have_tensorflows_numbers);
    tcase_add_test(t, shapes);
    tcase_add_test(t, impossible_shapes_are_refused);
    suite_add_tcase(s, t);
    return s;
}
