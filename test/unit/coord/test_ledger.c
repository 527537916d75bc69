#include "check_main.h"
#include "coord/ledger.h"

#include <stdlib.h>

#include "base/rng.h"

static int64_t lease_below(struct ledger *l, int worker, int64_t want, int64_t limit, int64_t *ret_first)
{
    const struct ledger_wish wish = { .worker = worker, .want = want, .limit = limit };
    return ledger_lease(l, &wish, ret_first);
}

static int64_t lease(struct ledger *l, int worker, int64_t want)
{
    int64_t first = -1, n = lease_below(l, worker, want, INT64_MAX, &first);
    return n > 0 ? first : -1;
}

static void observe(struct ledger *l, int64_t low, const int64_t *ranges, size_t n, int64_t begun)
{
    struct ordinal_set a = ORDINAL_SET_INIT;
    ck_assert_int_eq(ordinal_set_from(low, ranges, n, &a, NULL), 0);
    ledger_observe(l, &a, begun);
    ordinal_set_fini(&a);
}

START_TEST(lends_in_order_and_once)
{
    AUTO(ledger) *l = ledger_new(10);
    int64_t first;
    ck_assert_int_eq(lease_below(l, 1, 4, INT64_MAX, &first), 4);
    ck_assert_int_eq(first, 0);
    ck_assert_int_eq(lease_below(l, 2, 4, INT64_MAX, &first), 4);
    ck_assert_int_eq(first, 4);
    ck_assert_int_eq(lease_below(l, 1, 4, INT64_MAX, &first), 2);
    ck_assert_int_eq(first, 8);
    ck_assert_int_eq(lease_below(l, 2, 4, INT64_MAX, &first), 0);
}
END_TEST

START_TEST(a_limit_holds_back_the_next_epoch)
{
    AUTO(ledger) *l = ledger_new(10);
    int64_t first;
    ck_assert_int_eq(lease_below(l, 1, 8, 5, &first), 5);
    ck_assert_int_eq(lease_below(l, 1, 8, 5, &first), 0);
    observe(l, 5, NULL, 0, 1);
    ck_assert(!ledger_finished(l));
    ck_assert_int_eq(lease_below(l, 1, 8, 10, &first), 5);
}
END_TEST

START_TEST(done_comes_only_from_the_segments)
{
    AUTO(ledger) *l = ledger_new(4);
    lease(l, 1, 4);
    ledger_complete(l, 1, (struct ordinal_ranges){ 0 }, 10); /* it reports "complete" */
    ck_assert_int_eq(ledger_done(l), 0);
    ck_assert_int_eq(lease(l, 2, 4), -1);     /* not free before the segments were polled */
    observe(l, 0, (int64_t[]){ 1, 3 }, 2, 5); /* polled before that report: decides 1 and 2 only */
    ck_assert_int_eq(lease(l, 2, 1), -1);
    observe(l, 0, (int64_t[]){ 1, 3 }, 2, 20);
    ck_assert_int_eq(ledger_done(l), 2);
    ck_assert_int_eq(lease(l, 2, 4), 0); /* what it reported but did not apply is leased again */
    ck_assert_int_eq(lease(l, 2, 4), 3);
}
END_TEST

/* The worker forgot 1, 3 and 5 of the lease when training went back to a checkpoint. */
START_TEST(what_a_worker_does_not_hold_of_a_lease_is_leased_again)
{
    AUTO(ledger) *l = ledger_new(6);
    const struct ordinal_ranges held = { .r = (int64_t[]){ 0, 1, 2, 3, 4, 5 }, .n = 6 };
    lease(l, 1, 6);
    ledger_complete(l, 1, held, 10);
    ck_assert_int_eq(lease(l, 2, 6), -1); /* the segments may have its update */
    observe(l, 0, (int64_t[]){ 3, 4 }, 2, 20);
    ck_assert_int_eq(lease(l, 2, 6), 1);
    ck_assert_int_eq(lease(l, 2, 6), 5);
    ck_assert_int_eq(lease(l, 2, 6), -1);
    for (int64_t at = 0; at < 6; at++)
        ck_assert_int_eq(ledger_holder(l, at), at == 3 ? -1 : at % 2 == 0 ? 1 : 2);
}
END_TEST

