/* Which batches a worker gets in synchronous training: 20 batches in two epochs, groups of 4, 4 and 2. */
#include "coordinator_world.h"

static struct world open_synchronous(int64_t limit, int workers)
{
    static const char *const NAMES[] = { "worker-0", "worker-1", "worker-2" };
    struct world d = open_groups(limit, 4);
    for (int i = 0; i < workers; i++)
        ck_assert_int_eq(enrol(&d, NAMES[i], (uint64_t)i + 1, 0), 0);
    return d;
}

/* The ranges of a lease, as text. */
static void want_lease(struct world *d, const char *name, const struct lease_request *q, int64_t now, const char *want)
{
    AUTO_FINI(buf) got = BUF_INIT;
    struct lease_request request = *q;
    request.sender = sender(name, (uint64_t)(name[7] - '0') + 1);
    ck_assert_int_eq(coordinator_lease(d->c, &request, now, &d->reply, &d->e), 0);
    const struct coordinator_reply *r = &d->reply;
    buf_printf(&got, "%lld-%lld", (long long)r->first, (long long)(r->first + r->count));
    for (size_t i = 0; i < r->nmore; i += 2)
        buf_printf(&got, " %lld-%lld", (long long)r->more[i], (long long)r->more[i + 1]);
    ck_assert_str_eq(r->count > 0 ? got.data : "", want);
}

static void want_batches(struct world *d, const char *name, int64_t want, const char *ranges)
{
    want_lease(d, name, &(struct lease_request){ .want = want }, 0, ranges);
}

START_TEST(each_worker_gets_a_share_of_each_group)
{
    struct world d = open_synchronous(TOTAL, 2);
    want_batches(&d, "worker-0", 6, "0-2 4-6 8-10");
    want_batches(&d, "worker-1", 4, "2-4 6-8");
    want_batches(&d, "worker-1", 4, "10-12 14-16"); /* never across the end of an epoch */
    want_batches(&d, "worker-0", 100, "12-14 16-18 18-20");
    want_batches(&d, "worker-1", 100, "");
    close_coordinator(&d);
}
END_TEST

START_TEST(a_worker_alone_gets_whole_groups)
{
    struct world d = open_synchronous(TOTAL, 1);
    want_batches(&d, "worker-0", 8, "0-4 4-8");
    want_batches(&d, "worker-0", 1, "8-10");
    close_coordinator(&d);
}
END_TEST

START_TEST(more_workers_than_batches_of_a_group)
{
    struct world d = open_groups(10, 1);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(enrol(&d, "worker-1", 2, 0), 0);
    want_batches(&d, "worker-0", 1, "0-1");
    want_batches(&d, "worker-1", 2, "1-2 2-3");
    close_coordinator(&d);
}
END_TEST

/* A worker waits for lower batches: it gets those, or none. */
START_TEST(a_worker_may_ask_for_lower_batches_only)
{
    struct world d = open_synchronous(TOTAL, 2);
    want_batches(&d, "worker-1", 2, "0-2");
    want_batches(&d, "worker-0", 6, "2-4 4-6 8-10");
    struct leave_request leave = { .sender = sender("worker-1", 2) };
    want_lease(&d, "worker-0",
               &(struct lease_request){
                   .want = 9, .lower_only = true, .below = 2, .held = { .r = (int64_t[]){ 2, 10 }, .n = 2 } },
               0, "");
    ck_assert_int_eq(coordinator_leave(d.c, &leave, 0, &d.reply, &d.e), 0);
    want_lease(&d, "worker-0",
               &(struct lease_request){
                   .want = 9, .lower_only = true, .below = 2, .held = { .r = (int64_t[]){ 2, 10 }, .n = 2 } },
               0, "0-2");
    want_lease(&d, "worker-0",
               &(struct lease_request){
                   .want = 9, .lower_only = true, .below = 2, .held = { .r = (int64_t[]){ 0, 10 }, .n = 2 } },
               0, "");
    close_coordinator(&d);
}
END_TEST

START_TEST(held_leases_end_at_a_group)
{
    struct world d = open_synchronous(TOTAL, 2);
    ck_assert_int_eq(coordinator_hold(d.c), 0);
    want_batches(&d, "worker-0", 4, "");
    coordinator_allow_below(d.c, TOTAL);
    want_batches(&d, "worker-0", 2, "0-2");
    ck_assert_int_eq(coordinator_hold(d.c), 4); /* the group that was begun may be completed */
    want_batches(&d, "worker-1", 9, "2-4");
    want_batches(&d, "worker-1", 9, "");
    coordinator_allow_below(d.c, TOTAL);
    want_batches(&d, "worker-1", 9, "4-6 8-10 10-12 14-16");
    ck_assert_int_eq(coordinator_hold(d.c), 18);
    close_coordinator(&d);
}
END_TEST

