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

/* The chief may call them; who is not alive may still have the state. */
START_TEST(the_chief_knows_where_its_workers_serve)
{
    struct world d = open_groups(TOTAL, 4);
    auto_free struct known_member *workers = NULL;
    struct register_request q = registration("worker-1", 7);
    q.address = "host:1";
    ck_assert_int_eq(coordinator_register(d.c, &q, 0, &d.reply, &d.e), 0);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, SILENCE_MS), 0);
    ck_assert_uint_eq(coordinator_workers(d.c, SILENCE_MS + 1, &workers), 2);
    ck_assert_str_eq(workers[0].name, "worker-1");
    ck_assert_str_eq(workers[0].address, "host:1");
    ck_assert_uint_eq(workers[0].incarnation, 7);
    ck_assert(!workers[0].alive); /* not heard */
    ck_assert(workers[1].alive);
    ck_assert_str_eq(workers[1].address, "");
    close_coordinator(&d);
}
END_TEST

static bool heard(struct world *d, int64_t now_ms)
{
    auto_free struct known_member *workers = NULL;
    ck_assert_uint_eq(coordinator_workers(d->c, now_ms, &workers), 1);
    return workers[0].alive;
}

START_TEST(a_chief_that_was_stopped_itself_gives_workers_time_to_call)
{
    struct world d = open_groups(TOTAL, 4);
    int64_t now = SILENCE_MS;
    ck_assert_int_eq(enrol(&d, "worker-0", 1, now), 0);
    ck_assert(heard(&d, now));
    now += 10 * SILENCE_MS; /* it did not look for so long */
    ck_assert(heard(&d, now));
    ck_assert(heard(&d, now + SILENCE_MS / 2));
    ck_assert(!heard(&d, now + SILENCE_MS));
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

/* The threads of one process are known before they have registered. The first one does not take what the others will
 * compute at the same time. */
START_TEST(threads_that_are_to_come_have_a_share)
{
    struct world d = open_shared(TOTAL, 4, 4);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    want_batches(&d, "worker-0", 2, "0-1 4-5");
    ck_assert_int_eq(enrol(&d, "worker-1", 2, 0), 0);
    want_batches(&d, "worker-1", 3, "1-2 5-6 8-9");
    want_batches(&d, "worker-0", 2, "2-3 6-7"); /* alone it does not wait for the others */
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

START_TEST(three_workers_of_a_group_of_four)
{
    struct world d = open_synchronous(TOTAL, 3);
    want_batches(&d, "worker-0", 2, "0-2");
    want_batches(&d, "worker-1", 2, "2-4");
    want_batches(&d, "worker-2", 2, "4-6"); /* none of the first group is left */
    want_batches(&d, "worker-0", 4, "6-8 8-10");
    close_coordinator(&d);
}
END_TEST

START_TEST(fewer_batches_than_workers)
{
    struct world d = open_synchronous(2, 3);
    want_batches(&d, "worker-2", 9, "0-2");
    want_batches(&d, "worker-0", 9, "");
    ck_assert_str_eq(d.reply.message, "worker-2, which holds batches 0 to 1");
    ck_assert_uint_gt(d.reply.wait_ms, 0); /* it does not ask again at once */
    want_batches(&d, "worker-1", 9, "");
    close_coordinator(&d);
}
END_TEST

START_TEST(a_short_last_group)
{
    struct world d = open_synchronous(TOTAL, 2);
    struct coordinator_view v;
    AUTO_FINI(ordinal_set) done = { .low = 8, .high = 8 };
    coordinator_observe(d.c, &done, 0);
    want_batches(&d, "worker-0", 2, "8-10"); /* it is as long as a share */
    want_batches(&d, "worker-1", 2, "10-12");
    want_lease(&d, "worker-0", &(struct lease_request){ .want = 8, .lower_only = true, .below = 10 }, 0, "");
    v = look(&d);
    ck_assert_int_eq(v.done_low, 8);
    close_coordinator(&d);
}
END_TEST

/* A group that crosses the limit is leased up to it. */
START_TEST(no_share_crosses_the_limit)
{
    struct world d = open_synchronous(5, 1);
    want_batches(&d, "worker-0", 100, "0-4 4-5");
    coordinator_allow_below(d.c, 8);
    want_batches(&d, "worker-0", 100, "5-8");
    close_coordinator(&d);
}
END_TEST

START_TEST(lower_batches_are_below_the_limit_too)
{
    struct world d = open_synchronous(4, 1);
    want_batches(&d, "worker-0", 1, "0-4");
    want_lease(&d, "worker-0", &(struct lease_request){ .want = 4, .lower_only = true, .below = 8 }, 0, "");
    close_coordinator(&d);
}
END_TEST

START_TEST(an_answer_has_room_for_so_many_groups)
{
    struct world d = open_groups(TOTAL, 1);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(assign(&d, "worker-0", 1, (struct ordinal_ranges){ 0 }, 100, 0), 1);
    ck_assert_uint_eq(d.reply.nmore, 2 * COORDINATOR_LEASE_RANGES);
    want_batches(&d, "worker-0", 2, "16-17 17-18"); /* the first after them */
    close_coordinator(&d);
}
END_TEST

/* A gradient that waits at the ps is not computed again. */
START_TEST(what_the_ps_have_of_a_group_is_left_out)
{
    struct world d = open_synchronous(TOTAL, 1);
    AUTO_FINI(ordinal_set) done = ORDINAL_SET_INIT;
    ck_assert_int_eq(ordinal_set_add(&done, 1, &d.e), 1);
    ck_assert_int_eq(ordinal_set_add(&done, 2, &d.e), 1);
    coordinator_observe(d.c, &done, 0);
    want_batches(&d, "worker-0", 8, "0-1 4-8");
    want_batches(&d, "worker-0", 8, "3-4 8-10");
    close_coordinator(&d);
}
END_TEST

START_TEST(a_worker_that_joins_gets_a_share_of_what_is_left)
{
    struct world d = open_synchronous(TOTAL, 1);
    want_batches(&d, "worker-0", 8, "0-4 4-8");
    ck_assert_int_eq(enrol(&d, "worker-1", 2, 0), 0);
    want_batches(&d, "worker-1", 4, "8-10 10-12");
    want_batches(&d, "worker-0", 4, "12-14 14-16");
    close_coordinator(&d);
}
END_TEST

/* Nobody else computes them: they come before all later ones. */
START_TEST(the_batches_of_a_worker_that_left_come_first)
{
    struct world d = open_synchronous(TOTAL, 2);
    struct leave_request leave = { .sender = sender("worker-1", 2) };
    want_batches(&d, "worker-1", 4, "0-2 4-6");
    want_batches(&d, "worker-0", 4, "2-4 6-8");
    ck_assert_int_eq(coordinator_leave(d.c, &leave, 0, &d.reply, &d.e), 0);
    want_lease(&d, "worker-0",
               &(struct lease_request){ .want = 12, .held = { .r = (int64_t[]){ 2, 4, 6, 8 }, .n = 4 } }, 0,
               "0-2 4-6 8-10");
    close_coordinator(&d);
}
END_TEST

/* A worker that has taken on many lower batches gives up the highest that it holds. */
START_TEST(what_a_worker_gives_up_goes_to_others)
{
    struct world d = open_synchronous(10, 2);
    AUTO_FINI(ordinal_set) none = ORDINAL_SET_INIT;
    const struct lease_request ask = { .want = 6, .held = { .r = (int64_t[]){ 2, 4, 6, 8 }, .n = 4 } };
    want_batches(&d, "worker-0", 6, "0-2 4-6 8-10");
    want_batches(&d, "worker-1", 6, "2-4 6-8");
    want_lease(&d, "worker-0", &(struct lease_request){ .want = 6, .held = { .r = (int64_t[]){ 0, 6 }, .n = 2 } }, 5,
               "");
    want_lease(&d, "worker-1", &ask, 5, ""); /* worker-0 may have computed them */
    coordinator_observe(d.c, &none, 6);
    want_lease(&d, "worker-1", &ask, 6, "8-10");
    close_coordinator(&d);
}
END_TEST

START_TEST(an_evaluator_has_no_share)
{
    struct world d = open_synchronous(TOTAL, 1);
    struct register_request q = registration("evaluator-0", 5);
    struct lease_request ask = { .sender = sender("evaluator-0", 5), .want = 4 };
    q.sender.role = ask.sender.role = ROLE_EVALUATOR;
    ck_assert_int_eq(coordinator_register(d.c, &q, 0, &d.reply, &d.e), 0);
    ck_assert_int_eq(coordinator_lease(d.c, &ask, 0, &d.reply, &d.e), 0);
    ck_assert_int_eq(d.reply.count, 0);
    want_batches(&d, "worker-0", 4, "0-4");
    close_coordinator(&d);
}
END_TEST

/* It holds batches and computes none, while another one waits for lower ones than those. */
START_TEST(only_who_holds_what_is_waited_for_has_stalled)
{
    struct world d = open_synchronous(TOTAL, 2);
    int64_t now = 3 * LEASE_MS;
    const struct ordinal_ranges own = { .r = (int64_t[]){ 4, 6 }, .n = 2 };
    AUTO_FINI(ordinal_set) done = { .low = 4, .high = 4 };
    coordinator_observe(d.c, &done, 0);
    want_batches(&d, "worker-0", 2, "4-6");
    for (int64_t at = 0; at <= now; at += SILENCE_MS) { /* it is heard */
        const struct heartbeat_request beat = { .sender = sender("worker-0", 1), .held = own };
        ck_assert_int_eq(coordinator_heartbeat(d.c, &beat, at, &d.reply, &d.e), 0);
        coordinator_tick(d.c, at);
    }
    ck_assert_int_eq(enrol(&d, "worker-1", 2, now), 0);
    struct lease_request ask = { .want = 4, .lower_only = true, .below = 4 };
    want_lease(&d, "worker-1", &ask, now, "");
    ck_assert_uint_eq(look(&d).stalls, 0);
    ask.below = 0;
    want_lease(&d, "worker-1", &ask, now, "");
    ck_assert_uint_eq(look(&d).stalls, 0);
    ask.below = 6;
    want_lease(&d, "worker-1", &ask, now, "");
    ck_assert_uint_eq(look(&d).stalls, 1);
    ck_assert_str_eq(look(&d).stalled, "worker-0 has not computed batches 4 to 5 for 3 s");
    want_lease(&d, "worker-1", &ask, now, "4-6");
    close_coordinator(&d);
}
END_TEST

/* It is slow, or hangs: when its process ends, its batch is not to blame. */
START_TEST(who_has_stalled_did_not_die_of_its_batch)
{
    struct world d = open_coordinator(TOTAL);
    const struct ordinal_ranges held = { .r = (int64_t[]){ 0, 4 }, .n = 2 };
    int64_t now = 0;
    ck_assert_int_eq(enrol(&d, "worker-1", 2, now), 0);
    for (uint64_t life = 1; life <= 4; life++) {
        const struct heartbeat_request alive = { .sender = sender("worker-0", life), .held = held };
        ck_assert_int_eq(enrol(&d, "worker-0", life, now), 0);
        ck_assert_int_gt(assign(&d, "worker-0", life, (struct ordinal_ranges){ 0 }, 4, now), 0);
        ck_assert_int_eq(d.reply.first, 0);
        for (int64_t until = now + 3 * LEASE_MS; now < until; now += SILENCE_MS) {
            ck_assert_int_eq(coordinator_heartbeat(d.c, &alive, now, &d.reply, &d.e), 0);
            ck_assert_int_eq(beat(&d, "worker-1", 2, now), 0);
        }
        while (assign(&d, "worker-1", 2, (struct ordinal_ranges){ 0 }, TOTAL, now) > 0)
            continue; /* until it has nothing to do */
        ck_assert_uint_eq(look(&d).stalls, life);
        coordinator_observe(d.c, &(struct ordinal_set)ORDINAL_SET_INIT, now + 1); /* it has applied none of them */
        now += 2;
    }
    ck_assert_int_eq(enrol(&d, "worker-0", 5, now), 0);
    ck_assert_int_eq(look(&d).poisoned, -1);
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

/* So that a thousand workers do not send thousands of heartbeats a second. */
START_TEST(heartbeats_of_many_workers_are_rarer)
{
    struct world d = open_synchronous(TOTAL, 2);
    want_batches(&d, "worker-0", 4, "0-2 4-6");
    ck_assert_uint_eq(d.reply.heartbeat_ms, 100);
    for (uint64_t i = 2; i < 100; i++) {
        char name[32];
        str_fmt(name, sizeof(name), "worker-%d", (int)i);
        ck_assert_int_eq(enrol(&d, name, i + 1, 0), 0);
    }
    ck_assert_uint_eq(d.reply.heartbeat_ms, 200);
    coordinator_tick(d.c, 2 * SILENCE_MS);
    ck_assert_uint_eq(look(&d).stalls, 0);
    coordinator_tick(d.c, 2 * SILENCE_MS + 1);
    ck_assert_uint_eq(look(&d).stalls, 1);
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

static void count_batches(void *user, struct epoch_metrics *t)
{
    double metrics[8];
    *(int64_t *)user = epoch_metrics_of(t, 0, metrics);
}

static struct coordinator_report report_of(const int64_t *ordinals, size_t n)
{
    static const double SUMS[64] = { 0 };
    return (struct coordinator_report){ .ordinals = ordinals, .n = n, .sums = SUMS, .nsums = COUNT_OF(SUMS) };
}

/* Both have computed it, and the ps took one of the gradients. */
START_TEST(a_late_report_counts_once)
{
    struct world d = open_synchronous(TOTAL, 2);
    int64_t counted = 0;
    static const int64_t same[] = { 0 };
    want_batches(&d, "worker-0", 2, "0-2");
    ck_assert_int_eq(beat(&d, "worker-1", 2, SILENCE_MS), 0);
    coordinator_tick(d.c, SILENCE_MS + 1);
    want_lease(&d, "worker-1", &(struct lease_request){ .want = 4 }, SILENCE_MS + 1, "0-4");
    struct lease_request late = { .want = 2, .report = report_of(same, 1) };
    want_lease(&d, "worker-0", &late, SILENCE_MS + 2, "4-6");
    coordinator_metrics(d.c, count_batches, &counted);
    ck_assert_int_eq(counted, 1);
    struct heartbeat_request own = { .sender = sender("worker-1", 2), .report = report_of(same, 1) };
    ck_assert_int_eq(coordinator_heartbeat(d.c, &own, SILENCE_MS + 3, &d.reply, &d.e), 0);
    coordinator_metrics(d.c, count_batches, &counted);
    ck_assert_int_eq(counted, 1);
    close_coordinator(&d);
}
END_TEST

/* A call is enough, without a batch that it has computed. */
START_TEST(a_worker_that_is_heard_again_gets_batches)
{
    struct world d = open_synchronous(TOTAL, 2);
    want_batches(&d, "worker-0", 2, "0-2");
    ck_assert_int_eq(beat(&d, "worker-1", 2, SILENCE_MS), 0);
    coordinator_tick(d.c, SILENCE_MS + 1);
    want_lease(&d, "worker-1", &(struct lease_request){ .want = 4 }, SILENCE_MS + 1, "0-4"); /* it is alone */
    ck_assert_int_eq(beat(&d, "worker-0", 1, SILENCE_MS + 2), 0);
    want_lease(&d, "worker-1", &(struct lease_request){ .want = 2 }, SILENCE_MS + 2, "4-6"); /* no longer */
    want_lease(&d, "worker-0", &(struct lease_request){ .want = 2 }, SILENCE_MS + 2, "6-8");
    close_coordinator(&d);
}
END_TEST

/* What it still holds of them may be leased to it again, so that it is not computed twice. */
START_TEST(a_silent_worker_keeps_what_nobody_took)
{
    struct world d = open_synchronous(TOTAL, 2);
    const struct ordinal_ranges own = { .r = (int64_t[]){ 0, 2 }, .n = 2 };
    want_batches(&d, "worker-0", 2, "0-2");
    ck_assert_int_eq(beat(&d, "worker-1", 2, SILENCE_MS), 0);
    coordinator_tick(d.c, SILENCE_MS + 1);
    struct register_request again = registration("worker-0", 1);
    again.held = own;
    ck_assert_int_eq(coordinator_register(d.c, &again, SILENCE_MS + 2, &d.reply, &d.e), 0);
    want_lease(&d, "worker-1", &(struct lease_request){ .want = 2 }, SILENCE_MS + 2, "2-4");
    close_coordinator(&d);
}
END_TEST

START_TEST(a_silent_worker_without_batches_is_not_missed)
{
    struct world d = open_synchronous(TOTAL, 2);
    want_batches(&d, "worker-0", 2, "0-2");
    ck_assert_int_eq(beat(&d, "worker-0", 1, SILENCE_MS), 0); /* it holds none any more */
    coordinator_tick(d.c, 2 * SILENCE_MS + 1);
    ck_assert_uint_eq(look(&d).stalls, 0);
    close_coordinator(&d);
}
END_TEST

/* It is silent, its lease is over, it comes back as another process: one death each time. */
START_TEST(a_death_is_counted_once)
{
    struct world d = open_groups(TOTAL, 4);
    int64_t now = 0;
    for (uint64_t life = 1; life <= 2; life++) {
        ck_assert_int_eq(enrol(&d, "worker-0", life, now), 0);
        ck_assert_int_eq(lease(&d, "worker-0", life, now), 0);
        ck_assert_int_eq(d.reply.first, 0);
        coordinator_tick(d.c, now + SILENCE_MS + 1);
        coordinator_tick(d.c, now + LEASE_MS + 1);
        coordinator_tick(d.c, now + LEASE_MS + 2);
        now += 2 * LEASE_MS;
    }
    ck_assert_int_eq(enrol(&d, "worker-0", 3, now), 0);
    ck_assert_int_eq(look(&d).poisoned, -1);
    ck_assert_int_eq(lease(&d, "worker-0", 3, now), 0);
    coordinator_tick(d.c, now + LEASE_MS + 1);
    ck_assert_int_eq(look(&d).poisoned, 0);
    close_coordinator(&d);
}
END_TEST

/* It was silent twice, and holds all that it was leased: it computes the lowest. */
START_TEST(the_lowest_batch_of_a_silent_worker_is_named)
{
    struct world d = open_groups(TOTAL, 4);
    const struct ordinal_ranges lowest = { .r = (int64_t[]){ 0, 4 }, .n = 2 };
    int64_t now = 0;
    for (uint64_t life = 1; life <= 3; life++, now += 4 * LEASE_MS) {
        struct leave_request leave = { .sender = sender("worker-1", life) };
        ck_assert_int_eq(enrol(&d, "worker-0", life, now), 0);
        ck_assert_int_eq(lease(&d, "worker-0", life, now), 0);
        ck_assert_int_eq(d.reply.first, 0);
        coordinator_tick(d.c, now + SILENCE_MS + 1);
        ck_assert_int_eq(enrol(&d, "worker-1", life, now + SILENCE_MS + 1), 0);
        ck_assert_int_eq(lease(&d, "worker-1", life, now + SILENCE_MS + 1), 0);
        ck_assert_int_eq(d.reply.first, 0);
        ck_assert_int_gt(assign(&d, "worker-0", life, lowest, 4, now + SILENCE_MS + 2), 0);
        ck_assert_int_gt(d.reply.first, 0);
        coordinator_tick(d.c, now + 2 * SILENCE_MS + 3);
        ck_assert_int_eq(coordinator_leave(d.c, &leave, now + 2 * SILENCE_MS + 3, &d.reply, &d.e), 0);
        ck_assert_int_eq(look(&d).poisoned, -1);
    }
    coordinator_tick(d.c, now);
    ck_assert_int_eq(look(&d).poisoned, 0);
    close_coordinator(&d);
}
END_TEST

/* Another worker has computed the batch: it is not the reason. */
START_TEST(a_batch_that_is_done_has_killed_nobody)
{
    struct world d = open_synchronous(TOTAL, 2);
    AUTO_FINI(ordinal_set) done = { .low = 4, .high = 4 }, none = ORDINAL_SET_INIT;
    int64_t now = 0;
    for (uint64_t life = 1; life <= 4; life++) {
        ck_assert_int_eq(enrol(&d, "worker-0", life, now), 0);
        coordinator_observe(d.c, &none, now);
        ck_assert_int_eq(lease(&d, "worker-0", life, now), 0);
        ck_assert_int_eq(d.reply.first, 0);
        now += SILENCE_MS + 1;
        ck_assert_int_eq(beat(&d, "worker-1", 2, now), 0);
        coordinator_tick(d.c, now);
        coordinator_observe(d.c, &done, now);
    }
    ck_assert_int_eq(enrol(&d, "worker-0", 5, now), 0);
    coordinator_observe(d.c, &none, now);
    ck_assert_int_eq(look(&d).poisoned, -1);
    close_coordinator(&d);
}
END_TEST

/* It lived, and computed that batch or gave it up: a later death is not that batch's. */
START_TEST(a_worker_that_gave_its_batch_up_did_not_die_of_it)
{
    struct world d = open_groups(TOTAL, 4);
    int64_t now = 0;
    for (uint64_t life = 1; life <= 4; life++) {
        ck_assert_int_eq(enrol(&d, "worker-0", life, now), 0);
        ck_assert_int_eq(lease(&d, "worker-0", life, now), 0);
        coordinator_tick(d.c, now + SILENCE_MS + 1);
        ck_assert_int_eq(beat(&d, "worker-0", life, now + SILENCE_MS + 2), 0);
        coordinator_tick(d.c, now + 3 * LEASE_MS); /* the process is gone */
        now += 4 * LEASE_MS;
    }
    ck_assert_int_eq(look(&d).poisoned, -1);
    close_coordinator(&d);
}
END_TEST

/* Four processes in a row end while they hold a batch that they cannot compute yet, and say so. */
static void die_waiting(bool heartbeat)
{
    struct world d = open_groups(TOTAL, 4);
    const struct ordinal_ranges held = { .r = (int64_t[]){ 0, 4 }, .n = 2 };
    for (uint64_t life = 1; life <= 4; life++) {
        const struct coordinator_sender me = sender("worker-0", life);
        const struct heartbeat_request waits = { .sender = me, .held = held, .waiting_for = "the gradient of batch 1" };
        const struct lease_request asks = { .sender = me, .held = held, .want = 4, .lower_only = true, .below = 0 };
        ck_assert_int_eq(enrol(&d, "worker-0", life, 0), 0);
        ck_assert_int_eq(lease(&d, "worker-0", life, 0), 0);
        ck_assert_int_eq(d.reply.first, 0);
        ck_assert_int_eq(heartbeat ? coordinator_heartbeat(d.c, &waits, 0, &d.reply, &d.e)
                                   : coordinator_lease(d.c, &asks, 0, &d.reply, &d.e),
                         0);
    }
    ck_assert_int_eq(enrol(&d, "worker-0", 5, 0), 0);
    ck_assert_int_eq(look(&d).poisoned, -1);
    close_coordinator(&d);
}

START_TEST(a_worker_that_waits_does_not_die_of_its_batch)
{
    die_waiting(true);
    die_waiting(false);
}
END_TEST

/* It has waited, and goes on: because its next call does not say so any more, or with batches that it gets then. */
static void die_after_waiting(bool heartbeat)
{
    struct world d = open_groups(TOTAL, 4);
    const struct ordinal_ranges held = { .r = (int64_t[]){ 0, 4 }, .n = 2 };
    for (uint64_t life = 1; life <= 3; life++) {
        const struct coordinator_sender me = sender("worker-0", life);
        struct heartbeat_request beat = { .sender = me, .held = held, .waiting_for = "the gradient of batch 1" };
        const struct lease_request asks = { .sender = me, .held = held, .want = 1, .lower_only = true, .below = 8 };
        ck_assert_int_eq(look(&d).poisoned, -1);
        ck_assert_int_eq(enrol(&d, "worker-0", life, 0), 0);
        ck_assert_int_eq(lease(&d, "worker-0", life, 0), 0);
        ck_assert_int_eq(d.reply.first, 0);
        ck_assert_int_eq(coordinator_heartbeat(d.c, &beat, 0, &d.reply, &d.e), 0);
        beat.waiting_for = "";
        ck_assert_int_eq(heartbeat ? coordinator_heartbeat(d.c, &beat, 0, &d.reply, &d.e)
                                   : coordinator_lease(d.c, &asks, 0, &d.reply, &d.e),
                         0);
    }
    ck_assert_int_eq(enrol(&d, "worker-0", 4, 0), 0);
    ck_assert_int_eq(look(&d).poisoned, 0);
    close_coordinator(&d);
}

START_TEST(a_worker_that_goes_on_may_die_of_its_batch)
{
    die_after_waiting(true);
    die_after_waiting(false);
}
END_TEST

START_TEST(a_silent_worker_that_leaves_did_not_die)
{
    struct world d = open_groups(TOTAL, 4);
    const int64_t held[] = { 0, 4 };
    for (uint64_t life = 1; life <= 4; life++) {
        int64_t now = (int64_t)life * 4 * LEASE_MS;
        struct leave_request leave = { .sender = sender("worker-0", life) };
        struct heartbeat_request alive = { .sender = leave.sender, .held = { .r = held, .n = 2 } };
        ck_assert_int_eq(enrol(&d, "worker-0", life, now), 0);
        ck_assert_int_eq(lease(&d, "worker-0", life, now), 0);
        coordinator_tick(d.c, now + SILENCE_MS + 1);
        ck_assert_int_eq(coordinator_heartbeat(d.c, &alive, now + SILENCE_MS + 2, &d.reply, &d.e), 0);
        ck_assert_int_eq(coordinator_leave(d.c, &leave, now + SILENCE_MS + 3, &d.reply, &d.e), 0);
    }
    ck_assert_int_eq(enrol(&d, "worker-0", 5, 30 * LEASE_MS), 0);
    ck_assert_int_eq(look(&d).poisoned, -1);
    close_coordinator(&d);
}
END_TEST

START_TEST(asynchronous_training_waits_for_a_silent_worker)
{
    struct world d = open_coordinator(TOTAL);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(lease(&d, "worker-0", 1, 0), 0);
    coordinator_tick(d.c, LEASE_MS - 1);
    ck_assert_uint_eq(look(&d).stalls, 0);
    close_coordinator(&d);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("coordinator_lease");
    TCase *t = tcase_create("all");
    tcase_add_test(t, each_worker_gets_a_share_of_each_group);
    tcase_add_test(t, the_chief_knows_where_its_workers_serve);
    tcase_add_test(t, a_chief_that_was_stopped_itself_gives_workers_time_to_call);
    tcase_add_test(t, a_worker_alone_gets_whole_groups);
    tcase_add_test(t, threads_that_are_to_come_have_a_share);
    tcase_add_test(t, more_workers_than_batches_of_a_group);
    tcase_add_test(t, a_worker_may_ask_for_lower_batches_only);
    tcase_add_test(t, three_workers_of_a_group_of_four);
    tcase_add_test(t, fewer_batches_than_workers);
    tcase_add_test(t, a_short_last_group);
    tcase_add_test(t, no_share_crosses_the_limit);
    tcase_add_test(t, lower_batches_are_below_the_limit_too);
    tcase_add_test(t, an_answer_has_room_for_so_many_groups);
    tcase_add_test(t, what_the_ps_have_of_a_group_is_left_out);
    tcase_add_test(t, a_worker_that_joins_gets_a_share_of_what_is_left);
    tcase_add_test(t, the_batches_of_a_worker_that_left_come_first);
    tcase_add_test(t, what_a_worker_gives_up_goes_to_others);
    tcase_add_test(t, an_evaluator_has_no_share);
    tcase_add_test(t, only_who_holds_what_is_waited_for_has_stalled);
    tcase_add_test(t, who_has_stalled_did_not_die_of_its_batch);
    tcase_add_test(t, held_leases_end_at_a_group);
    tcase_add_test(t, a_silent_worker_loses_its_batches);
    tcase_add_test(t, heartbeats_of_many_workers_are_rarer);
    tcase_add_test(t, the_batch_of_silent_workers_that_died_is_named);
    tcase_add_test(t, a_silent_worker_that_lives_goes_on);
    tcase_add_test(t, a_late_report_counts_once);
    tcase_add_test(t, a_worker_that_is_heard_again_gets_batches);
    tcase_add_test(t, a_silent_worker_keeps_what_nobody_took);
    tcase_add_test(t, a_silent_worker_without_batches_is_not_missed);
    tcase_add_test(t, a_death_is_counted_once);
    tcase_add_test(t, the_lowest_batch_of_a_silent_worker_is_named);
    tcase_add_test(t, a_batch_that_is_done_has_killed_nobody);
    tcase_add_test(t, a_worker_that_gave_its_batch_up_did_not_die_of_it);
    tcase_add_test(t, a_worker_that_waits_does_not_die_of_its_batch);
    tcase_add_test(t, a_worker_that_goes_on_may_die_of_its_batch);
    tcase_add_test(t, a_silent_worker_that_leaves_did_not_die);
    tcase_add_test(t, asynchronous_training_waits_for_a_silent_worker);
    suite_add_tcase(s, t);
    return s;
}
