#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "check_main.h"
#include "data/permutation.h"

static const int64_t SIZES[] = { 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 64, 100, 1000, 1023, 1024, 1025, 60000 };

static int64_t feistel(int64_t i, int64_t n, uint64_t key)
{
    struct permutation p = permutation_of(n, key);
    return permutation_at(&p, i);
}

static void assert_covers(const int64_t *v, int64_t n)
{
    auto_free bool *seen = xcalloc((size_t)n, sizeof(*seen));
    for (int64_t i = 0; i < n; i++) {
        if (v[i] < 0 || v[i] >= n)
            ck_abort_msg("%lld is not below %lld", (long long)v[i], (long long)n);
        if (seen[v[i]])
            ck_abort_msg("%lld comes twice", (long long)v[i]);
        seen[v[i]] = true;
    }
}

START_TEST(feistel_is_a_bijection_that_can_be_inverted)
{
    int64_t n = SIZES[_i];
    auto_free int64_t *v = xcalloc((size_t)n, sizeof(*v));
    for (uint64_t key = 0; key < 5; key++) {
        struct permutation p = permutation_of(n, key * 0x123456789);
        for (int64_t i = 0; i < n; i++) {
            v[i] = feistel(i, n, key * 0x123456789);
            if (permutation_inverse(&p, v[i]) != i)
                ck_abort_msg("%lld is not found again", (long long)i);
        }
        assert_covers(v, n);
    }
}
END_TEST

START_TEST(feistel_holds_for_sizes_beyond_32_bits)
{
    int64_t n = ((int64_t)1 << 40) + 12345;
    struct permutation p = permutation_of(n, 7);
    for (int64_t i = 0; i < 1000; i++) {
        int64_t at = i * (n / 1000), image = feistel(at, n, 7);
        ck_assert(image >= 0 && image < n);
        ck_assert_int_eq(permutation_inverse(&p, image), at);
    }
}
END_TEST

START_TEST(feistel_spreads_every_part_over_the_whole)
{
    enum { N = 10000, KEYS = 20 };
    for (uint64_t key = 0; key < KEYS; key++) {
        int table[10][10] = { 0 };
        double chi = 0;
        for (int64_t i = 0; i < N; i++)
            table[i / (N / 10)][feistel(i, N, key) / (N / 10)]++;
        for (int a = 0; a < 10; a++)
            for (int b = 0; b < 10; b++)
                chi += (table[a][b] - N / 100.0) * (table[a][b] - N / 100.0) / (N / 100.0);
        ck_assert_msg(chi < 150 && chi > 35, "key %llu: chi squared %.1f", (unsigned long long)key, chi);
    }
}
END_TEST

/* Neighbours must not stay neighbours, and keys must not resemble each other. */
START_TEST(feistel_separates_neighbours_and_keys)
{
    enum { N = 60000 };
    int near = 0, same = 0;
    for (int64_t i = 0; i + 1 < N; i++) {
        int64_t a = feistel(i, N, 1), b = feistel(i + 1, N, 1);
        near += llabs(a - b) < 10;
        same += a == feistel(i, N, 2);
    }
    ck_assert_int_lt(near, 40); /* 20 expected */
    ck_assert_int_lt(same, 10); /* 1 expected */
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/permutation");
    TCase *t = tcase_create("permutation");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, feistel_is_a_bijection_that_can_be_inverted, 0, COUNT_OF(SIZES));
    tcase_add_test(t, feistel_holds_for_sizes_beyond_32_bits);
    tcase_add_test(t, feistel_spreads_every_part_over_the_whole);
    tcase_add_test(t, feistel_separates_neighbours_and_keys);
    return s;
}