/* What it has finished later is judged later. */
START_TEST(the_begin_of_a_lease_is_judged_while_its_worker_goes_on)
{
    AUTO(ledger) *l = ledger_new(8);
    lease(l, 1, 8);
    ledger_complete(l, 1, (struct ordinal_ranges){ .r = (int64_t[]){ 3, 8 }, .n = 2 }, 10);
    ledger_complete(l, 1, (struct ordinal_ranges){ .r = (int64_t[]){ 5, 8 }, .n = 2 }, 30);
    observe(l, 0, NULL, 0, 20);
    ck_assert_int_eq(lease(l, 2, 8), 0);
    ck_assert_int_eq(lease(l, 2, 8), -1); /* 3 and 4 */
    observe(l, 0, NULL, 0, 40);
    ck_assert_int_eq(lease(l, 2, 8), 3);
    for (int64_t at = 0; at < 8; at++)
        ck_assert_int_eq(ledger_holder(l, at), at < 5 ? 2 : 1);
}
END_TEST

START_TEST(a_worker_that_leaves_gives_back_without_a_death)
{
    AUTO(ledger) *l = ledger_new(2);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(lease(l, i, 2), 0);
        ledger_drop(l, i);
    }
    ck_assert_int_eq(ledger_poisoned(l), -1);
}
END_TEST

START_TEST(three_deaths_on_one_batch_name_it)
{
    AUTO(ledger) *l = ledger_new(100);
    observe(l, 0, (int64_t[]){ 10, 13 }, 2, 0);
    for (int i = 0; i < LEDGER_DEATHS_MAX; i++) {
        ck_assert_int_eq(ledger_poisoned(l), -1);
        lease(l, i, 13); /* 0..9 */
        ck_assert_int_eq(lease(l, i, 5), 13);
        observe(l, 10, (int64_t[]){ 11, 13 }, 2, 1); /* 0..12 applied, died on 13 */
        ledger_count_death(l, ledger_drop(l, i));
        observe(l, 0, (int64_t[]){ 10, 13 }, 2, 2);
    }
    ck_assert_int_eq(ledger_poisoned(l), 13);
}
END_TEST

/* It dies on 3: 1 and 2 are done, 4 to 6 are another worker's, and it would have come to 7 later. */
START_TEST(a_worker_dies_on_the_lowest_batch_it_holds)
{
    AUTO(ledger) *l = ledger_new(20);
    lease(l, 1, 4);
    lease(l, 2, 3);
    lease(l, 1, 2);
    observe(l, 3, NULL, 0, 1);
    ck_assert_int_eq(ledger_drop(l, 1), 3);
    ck_assert_int_eq(ledger_drop(l, 1), -1);
    ledger_complete(l, 2, (struct ordinal_ranges){ 0 }, 2);
    ck_assert_int_eq(ledger_drop(l, 2), -1); /* it has computed all that it held */
}
END_TEST

/* After a death on 3 the ranges around it are leased without it, and it alone: also from the middle of a range. */
START_TEST(a_batch_with_a_death_is_leased_alone)
{
    AUTO(ledger) *l = ledger_new(10);
    int64_t first;
    ledger_count_death(l, 3);
    ck_assert_int_eq(lease_below(l, 1, 9, INT64_MAX, &first), 3);
    ck_assert_int_eq(first, 0);
    ck_assert_int_eq(lease_below(l, 1, 9, INT64_MAX, &first), 1);
    ck_assert_int_eq(first, 3);
    ck_assert_int_eq(lease_below(l, 1, 9, INT64_MAX, &first), 6);
    ck_assert_int_eq(first, 4);
    ledger_drop(l, 1);
    observe(l, 0, (int64_t[]){ 3, 4 }, 2, 1);
    ck_assert_int_eq(lease(l, 2, 9), 0);
    ck_assert_int_eq(lease(l, 2, 9), 4);
}
END_TEST

