/* Compares every kernel with the plain formula, at sizes around the vector width, and the functions of one float with
 * libm. */
#include "check_main.h"
#include "tensor/kernel.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"

enum { MAX_N = 5000 };
static const size_t SIZES[] = { 0, 1, 3, 15, 16, 17, 31, 64, 100, 4096, 4097, MAX_N };

#define ck_float(a, b) ck_assert_double_eq((double)(a), (double)(b))

static void draw(float *v, size_t n, uint32_t name)
{
    struct rng r = rng_at(1, RNG_TEST, 0, name);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)rng_normal(&r);
}

/* Element by element, also in place. */
START_TEST(elements)
{
    static float x[MAX_N], z[MAX_N], y[MAX_N], w[MAX_N];
    size_t n = SIZES[_i];
    draw(x, MAX_N, 1);
    draw(z, MAX_N, 2);

    for (size_t i = 0; i < MAX_N; i++)
        y[i] = 3;
    kernel_affine(x, 2, -1, y, n);
    memcpy(w, x, sizeof(w));
    kernel_affine(w, 2, -1, w, n);
    for (size_t i = 0; i < n; i++) {
        ck_float(y[i], 2 * x[i] - 1);
        ck_float(w[i], y[i]);
    }
    if (n < MAX_N)
        ck_float(y[n], 3); /* nothing after the end is modified */
    kernel_mul(x, z, y, n);
    for (size_t i = 0; i < n; i++)
        ck_float(y[i], x[i] * z[i]);
    memcpy(y, z, sizeof(y));
    kernel_axpy(0.5F, x, y, n);
    kernel_relu_backward(x, z, w, n);
    for (size_t i = 0; i < n; i++) {
        ck_float(y[i], z[i] + 0.5F * x[i]);
        ck_float(w[i], x[i] > 0 ? z[i] : 0);
    }
}
END_TEST

START_TEST(rows)
{
    static float x[MAX_N], y[MAX_N], w[MAX_N], dx[MAX_N], b[128], a[128], sums[128], squares[128], open[128];
    const size_t cols = (size_t[]){ 1, 10, 16, 17, 128 }[_i], count = 7;
    draw(x, MAX_N, 1);
    draw(b, COUNT_OF(b), 2);
    draw(a, COUNT_OF(a), 3);
    memcpy(y, x, sizeof(y));
    memcpy(w, x, sizeof(w));
    kernel_add_row(b, y, count, cols);
    kernel_add_row_relu(b, w, count, cols);
    for (size_t i = 0; i < count * cols; i++) {
        ck_float(y[i], x[i] + b[i % cols]);
        ck_float(w[i], y[i] > 0 ? y[i] : 0);
    }
    kernel_affine_rows(x, a, b, y, count, cols);
    kernel_sum_rows(x, sums, count, cols);
    kernel_sum_square_differences(x, b, squares, count, cols);
    kernel_relu_backward_sum(w, x, dx, open, count, cols);
    for (size_t c = 0; c < cols; c++) {
        float sum = 0, square = 0, open_sum = 0;
        for (size_t r = 0; r < count; r++) {
            ck_float(y[r * cols + c], a[c] * x[r * cols + c] + b[c]);
            ck_float(dx[r * cols + c], w[r * cols + c] > 0 ? x[r * cols + c] : 0);
            open_sum += dx[r * cols + c];
            sum += x[r * cols + c];
            square += (x[r * cols + c] - b[c]) * (x[r * cols + c] - b[c]);
        }
        ck_float(sums[c], sum);
        ck_float(open[c], open_sum);
        ck_float(squares[c], square);
    }
}
END_TEST

START_TEST(reductions)
{
    static float x[MAX_N];
    size_t n = SIZES[_i];
    double sum_abs = 0, squares = 0;
    draw(x, MAX_N, 1);
    for (size_t i = 0; i < n; i++) {
        sum_abs += fabs((double)x[i]);
        squares += (double)x[i] * (double)x[i];
    }
    ck_assert_double_eq_tol(kernel_sum_abs(x, n), sum_abs, 1e-6 * (1 + sum_abs));
    ck_assert_double_eq_tol(kernel_sum_squares(x, n), squares, 1e-6 * (1 + squares));
}
END_TEST

START_TEST(strangers_are_found_wherever_they_are)
{
    static float x[MAX_N];
    const float strangers[] = { NAN, HUGE_VALF, -HUGE_VALF, -NAN };
    draw(x, MAX_N, 1);
    x[7] = 3.4e38F; /* large, but finite */
    for (size_t n = 1; n < 70; n++) {
        ck_assert(kernel_all_finite(x, n));
        for (size_t i = 0; i < COUNT_OF(strangers); i++) {
            float saved = x[n - 1];
            x[n - 1] = strangers[i];
            ck_assert(!kernel_all_finite(x, n));
            ck_assert(!kernel_all_finite(x, MAX_N));
            x[n - 1] = saved;
        }
    }
    ck_assert(kernel_all_finite(x, 0));
}
END_TEST

