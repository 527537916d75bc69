#include "base/str.h"
#include "tensor/batch.h"

#include "check_main.h"

START_TEST(tensors_are_added_in_order_up_to_the_bound)
{
    char names[BATCH_TENSORS_MAX][8];
    struct batch b = { .n = 1 };
    struct err e = { 0 };
    float v[BATCH_TENSORS_MAX];
    for (size_t i = 0; i < BATCH_TENSORS_MAX; i++) {
        str_fmt(names[i], sizeof(names[i]), "t%zu", i);
        struct tensor t = { .dtype = DT_FLOAT, .shape = shape_of(1, (int64_t[]){ 1 }), .data = &v[i] };
        ck_ok_e(batch_add_input(&b, names[i], t, &e));
        ck_ok_e(batch_add_label(&b, names[i], t, &e));
    }
    ck_assert_uint_eq(b.nx, BATCH_TENSORS_MAX);
    ck_assert_uint_eq(b.ny, BATCH_TENSORS_MAX);
    for (size_t i = 0; i < BATCH_TENSORS_MAX; i++) {
        ck_assert_ptr_eq(b.x[i].data, &v[i]);
        ck_assert_ptr_eq(b.y[i].data, &v[i]);
        ck_assert_str_eq(b.x_name[i], names[i]);
        ck_assert_str_eq(b.y_name[i], names[i]);
    }
    ck_assert_int_eq(batch_add_input(&b, "e", b.x[0], &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_int_eq(batch_add_label(&b, "e", b.x[0], &e), -1);
    ck_assert_uint_eq(b.nx + b.ny, 2 * BATCH_TENSORS_MAX);
    b.weight = v;
    batch_clear(&b);
    ck_assert(b.nx == 0 && b.ny == 0 && b.y[0].data == NULL && b.weight == NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("batch");
    TCase *t = tcase_create("batch");
    tcase_add_test(t, tensors_are_added_in_order_up_to_the_bound);
    suite_add_tcase(s, t);
    return s;
}