START_TEST(a_restored_ps_takes_batches_back)
{
    AUTO(ledger) *l = ledger_new(6);
    lease(l, 1, 6);
    observe(l, 6, NULL, 0, 1);
    ck_assert(ledger_finished(l));
    observe(l, 2, (int64_t[]){ 4, 5 }, 2, 2);
    ck_assert(!ledger_finished(l));
    ck_assert_int_eq(lease(l, 1, 9), 2);
    ck_assert_int_eq(lease(l, 1, 9), 5);
}
END_TEST

START_TEST(a_chief_that_came_back_lends_again_what_workers_hold)
{
    AUTO(ledger) *l = ledger_new(20);
    observe(l, 4, NULL, 0, 0);
    ledger_reclaim(l, 1, (struct ordinal_ranges){ .r = (int64_t[]){ 2, 6, 10, 12 }, .n = 4 });
    ck_assert_int_eq(lease(l, 2, 99), 6); /* 4, 5 are the first worker's */
    ck_assert_int_eq(lease(l, 2, 99), 12);
    ck_assert_int_eq(lease(l, 2, 99), -1);
    ledger_drop(l, 1);
    ck_assert_int_eq(lease(l, 2, 1), 4);
}
END_TEST

START_TEST(drained_is_when_only_the_segments_know_more)
{
    AUTO(ledger) *l = ledger_new(4);
    ck_assert(!ledger_drained(l, 4));
    lease(l, 1, 4);
    ck_assert(!ledger_drained(l, 4));
    ledger_complete(l, 1, (struct ordinal_ranges){ 0 }, 10);
    ck_assert(ledger_drained(l, 4));
    observe(l, 4, NULL, 0, 11);
    ck_assert(!ledger_drained(l, 4));
}
END_TEST

START_TEST(what_is_free_is_neither_lent_nor_done)
{
    AUTO(ledger) *l = ledger_new(20);
    ck_assert_int_eq(ledger_free_below(l, 10), 10);
    lease(l, 1, 4);
    lease(l, 2, 3);
    ck_assert_int_eq(ledger_free_below(l, 10), 3);
    ledger_drop(l, 1); /* a hole */
    ck_assert_int_eq(ledger_free_below(l, 10), 7);
    observe(l, 4, NULL, 0, 1);
    ck_assert_int_eq(ledger_free_below(l, 10), 3);
    ck_assert_int_eq(ledger_free_below(l, 99), 13);
    ck_assert(ledger_leased_below(l, 5) && !ledger_leased_below(l, 4));
}
END_TEST

/* Worker 1 has 0 to 3 and, after worker 2's 4 to 6, also 7 to 8; 0 and 1 are done. */
START_TEST(who_holds_what)
{
    AUTO(ledger) *l = ledger_new(20);
    struct held_batches held;
    ck_assert(!ledger_first_held(l, 9, 20, &held) && !ledger_next_of(l, 1, 0, &held));
    lease(l, 1, 4);
    lease(l, 2, 3);
    lease(l, 1, 2);
    observe(l, 2, NULL, 0, 1);
    static const int HOLDERS[] = { 1, 1, 1, 1, 2, 2, 2, 1, 1, -1 };
    for (int i = 0; i < (int)COUNT_OF(HOLDERS); i++)
        ck_assert_int_eq(ledger_holder(l, i), HOLDERS[i]);
    ck_assert(ledger_first_held(l, 9, 20, &held));
    ck_assert(held.worker == 1 && held.first == 2 && held.end == 4);
    ck_assert(ledger_first_held(l, 1, 20, &held));
    ck_assert(held.worker == 2 && held.first == 4 && held.end == 7);
    ck_assert(ledger_first_held(l, 1, 6, &held));
    ck_assert_int_eq(held.end, 6);
    ck_assert(!ledger_first_held(l, 1, 4, &held));
    ck_assert(ledger_next_of(l, 1, 0, &held) && held.first == 0);
    ck_assert(ledger_next_of(l, 1, held.end, &held) && held.first == 7 && held.end == 9);
    ck_assert(!ledger_next_of(l, 1, held.end, &held));
    ledger_complete(l, 2, (struct ordinal_ranges){ 0 }, 2); /* complete, as far as it knows */
    ck_assert(!ledger_first_held(l, 1, 20, &held) && !ledger_next_of(l, 2, 0, &held));
}
END_TEST

