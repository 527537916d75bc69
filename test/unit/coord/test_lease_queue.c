#include "check_main.h"
#include "coord/lease_queue.h"

static struct lease_queue queue_of(const int64_t *ranges, size_t n)
{
    struct lease_queue q = { 0 };
    for (size_t i = 0; i < n; i += 2)
        lease_queue_add(&q, ranges[i], ranges[i + 1]);
    return q;
}

START_TEST(batches_are_taken_in_ascending_order)
{
    static const int64_t RANGES[] = { 8, 10, 2, 3, 5, 6 };
    struct lease_queue q = queue_of(RANGES, 6);
    ck_assert_int_eq(lease_queue_left(&q), 4);
    ck_assert_int_eq(lease_queue_first(&q), 2);
    static const int64_t WANT[] = { 2, 5, 8, 9 };
    for (size_t i = 0; i < 4; i++) {
        ck_assert(lease_queue_has_work(&q));
        ck_assert_int_eq(lease_queue_take(&q), WANT[i]);
    }
    ck_assert_int_eq(lease_queue_first(&q), -1);
    ck_assert(!lease_queue_has_work(&q));
}
END_TEST

START_TEST(only_so_many_are_taken_at_a_time)
{
    static const int64_t RANGE[] = { 0, LEASE_QUEUE_TAKEN + 2 };
    struct lease_queue q = queue_of(RANGE, 2);
    for (int i = 0; i < LEASE_QUEUE_TAKEN; i++)
        (void)lease_queue_take(&q);
    ck_assert(!lease_queue_has_work(&q));
    lease_queue_end(&q, 2);
    ck_assert(lease_queue_has_work(&q));
    lease_queue_end(&q, 99); /* none of them: nothing happens */
    ck_assert_int_eq(lease_queue_take(&q), LEASE_QUEUE_TAKEN);
}
END_TEST

START_TEST(what_is_held_is_ascending_without_overlap)
{
    static const int64_t RANGES[] = { 4, 6, 20, 22, 5, 8 }; /* a batch that was leased twice */
    struct lease_queue q = queue_of(RANGES, 6);
    int64_t held[LEASE_QUEUE_HELD];
    (void)lease_queue_take(&q);
    ck_assert_uint_eq(lease_queue_held(&q, held), 4);
    ck_assert_int_eq(held[0], 4);
    ck_assert_int_eq(held[1], 8);
    ck_assert_int_eq(held[2], 20);
    ck_assert_int_eq(held[3], 22);
    lease_queue_clear(&q);
    ck_assert_uint_eq(lease_queue_held(&q, held), 2); /* that which was taken */
    ck_assert_int_eq(held[0], 4);
    ck_assert_int_eq(held[1], 5);
}
END_TEST

START_TEST(a_batch_that_is_put_back_is_the_next_one)
{
    static const int64_t RANGES[] = { 4, 6, 20, 22 };
    struct lease_queue q = queue_of(RANGES, 4);
    for (int i = 0; i < 100; i++) { /* and takes no more room each time */
        ck_assert_int_eq(lease_queue_take(&q), 4);
        lease_queue_put_back(&q, 4);
        ck_assert_uint_eq(q.n, 2);
        ck_assert_uint_eq(q.ntaken, 0);
    }
    lease_queue_add(&q, 1, 2);
    ck_assert_int_eq(lease_queue_take(&q), 1);
    ck_assert_int_eq(lease_queue_take(&q), 4);
}
END_TEST

/* A worker puts back all batches of a group, also those that it has not taken again since the last time. */
START_TEST(a_batch_that_was_put_back_before_is_there_once)
{
    static const int64_t RANGES[] = { 4, 6, 20, 22 };
    struct lease_queue q = queue_of(RANGES, 4);
    ck_assert_int_eq(lease_queue_take(&q), 4);
    ck_assert_int_eq(lease_queue_take(&q), 5);
    lease_queue_put_back(&q, 5);
    lease_queue_put_back(&q, 4);
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(lease_queue_take(&q), 4);
        lease_queue_put_back(&q, 5);
        lease_queue_put_back(&q, 4);
        lease_queue_put_back(&q, 30); /* not held */
        ck_assert_int_eq(lease_queue_left(&q), 4);
    }
}
END_TEST

/* A worker that waits for lower batches has room for a lease of them; the highest are given up. */
START_TEST(there_is_always_room_for_lower_batches)
{
    struct lease_queue q = { 0 };
    int64_t next = 1000;
    while (lease_queue_has_room(&q))
        for (int i = 0; i < LEASE_QUEUE_LEASE; i++, next += 2)
            lease_queue_add(&q, next, next + 1);
    ck_assert_uint_gt(q.n, LEASE_QUEUE_LEASE);
    for (int64_t low = 900; low > 0; low -= 100) {
        lease_queue_put_back(&q, lease_queue_take(&q));
        for (int i = 0; i < LEASE_QUEUE_LEASE; i++)
            lease_queue_add(&q, low + 2 * i, low + 2 * i + 1);
        ck_assert_uint_lt(q.n, LEASE_QUEUE_MAX); /* one more may be put back */
        ck_assert_int_eq(lease_queue_first(&q), low);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("lease_queue");
    TCase *t = tcase_create("all");
    tcase_add_test(t, batches_are_taken_in_ascending_order);
    tcase_add_test(t, only_so_many_are_taken_at_a_time);
    tcase_add_test(t, what_is_held_is_ascending_without_overlap);
    tcase_add_test(t, a_batch_that_is_put_back_is_the_next_one);
    tcase_add_test(t, a_batch_that_was_put_back_before_is_there_once);
    tcase_add_test(t, there_is_always_room_for_lower_batches);
    suite_add_tcase(s, t);
    return s;
}
