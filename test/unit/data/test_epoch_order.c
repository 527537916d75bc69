#include <stdlib.h>
#include <string.h>

#include "check_main.h"
#include "data/dataset.h"
#include "data/epoch_order.h"

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

/* Chi-squared over a table of (position decile, image decile), summed over keys: 81 degrees of freedom, so
 * 150 is far in the tail (p < 1e-5) while a permutation that keeps places would give thousands. */
static void epoch_of(int64_t n, bool random_access, uint64_t seed, int64_t epoch, int64_t *ret)
{
    struct epoch_order o = epoch_order_of(n, random_access, true, seed);
    epoch_order_records(&o, epoch, 0, (size_t)n, ret);
}

static const int64_t WINDOW_SIZES[] = { 1, 2, 1000, 1024, 1025, 16383, 16384, 16385, 40000, 100000, 131072, 131073 };

START_TEST(every_epoch_holds_each_record_once)
{
    int64_t n = WINDOW_SIZES[_i];
    auto_free int64_t *v = xcalloc((size_t)n, sizeof(*v));
    for (int random_access = 0; random_access < 2; random_access++) {
        for (int64_t epoch = 0; epoch < 3; epoch++) {
            epoch_of(n, random_access != 0, 42, epoch, v);
            assert_covers(v, n);
        }
    }
}
END_TEST

START_TEST(a_position_has_one_record_whoever_asks_and_in_whatever_pieces)
{
    enum { N = 40000 };
    for (int random_access = 0; random_access < 2; random_access++) {
        auto_free int64_t *whole = xcalloc(N, sizeof(*whole));
        epoch_of(N, random_access != 0, 3, 5, whole);
        struct epoch_order o = epoch_order_of(N, random_access != 0, true, 3);
        for (int64_t at = N - 77; at >= 0; at -= 977) { /* backwards, across windows, with other epochs in between */
            int64_t piece[77];
            epoch_order_records(&o, 4, at, 1, piece);
            epoch_order_records(&o, 5, at, 77, piece);
            ck_assert_mem_eq(piece, whole + at, sizeof(piece));
        }
    }
}
END_TEST

START_TEST(epochs_and_seeds_differ)
{
    enum { N = 5000 };
    int64_t a[N], b[N], c[N];
    for (int random_access = 0; random_access < 2; random_access++) {
        int same_epoch = 0, same_seed = 0;
        epoch_of(N, random_access != 0, 1, 0, a);
        epoch_of(N, random_access != 0, 1, 1, b);
        epoch_of(N, random_access != 0, 2, 0, c);
        for (int i = 0; i < N; i++) {
            same_epoch += a[i] == b[i];
            same_seed += a[i] == c[i];
        }
        ck_assert_int_lt(same_epoch, 15);
        ck_assert_int_lt(same_seed, 15);
    }
}
END_TEST

START_TEST(a_window_reads_few_blocks)
{
    enum { N = 100000, WINDOW = ORDER_BLOCK * ORDER_WINDOW };
    auto_free int64_t *v = xcalloc(N, sizeof(*v));
    epoch_of(N, false, 11, 2, v);
    for (int64_t first = 0; first + 200 <= N; first += 200) {
        bool seen[N / ORDER_BLOCK + 1] = { false };
        int blocks = 0;
        for (int64_t i = first; i < first + 200; i++) {
            blocks += !seen[v[i] / ORDER_BLOCK];
            seen[v[i] / ORDER_BLOCK] = true;
        }
        if (blocks > 2 * ORDER_WINDOW || blocks < 2) /* two windows where one ends */
            ck_abort_msg("%d blocks at %lld", blocks, (long long)first);
    }
}
END_TEST

START_TEST(not_shuffled_is_the_order_of_the_files)
{
    struct epoch_order o = epoch_order_of(100, false, false, 9);
    int64_t v[10];
    epoch_order_records(&o, 3, 50, 10, v);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(v[i], 50 + i);
}
END_TEST

/* These numbers are in checkpoints: they may change only together with SHUFFLE_VERSION. */
START_TEST(order_is_what_it_was_in_earlier_releases)
{
    static const int64_t RANDOM[] = { 29356, 17207, 59904, 35938 }, WINDOWED[] = { 48545, 35579, 29048, 37087 };
    int64_t v[4];
    struct epoch_order o = epoch_order_of(60000, true, true, 7);
    epoch_order_records(&o, 1, 100, 4, v);
    ck_assert_mem_eq(v, RANDOM, sizeof(v));
    o = epoch_order_of(60000, false, true, 7);
    epoch_order_records(&o, 1, 30000, 4, v);
    ck_assert_mem_eq(v, WINDOWED, sizeof(v));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("data/epoch_order");
    TCase *t = tcase_create("epoch_order");
    suite_add_tcase(s, t);
    tcase_add_loop_test(t, every_epoch_holds_each_record_once, 0, COUNT_OF(WINDOW_SIZES));
    tcase_add_test(t, a_position_has_one_record_whoever_asks_and_in_whatever_pieces);
    tcase_add_test(t, epochs_and_seeds_differ);
    tcase_add_test(t, a_window_reads_few_blocks);
    tcase_add_test(t, not_shuffled_is_the_order_of_the_files);
    tcase_add_test(t, order_is_what_it_was_in_earlier_releases);
    return s;
}