/* Workers that lease, apply, report, fail and register again at random. Every ordinal ends applied; none is leased to
 * two workers at once. */
START_TEST(storm)
{
    enum { TOTAL = 500, WORKERS = 5 };
    struct rng r = rng_at(7, RNG_TEST, (uint64_t)_i, 0);
    AUTO(ledger) *l = ledger_new(TOTAL);
    struct ordinal_set done = ORDINAL_SET_INIT;
    int owner[TOTAL] = { 0 }, number[WORKERS], next = 1;
    for (int w = 0; w < WORKERS; w++)
        number[w] = next++;
    for (int64_t now = 0; !ledger_finished(l) && now < 200000; now++) {
        int w = (int)rng_below(&r, WORKERS), mine = number[w];
        int64_t first, n = lease_below(l, number[w], 1 + (int64_t)rng_below(&r, 9), INT64_MAX, &first);
        for (int64_t i = 0; i < n; i++) {
            ck_assert_int_eq(owner[first + i], 0);
            owner[first + i] = mine;
        }
        for (int64_t i = 0; i < TOTAL; i++)
            if (owner[i] == mine && rng_below(&r, 2) == 0)
                ck_assert_int_ge(ordinal_set_add(&done, i, NULL), 0);
        bool dies = rng_below(&r, 4) == 0;
        if (dies) {
            ledger_drop(l, mine);
            number[w] = next++;
        } else
            ledger_complete(l, mine, (struct ordinal_ranges){ 0 }, now);
        ledger_observe(l, &done, now + 1);
        for (int64_t i = 0; i < TOTAL; i++)
            if (owner[i] == mine)
                owner[i] = 0; /* applied, or free again */
    }
    ck_assert(ledger_finished(l));
    ck_assert_int_eq(ledger_done(l), TOTAL);
    ordinal_set_fini(&done);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("ledger");
    TCase *t = tcase_create("ledger");
    tcase_add_test(t, lends_in_order_and_once);
    tcase_add_test(t, a_limit_holds_back_the_next_epoch);
    tcase_add_test(t, done_comes_only_from_the_segments);
    tcase_add_test(t, what_a_worker_does_not_hold_of_a_lease_is_leased_again);
    tcase_add_test(t, the_begin_of_a_lease_is_judged_while_its_worker_goes_on);
    tcase_add_test(t, a_worker_that_leaves_gives_back_without_a_death);
    tcase_add_test(t, three_deaths_on_one_batch_name_it);
    tcase_add_test(t, a_worker_dies_on_the_lowest_batch_it_holds);
    tcase_add_test(t, a_batch_with_a_death_is_leased_alone);
    tcase_add_test(t, a_restored_ps_takes_batches_back);
    tcase_add_test(t, a_chief_that_came_back_lends_again_what_workers_hold);
    tcase_add_test(t, drained_is_when_only_the_segments_know_more);
    tcase_add_test(t, what_is_free_is_neither_lent_nor_done);
    tcase_add_test(t, who_holds_what);
    tcase_add_loop_test(t, storm, 0, 5);
    suite_add_tcase(s, t);
    return s;
}