START_TEST(values_whose_squares_are_not_finite)
{
    static const struct {
        float value;
        bool finite;
    } CASES[] = { { 0, true },           { -1e-45F, true },    { 0x1.fffffep63F, true }, { -0x1.fffffep63F, true },
                  { 0x1p64F, false },    { -0x1p64F, false },  { 3e38F, false },         { HUGE_VALF, false },
                  { -HUGE_VALF, false }, { (float)NAN, false } };
    float x[70];
    for (size_t i = 0; i < COUNT_OF(CASES); i++)
        for (size_t at = 0; at < COUNT_OF(x); at++) {
            draw(x, COUNT_OF(x), 1);
            x[at] = CASES[i].value;
            ck_assert_int_eq(isfinite(x[at] * x[at]), CASES[i].finite);
            ck_assert_int_eq(kernel_all_squares_finite(x, COUNT_OF(x)), CASES[i].finite);
        }
}
END_TEST

START_TEST(nan_is_not_hidden_by_relu)
{
    float y[] = { NAN, -1 }, b[] = { 0, 0 };
    kernel_add_row_relu(b, y, 1, 2);
    ck_assert(isnan(y[0]));
    ck_float(y[1], 0);
}
END_TEST

START_TEST(bytes)
{
    uint8_t x[256];
    float y[256];
    for (size_t i = 0; i < 256; i++)
        x[i] = (uint8_t)i;
    kernel_from_u8(x, 1 / 255.0F, 0.5F, y, 256);
    for (size_t i = 0; i < 256; i++)
        ck_float(y[i], (1 / 255.0F) * (float)i + 0.5F);
}
END_TEST

/* ---- functions of one float ---- */

static double relative(double want, double got)
{
    return fabs(got - want) / fmax(fabs(want), 1e-30);
}

START_TEST(exponentials)
{
    for (double v = -87; v < 88.5; v += 0.00731) {
        float x = (float)v;
        ck_assert_double_lt(relative(exp((double)x), (double)exp32(x)), 4e-7);
        if (x < 88)
            ck_assert_double_lt(relative(expm1((double)x), (double)expm1_32(x)), 4e-7);
    }
    for (float x = 1e-6F; x < 1; x *= 1.01F) {
        ck_assert_double_lt(relative(expm1((double)x), (double)expm1_32(x)), 4e-7);
        ck_assert_double_lt(relative(expm1(-(double)x), (double)expm1_32(-x)), 4e-7);
    }
    ck_float(exp32(0), 1);
    ck_assert_double_lt(relative(exp(88.7), (double)exp32(88.7F)), 4e-6);
    ck_assert_double_eq_tol((double)exp32(-100), exp(-100), 2e-45); /* subnormal */
    ck_float(exp32(-1000), 0);
    ck_float(exp32(1000), HUGE_VALF);
    ck_float(exp32(-HUGE_VALF), 0);
    ck_float(exp32(HUGE_VALF), HUGE_VALF);
    ck_float(expm1_32(-1000), -1);
    ck_assert(isnan(exp32(NAN)) && isnan(expm1_32(NAN)));
}
END_TEST

START_TEST(sigmoids)
{
    for (double v = -80; v < 80; v += 0.00931) {
        float x = (float)v;
        ck_assert_double_lt(relative(tanh((double)x), (double)tanh32(x)), 6e-7);
        ck_assert_double_lt(relative(1 / (1 + exp(-(double)x)), (double)sigmoid32(x)), 6e-7);
    }
    for (float x = 1e-6F; x < 1; x *= 1.01F)
        ck_assert_double_lt(relative(tanh((double)x), (double)tanh32(x)), 6e-7);
    ck_float(tanh32(HUGE_VALF), 1);
    ck_float(tanh32(-HUGE_VALF), -1);
    ck_float(sigmoid32(-HUGE_VALF), 0);
    ck_assert(isnan(tanh32(NAN)) && isnan(sigmoid32(NAN)));
}
END_TEST

START_TEST(logarithms)
{
    for (float x = 1.2e-38F; x < 3e38F; x *= 1.0007F)
        ck_assert_double_lt(fabs(log((double)x) - (double)log32(x)), 3e-7 * fmax(fabs(log((double)x)), 0.3));
    for (float d = 1e-5F; d < 0.3F; d *= 1.01F)
        ck_assert_double_lt(relative(log(1 + (double)d), (double)log32(1 + d)), 2e-7 + 1.2e-7 / (double)d);
    ck_float(log32(1), 0);
    ck_float(log32(0), -HUGE_VALF);
    ck_float(log32(HUGE_VALF), HUGE_VALF);
    ck_assert(isnan(log32(-1)) && isnan(log32(NAN)));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tensor/kernel");
    TCase *t = tcase_create("kernel");
    tcase_add_loop_test(t, elements, 0, (int)COUNT_OF(SIZES));
    tcase_add_loop_test(t, rows, 0, 5);
    tcase_add_loop_test(t, reductions, 0, (int)COUNT_OF(SIZES));
    tcase_add_test(t, strangers_are_found_wherever_they_are);
    tcase_add_test(t, values_whose_squares_are_not_finite);
    tcase_add_test(t, nan_is_not_hidden_by_relu);
    tcase_add_test(t, bytes);
    tcase_add_test(t, exponentials);
    tcase_add_test(t, sigmoids);
    tcase_add_test(t, logarithms);
    suite_add_tcase(s, t);
    return s;
}
