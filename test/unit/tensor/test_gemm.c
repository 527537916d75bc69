#include "check_main.h"
#include "tensor/gemm.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

static void draw(float *v, size_t n, uint32_t name)
{
    struct rng r = rng_at(1, RNG_TEST, 0, name);
    for (size_t i = 0; i < n; i++)
        v[i] = (float)rng_normal(&r);
}

static float *transposed(const float *a, size_t rows, size_t cols)
{
    float *t = xcalloc(rows * cols, sizeof(*t));
    for (size_t r = 0; r < rows; r++) {
        for (size_t c = 0; c < cols; c++)
            t[c * rows + r] = a[r * cols + c];
    }
    return t;
}

static void check(const float *got, const float *a, const float *b, const float *before, size_t m, size_t n, size_t k)
{
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            double want = before != NULL ? 0.5 * (double)before[i * n + j] : 0;
            for (size_t l = 0; l < k; l++)
                want += (double)a[i * k + l] * (double)b[l * n + j];
            ck_assert_double_eq_tol((double)got[i * n + j], want, 1e-5 * sqrt((double)k + 1));
        }
    }
}

/* All three products of the same matrices, each operand in the layout that the function needs. */
START_TEST(products)
{
    static const size_t SIZES[][3] = { { 1, 1, 1 }, { 3, 5, 7 }, { 64, 10, 128 }, { 2, 33, 17 } };
    const size_t m = SIZES[_i][0], n = SIZES[_i][1], k = SIZES[_i][2];
    auto_free float *a = xcalloc(m * k, sizeof(float)), *b = xcalloc(k * n, sizeof(float)),
                    *y = xcalloc(m * n, sizeof(float));
    auto_free float *before = xcalloc(m * n, sizeof(float));
    draw(a, m * k, 1);
    draw(b, k * n, 2);
    draw(before, m * n, 3);
    auto_free float *at = transposed(a, m, k), *bt = transposed(b, k, n);

    for (size_t i = 0; i < m * n; i++)
        y[i] = NAN; /* beta 0 ignores it */
    gemm_nn(a, b, 0, y, m, n, k);
    check(y, a, b, NULL, m, n, k);
    memcpy(y, before, m * n * sizeof(float));
    gemm_nt(a, bt, 0.5F, y, m, n, k);
    check(y, a, b, before, m, n, k);
    memcpy(y, before, m * n * sizeof(float));
    gemm_tn(at, b, 0.5F, y, m, n, k);
    check(y, a, b, before, m, n, k);
}
END_TEST

START_TEST(core_has_a_name)
{
    gemm_setup();
    ck_assert_uint_gt(strlen(gemm_core()), 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("tensor/gemm");
    TCase *t = tcase_create("gemm");
    tcase_add_loop_test(t, products, 0, 4);
    tcase_add_test(t, core_has_a_name);
    suite_add_tcase(s, t);
    return s;
}
