#include "check_main.h"

#include <stdint.h>
#include <string.h>

#include "train/pool.h"

static struct pool_buffer *take(struct pool *p, size_t size)
{
    struct pool_buffer *b = NULL;
    struct err e;
    ck_ok_e(pool_take(p, size, &b, &e));
    ck_assert_uint_ge(b->size, size);
    ck_assert_uint_eq((uintptr_t)b->data % 64, 0);
    memset(b->data, 1, size);
    return b;
}

START_TEST(buffers_are_used_again)
{
    AUTO(pool) *p = pool_new();
    struct pool_buffer *large = take(p, 100000), *small = take(p, 100);
    pool_give(large);
    pool_give(small);
    ck_assert_ptr_eq(take(p, 90000), large);
    ck_assert_ptr_eq(take(p, 80), small); /* the one that fits best */
    struct pool_buffer *third = take(p, 80);
    ck_assert_ptr_ne(third, small);
    pool_give(large);
    pool_give(small);
    pool_give(third);
}
END_TEST

START_TEST(few_idle_ones_are_kept)
{
    AUTO(pool) *p = pool_new();
    struct pool_buffer *all[3 * POOL_KEEP];
    for (size_t i = 0; i < COUNT_OF(all); i++)
        all[i] = take(p, 1000 + i);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        pool_give(all[i]); /* the sanitizer's leak check sees what is not freed */
    struct pool_buffer *largest = take(p, 1000 + COUNT_OF(all) - 1); /* what is dear to make is kept */
    ck_assert_ptr_eq(largest, all[COUNT_OF(all) - 1]);
    pool_give(largest);
}
END_TEST

START_TEST(a_buffer_outlives_the_pool)
{
    struct pool *p = pool_new();
    struct pool_buffer *a = take(p, 10), *b = take(p, 20);
    pool_give(a);
    pool_free(p);
    memset(b->data, 2, 20);
    pool_lend(b);
    pool_give(b);
    pool_give(NULL);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("pool");
    TCase *c = tcase_create("all");
    tcase_add_test(c, buffers_are_used_again);
    tcase_add_test(c, few_idle_ones_are_kept);
    tcase_add_test(c, a_buffer_outlives_the_pool);
    suite_add_tcase(s, c);
    return s;
}
