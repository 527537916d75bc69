/* Records of arrays in Fortran order against the definition: element (i0, i1, ...) lies at i0 + d0 (i1 + d1 (...)). */
#include "data/array_order.h"

#include <string.h>

#include "check_main.h"

static const struct shape SHAPES[] = {
    { 2, { 3, 5 } },        { 2, { 1, 7 } },         { 3, { 4, 2, 3 } },
    { 3, { 2, 16, 40 } },   { 4, { 5, 1, 13, 10 } }, { 2, { 200, 64 } },
    { 2, { 2, 65 } },       { 2, { 3, 1 } },         { 5, { 2, 1, 70, 1, 2 } },
    { 1, { 9 } },           { 3, { 1, 1, 1 } },      { 3, { 1, 30, 20 } },
    { 4, { 3, 3, 64, 1 } }, { 2, { 2, 200 } },       { 8, { 2, 3, 2, 1, 2, 3, 2, 2 } },
};
/* Types of every size. */
static const enum dtype TYPES[] = { DT_UINT8, DT_INT16, DT_FLOAT, DT_INT32, DT_INT64, DT_DOUBLE };

/* Where element i of a record, counted in C order, lies by the definition. */
static size_t place(const struct shape *s, size_t record, size_t i)
{
    size_t index[SHAPE_MAX_RANK] = { record }, at = 0;
    for (int axis = s->rank - 1; axis > 0; axis--) {
        index[axis] = i % (size_t)s->dim[axis];
        i /= (size_t)s->dim[axis];
    }
    for (int axis = s->rank - 1; axis >= 0; axis--)
        at = at * (size_t)s->dim[axis] + index[axis];
    return at;
}

/* An array whose bytes are all different as far as possible; exactly its bytes, so that a sanitizer sees any other. */
static struct array array_new(const struct shape *s, enum dtype dtype, unsigned char **ret_data)
{
    size_t bytes = shape_elements(s) * dtype_size(dtype);
    unsigned char *data = *ret_data = xmalloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        data[i] = (unsigned char)(i * 151 + i / 251);
    return (struct array){ .data = data, .dtype = dtype, .fortran = true, .shape = *s };
}

static void ck_record(const struct array *a, size_t record, const unsigned char *row)
{
    size_t bytes = dtype_size(a->dtype), count = shape_elements(&a->shape) / (size_t)a->shape.dim[0];
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(memcmp(row + i * bytes, a->data + place(&a->shape, record, i) * bytes, bytes) == 0,
                      "%s: record %zu, element %zu", dtype_name(a->dtype), record, i);
}

START_TEST(every_record_is_in_c_order)
{
    const struct shape *s = &SHAPES[_i];
    for (size_t t = 0; t < COUNT_OF(TYPES); t++) {
        auto_free unsigned char *data = NULL;
        struct array a = array_new(s, TYPES[t], &data);
        size_t bytes = shape_elements(s) * dtype_size(a.dtype), records = (size_t)s->dim[0];
        auto_free unsigned char *all = xmalloc(bytes);
        array_rows(&a, NULL, records, NULL, all);
        for (size_t r = 0; r < records; r++)
            ck_record(&a, r, all + r * (bytes / records));
    }
}
END_TEST

/* Any records, in any order and more than once. */
START_TEST(records_are_those_asked_for)
{
    const struct shape *s = &SHAPES[_i];
    const int64_t last = s->dim[0] - 1, which[] = { last, 0, last / 2, last, 0 };
    auto_free unsigned char *data = NULL;
    struct array a = array_new(s, DT_INT16, &data);
    size_t row = shape_elements(s) / (size_t)s->dim[0] * dtype_size(a.dtype);
    auto_free unsigned char *got = xmalloc(COUNT_OF(which) * row);
    array_rows(&a, which, COUNT_OF(which), NULL, got);
    for (size_t i = 0; i < COUNT_OF(which); i++)
        ck_record(&a, (size_t)which[i], got + i * row);
}
END_TEST

START_TEST(elements_become_floats)
{
    const struct shape *s = &SHAPES[_i];
    size_t n = shape_elements(s), count = n / (size_t)s->dim[0];
    auto_free unsigned char *data = NULL;
    struct array a = array_new(s, DT_INT32, &data);
    a.swap = true;
    auto_free float *got = xmalloc(n * sizeof(*got));
    array_rows(&a, NULL, (size_t)s->dim[0], dtype_float_converter(a.dtype, a.swap), got);
    for (size_t i = 0; i < n; i++)
        ck_assert(got[i] == (float)dtype_to_int(a.dtype, a.swap, a.data + place(s, i / count, i % count) * 4));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/array_order");
    TCase *t = tcase_create("order");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, every_record_is_in_c_order, 0, COUNT_OF(SHAPES));
    tcase_add_loop_test(t, records_are_those_asked_for, 0, COUNT_OF(SHAPES));
    tcase_add_loop_test(t, elements_become_floats, 0, COUNT_OF(SHAPES));
    return s;
}
