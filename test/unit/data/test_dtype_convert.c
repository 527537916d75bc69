#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "check_main.h"
#include "data/dtype_convert.h"

/* A value of each type as bits, and what it is. */
static const struct {
    enum dtype dtype;
    uint64_t bits;
    float want;
} VALUES[] = {
    { DT_UINT8, 255, 255 },
    { DT_UINT8, 128, 128 },
    { DT_BOOL, 1, 1 },
    { DT_INT8, 0x80, -128 },
    { DT_UINT16, 0xFFFE, 65534 },
    { DT_INT16, 0x8001, -32767 },
    { DT_UINT32, 0xFFFFFFFF, 4294967296.0F },
    { DT_INT32, 0xFFFFFFFE, -2 },
    { DT_UINT64, UINT64_MAX, 18446744073709551616.0F },
    { DT_INT64, UINT64_MAX, -1 },
    { DT_INT64, 0x8000000000000000, -9223372036854775808.0F },
    { DT_HALF, 0x3C00, 1 },
    { DT_HALF, 0xC100, -2.5F },
    { DT_HALF, 0x0001, 0x1p-24F },
    { DT_HALF, 0x03FF, 0x1.FF8p-15F },
    { DT_HALF, 0x7BFF, 65504 },
    { DT_HALF, 0xFC00, -INFINITY },
    { DT_HALF, 0x8000, -0.0F },
    { DT_FLOAT, 0x3FC00000, 1.5F },
    { DT_FLOAT, 0x00000001, 0x1p-149F },
    { DT_DOUBLE, 0x3FF8000000000000, 1.5F },
    { DT_DOUBLE, 0xBFF0000020000000, -0x1.000002p0F },
};

static void put(unsigned char *out, uint64_t bits, size_t bytes, bool swap)
{
    for (size_t i = 0; i < bytes; i++)
        out[swap ? bytes - 1 - i : i] = (unsigned char)(bits >> (8 * i));
}

/* Many at once, from an odd address: the vector part and its rest must agree. */
START_TEST(every_type_becomes_the_number_it_is)
{
    enum { COUNT = 37 };
    size_t bytes = dtype_size(VALUES[_i].dtype);
    for (int swap = 0; swap < 2; swap++) {
        unsigned char src[1 + COUNT * 8];
        float got[COUNT];
        for (size_t i = 0; i < COUNT; i++)
            put(src + 1 + i * bytes, VALUES[_i].bits, bytes, swap != 0);
        dtype_float_converter(VALUES[_i].dtype, swap != 0)(src + 1, got, COUNT);
        for (size_t i = 0; i < COUNT; i++)
            ck_assert_msg(memcmp(&got[i], &VALUES[_i].want, sizeof(float)) == 0, "%s %llx: %.9g",
                          dtype_name(VALUES[_i].dtype), (unsigned long long)VALUES[_i].bits, (double)got[i]);
    }
}
END_TEST

START_TEST(integers_stay_integers)
{
    unsigned char src[8];
    put(src, 0x8000000000000001, 8, true);
    ck_assert_int_eq(dtype_to_int(DT_INT64, true, src), INT64_MIN + 1);
    ck_assert_int_eq(dtype_to_int(DT_UINT64, true, src), INT64_MAX);
    put(src, 0x9C, 1, false);
    ck_assert_int_eq(dtype_to_int(DT_INT8, false, src), -100);
    ck_assert_int_eq(dtype_to_int(DT_UINT8, false, src), 156);
    put(src, 123456789, 4, false);
    ck_assert_int_eq(dtype_to_int(DT_INT32, false, src), 123456789);
}
END_TEST

START_TEST(half_nan_stays_nan)
{
    float v = 0;
    dtype_float_converter(DT_HALF, false)((const unsigned char *)"\x01\x7e", &v, 1);
    ck_assert(isnan(v));
}
END_TEST

/* The upper half of a float32. */
START_TEST(bfloat16_of_weights)
{
    float v[2] = { 0 };
    dtype_float_converter(DT_BFLOAT16, false)((const unsigned char *)"\xc0\x3f\x00\xc1", v, 2);
    ck_assert_double_eq((double)v[0], 1.5);
    ck_assert_double_eq((double)v[1], -8);
    dtype_float_converter(DT_BFLOAT16, true)((const unsigned char *)"\x3f\xc0", v, 1);
    ck_assert_double_eq((double)v[0], 1.5);
}
END_TEST

START_TEST(strings_and_strangers_cannot_be_read)
{
    ck_assert(dtype_float_converter(DT_STRING, false) == NULL);
    ck_assert(dtype_float_converter(DT_COMPLEX64, false) == NULL);
    ck_assert(!dtype_is_integer(DT_FLOAT));
    ck_assert(!dtype_is_integer(DT_STRING));
    ck_assert(dtype_is_integer(DT_BOOL));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/dtype_convert");
    TCase *t = tcase_create("convert");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, every_type_becomes_the_number_it_is, 0, COUNT_OF(VALUES));
    tcase_add_test(t, integers_stay_integers);
    tcase_add_test(t, half_nan_stays_nan);
    tcase_add_test(t, bfloat16_of_weights);
    tcase_add_test(t, strings_and_strangers_cannot_be_read);
    return s;
}
