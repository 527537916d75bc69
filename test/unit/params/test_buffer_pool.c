#include "check_main.h"

#include <stdint.h>
#include <string.h>

#include "params/buffer_pool.h"

static const struct buffer_pool_limit AMPLE = { .budget = 1 << 30 };

static struct pooled_buffer *take(struct buffer_pool *p, size_t size)
{
    struct pooled_buffer *b = NULL;
    struct err e;
    ck_ok_e(buffer_pool_take(p, size, AMPLE, &b, &e));
    ck_assert_uint_ge(b->size, size);
    ck_assert_uint_eq((uintptr_t)b->data % 64, 0);
    memset(b->data, 1, size);
    return b;
}

START_TEST(buffers_are_used_again)
{
    AUTO(buffer_pool) *p = buffer_pool_new();
    struct pooled_buffer *large = take(p, 100000), *small = take(p, 100);
    buffer_pool_give(large);
    buffer_pool_give(small);
    ck_assert_ptr_eq(take(p, 90000), large);
    ck_assert_ptr_eq(take(p, 80), small); /* the one that fits best */
    struct pooled_buffer *third = take(p, 80);
    ck_assert_ptr_ne(third, small);
    buffer_pool_give(large);
    buffer_pool_give(small);
    buffer_pool_give(third);
}
END_TEST

START_TEST(few_idle_ones_are_kept)
{
    AUTO(buffer_pool) *p = buffer_pool_new();
    struct pooled_buffer *all[3 * BUFFER_POOL_KEEP];
    for (size_t i = 0; i < COUNT_OF(all); i++)
        all[i] = take(p, 1000 + i);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        buffer_pool_give(all[i]); /* the sanitizer's leak check sees what is not freed */
    struct pooled_buffer *largest = take(p, 1000 + COUNT_OF(all) - 1); /* what is expensive to allocate is kept */
    ck_assert_ptr_eq(largest, all[COUNT_OF(all) - 1]);
    buffer_pool_give(largest);
}
END_TEST

START_TEST(a_buffer_outlives_the_pool)
{
    struct buffer_pool *p = buffer_pool_new();
    struct pooled_buffer *a = take(p, 10), *b = take(p, 20);
    buffer_pool_give(a);
    buffer_pool_free(p);
    memset(b->data, 2, 20);
    buffer_pool_hand_over(b);
    buffer_pool_give(b);
    buffer_pool_give(NULL);
}
END_TEST

START_TEST(no_more_than_the_budget_is_out)
{
    AUTO(buffer_pool) *p = buffer_pool_new();
    const struct buffer_pool_limit small = { .budget = 1000 }, patient = { .budget = 1000, .wait_ms = 20 };
    struct pooled_buffer *large = NULL, *b = NULL;
    struct err e = { .msg = "" };
    ck_ok_e(buffer_pool_take(p, 2000, small, &large, &e)); /* alone: of any size */
    ck_assert_int_eq(buffer_pool_take(p, 1, small, &b, &e), -1);
    ck_assert_int_eq(e.code, ERR_NOT_READY);
    ck_assert_int_eq(buffer_pool_take(p, 1, patient, &b, &e), -1);
    buffer_pool_give(large);
    ck_ok_e(buffer_pool_reserve(p, 600, small, &e));
    ck_ok_e(buffer_pool_take(p, 400, small, &b, &e));
    ck_assert_int_eq(buffer_pool_reserve(p, 1, small, &e), -1);
    buffer_pool_release(p, 600, 0);
    ck_ok_e(buffer_pool_reserve(p, 600, small, &e));
    buffer_pool_release(p, 600, 0);
    buffer_pool_give(b);
}
END_TEST

/* One caller has its share, and no more; the others have the rest of the budget. */
START_TEST(a_caller_has_its_share_only)
{
    AUTO(buffer_pool) *p = buffer_pool_new();
    const struct buffer_pool_limit greedy = { .budget = 1000, .caller = 1, .share = 300 };
    const struct buffer_pool_limit other = { .budget = 1000, .caller = 2, .share = 300 };
    const struct buffer_pool_limit unknown = { .budget = 1000 };
    struct pooled_buffer *b = NULL, *c = NULL;
    struct err e = { .msg = "" };
    ck_ok_e(buffer_pool_take(p, 200, greedy, &b, &e));
    ck_ok_e(buffer_pool_reserve(p, 100, greedy, &e));
    ck_assert_int_eq(buffer_pool_reserve(p, 1, greedy, &e), -1);
    ck_assert_int_eq(e.code, ERR_NOT_READY);
    ck_ok_e(buffer_pool_take(p, 400, other, &c, &e)); /* its only one: larger than a share */
    ck_assert_int_eq(buffer_pool_reserve(p, 1, other, &e), -1);
    ck_ok_e(buffer_pool_reserve(p, 300, unknown, &e));
    ck_assert_int_eq(buffer_pool_reserve(p, 1, unknown, &e), -1);
    buffer_pool_give(b);
    ck_ok_e(buffer_pool_reserve(p, 200, greedy, &e)); /* what it has read is free again */
    ck_assert_int_eq(buffer_pool_reserve(p, 1, greedy, &e), -1);
    buffer_pool_release(p, 200, 1);
    buffer_pool_release(p, 100, 1);
    buffer_pool_release(p, 300, 0);
    buffer_pool_give(c);
    ck_ok_e(buffer_pool_take(p, 1000, greedy, &b, &e));
    buffer_pool_give(b);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("buffer_pool");
    TCase *c = tcase_create("all");
    tcase_add_test(c, buffers_are_used_again);
    tcase_add_test(c, few_idle_ones_are_kept);
    tcase_add_test(c, a_buffer_outlives_the_pool);
    tcase_add_test(c, no_more_than_the_budget_is_out);
    tcase_add_test(c, a_caller_has_its_share_only);
    suite_add_tcase(s, c);
    return s;
}