/* All others wait for it: its batches go to others before it is known that it is gone, and then a death is counted. */
START_TEST(a_silent_worker_loses_its_batches)
{
    struct world d = open_synchronous(TOTAL, 2);
    want_batches(&d, "worker-0", 4, "0-2 4-6");
    coordinator_tick(d.c, SILENCE_MS);
    ck_assert_uint_eq(look(&d).stalls, 0);
    ck_assert_int_eq(beat(&d, "worker-1", 2, SILENCE_MS), 0);
    coordinator_tick(d.c, SILENCE_MS + 1);
    struct coordinator_view v = look(&d);
    ck_assert_uint_eq(v.stalls, 1);
    ck_assert_str_eq(v.stalled, "worker-0, which holds batches 0 to 1, was not heard for 0.3 s");
    want_lease(&d, "worker-1", &(struct lease_request){ .want = 4 }, SILENCE_MS + 1, "0-4");
    ck_assert_int_eq(v.poisoned, -1);
    coordinator_tick(d.c, SILENCE_MS + 2);
    ck_assert_uint_eq(look(&d).stalls, 1); /* told once */
    close_coordinator(&d);
}
END_TEST

/* Three processes in a row that end with the same batch: it is the batch. */
START_TEST(the_batch_of_silent_workers_that_died_is_named)
{
    struct world d = open_groups(TOTAL, 4);
    int64_t now = 0;
    for (uint64_t life = 1; life <= 3; life++) {
        ck_assert_int_eq(look(&d).poisoned, -1);
        ck_assert_int_eq(enrol(&d, "worker-0", life, now), 0);
        ck_assert_int_eq(lease(&d, "worker-0", life, now), 0);
        ck_assert_int_eq(d.reply.first, 0);
        now += SILENCE_MS + 1;
        coordinator_tick(d.c, now);
        ck_assert_int_eq(look(&d).poisoned, -1); /* it may live */
    }
    now += LEASE_MS + 1;
    coordinator_tick(d.c, now);
    ck_assert_int_eq(look(&d).poisoned, 0);
    close_coordinator(&d);
}
END_TEST

/* Others may have computed all that it holds: it needs not compute one first. */
START_TEST(a_silent_worker_that_lives_goes_on)
{
    struct world d = open_synchronous(TOTAL, 2);
    double sums[8] = { 0 };
    int64_t done[] = { 0 };
    want_batches(&d, "worker-0", 2, "0-2");
    ck_assert_int_eq(beat(&d, "worker-1", 2, SILENCE_MS), 0);
    coordinator_tick(d.c, SILENCE_MS + 1);
    ck_assert_uint_eq(look(&d).stalls, 1);
    struct coordinator_report report = { .ordinals = done, .n = 1, .sums = sums, .nsums = COUNT_OF(sums) };
    want_lease(&d, "worker-0", &(struct lease_request){ .want = 4, .report = report }, SILENCE_MS + 2, "0-2 4-6");
    ck_assert_uint_eq(look(&d).steps, 1); /* what it computed counts */
    coordinator_tick(d.c, SILENCE_MS + 2);
    ck_assert_int_eq(look(&d).poisoned, -1);
    close_coordinator(&d);
}
END_TEST

START_TEST(asynchronous_training_waits_for_a_silent_worker)
{
    struct world d = open_coordinator(TOTAL);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(lease(&d, "worker-0", 1, 0), 0);
    coordinator_tick(d.c, LEASE_MS);
    ck_assert_uint_eq(look(&d).stalls, 0);
    close_coordinator(&d);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("coordinator_lease");
    TCase *t = tcase_create("all");
    tcase_add_test(t, each_worker_gets_a_share_of_each_group);
    tcase_add_test(t, a_worker_alone_gets_whole_groups);
    tcase_add_test(t, more_workers_than_batches_of_a_group);
    tcase_add_test(t, a_worker_may_ask_for_lower_batches_only);
    tcase_add_test(t, held_leases_end_at_a_group);
    tcase_add_test(t, a_silent_worker_loses_its_batches);
    tcase_add_test(t, the_batch_of_silent_workers_that_died_is_named);
    tcase_add_test(t, a_silent_worker_that_lives_goes_on);
    tcase_add_test(t, asynchronous_training_waits_for_a_silent_worker);
    suite_add_tcase(s, t);
    return s;
}
