/* What the chief believes of a member: its own batches, once, and no more. */
#include "coordinator_world.h"

enum { WIDTH_MAX = 16 };

/* worker-N reports one batch, whose loss is `loss`, and holds none. */
static void computed(struct world *d, int worker, int64_t ordinal, double loss, int64_t now)
{
    double sums[WIDTH_MAX];
    const char *name = worker == 0 ? "worker-0" : "worker-1";
    ck_assert_uint_le(metrics_width(d->m), WIDTH_MAX);
    for (int i = 0; i < WIDTH_MAX; i++)
        sums[i] = 1;
    sums[0] = loss;
    struct heartbeat_request q = {
        .sender = sender(name, 1 + (uint64_t)worker),
        .report = { .ordinals = &ordinal, .n = 1, .sums = sums, .nsums = metrics_width(d->m), .steps = 1000 }
    };
    ck_assert_int_eq(coordinator_heartbeat(d->c, &q, now, &d->reply, &d->e), 0);
}

static void diverged(struct world *d, int worker, int64_t ordinal)
{
    struct heartbeat_request q = { .sender = sender(worker == 0 ? "worker-0" : "worker-1", 1 + (uint64_t)worker),
                                   .diverged = true,
                                   .diverged_ordinal = ordinal };
    ck_assert_int_eq(coordinator_heartbeat(d->c, &q, 1, &d->reply, &d->e), 0);
}

/* worker-0 has batches 0 to 9, worker-1 10 to 19. Both have reported before. */
static struct world two_workers(void)
{
    struct world d = open_coordinator(TOTAL);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(assign(&d, "worker-0", 1, (struct ordinal_ranges){ 0 }, 10, 0), 10);
    ck_assert_int_eq(enrol(&d, "worker-1", 2, 0), 0);
    ck_assert_int_eq(assign(&d, "worker-1", 2, (struct ordinal_ranges){ 0 }, 10, 0), 2); /* shared */
    return d;
}

START_TEST(a_member_speaks_of_its_own_batches_only)
{
    struct world d = two_workers();
    computed(&d, 1, 3, (double)NAN, 1);
    diverged(&d, 1, 3);
    diverged(&d, 1, 15); /* nobody's */
    ck_assert_uint_eq(look(&d).steps, 0);
    ck_assert(!look(&d).diverged);
    computed(&d, 0, 3, 1.5, 2);
    ck_assert_uint_eq(look(&d).steps, 1); /* as many as it names */
    diverged(&d, 0, 3);
    ck_assert(look(&d).diverged);
    close_coordinator(&d);
}
END_TEST

/* Batches that an earlier chief leased: reported once, with the first report, unless another worker has them now. */
START_TEST(a_new_chief_takes_the_first_report_of_a_worker_that_it_does_not_know)
{
    struct world d = open_coordinator(TOTAL);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(assign(&d, "worker-0", 1, (struct ordinal_ranges){ 0 }, 4, 0), 4);
    ck_assert_int_eq(enrol(&d, "worker-1", 2, 0), 0);
    coordinator_set(d.c, JOB_STARTING, 3, "");
    computed(&d, 1, 2, 1, 1); /* worker-0 has it */
    ck_assert_uint_eq(look(&d).steps, 0);
    coordinator_set(d.c, JOB_TRAINING, 3, "");
    computed(&d, 1, 12, (double)NAN, 1);
    ck_assert_uint_eq(look(&d).steps, 1);
    ck_assert(!look(&d).diverged);
    computed(&d, 1, 13, 1, 1);
    ck_assert_uint_eq(look(&d).steps, 1);
    close_coordinator(&d);
}
END_TEST

START_TEST(a_new_process_does_not_speak_for_the_earlier_one)
{
    struct world d = open_coordinator(TOTAL);
    ck_assert_int_eq(enrol(&d, "worker-0", 0, 0), 0);
    ck_assert_int_eq(assign(&d, "worker-0", 0, (struct ordinal_ranges){ 0 }, 4, 0), 4);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    computed(&d, 0, 2, 1, 1);
    ck_assert_uint_eq(look(&d).steps, 0);
    ck_assert_int_eq(enrol(&d, "worker-1", 1, 0), 0);
    ck_assert_int_eq(enrol(&d, "worker-1", 2, 0), 0);
    computed(&d, 1, 12, 1, 1); /* it has begun after this chief */
    ck_assert_uint_eq(look(&d).steps, 0);
    close_coordinator(&d);
}
END_TEST

static int enrol_with(struct world *d, const char *name, uint64_t incarnation, int64_t first, int64_t end, int64_t now)
{
    const int64_t held[] = { first, end };
    struct register_request q = registration(name, incarnation);
    q.held = (struct ordinal_ranges){ .r = held, .n = 2 };
    return coordinator_register(d->c, &q, now, &d->reply, &d->e);
}

START_TEST(what_a_worker_holds_is_claimed_when_it_registers)
{
    static const int64_t held[] = { 0, 20 };
    struct world d = open_coordinator(TOTAL);
    ck_assert_int_eq(enrol_with(&d, "worker-0", 1, 4, 8, 0), 0); /* of an earlier chief */
    ck_assert_int_eq(enrol_with(&d, "worker-0", 1, 0, 20, 0), 0);
    struct heartbeat_request q = { .sender = sender("worker-0", 1), .held = { .r = held, .n = 2 } };
    ck_assert_int_eq(coordinator_heartbeat(d.c, &q, 0, &d.reply, &d.e), 0);
    ck_assert_int_eq(enrol(&d, "worker-1", 2, 0), 0);
    ck_assert_int_eq(assign(&d, "worker-1", 2, (struct ordinal_ranges){ 0 }, 4, 0), 4);
    ck_assert_int_eq(d.reply.first, 0); /* 4 to 7 are leased */
    ck_assert_int_eq(assign(&d, "worker-1", 2, (struct ordinal_ranges){ .r = held, .n = 2 }, 4, 0), 3);
    ck_assert_int_eq(d.reply.first, 8);
    coordinator_tick(d.c, LEASE_MS + 1); /* both were paused */
    ck_assert_int_eq(enrol_with(&d, "worker-0", 1, 0, 20, LEASE_MS + 2), 0);
    ck_assert_int_eq(enrol(&d, "worker-2", 3, LEASE_MS + 2), 0);
    ck_assert_int_eq(assign(&d, "worker-2", 3, (struct ordinal_ranges){ 0 }, 20, LEASE_MS + 2), 1); /* a suspect */
    ck_assert_int_eq(d.reply.first, 0);
    ck_assert_int_eq(assign(&d, "worker-2", 3, (struct ordinal_ranges){ 0 }, 20, LEASE_MS + 2), 3);
    close_coordinator(&d);
}
END_TEST

/* Also while the chief initialises. */
START_TEST(what_a_worker_holds_is_claimed_when_training_begins)
{
    static const int64_t held[] = { 4, 8 };
    struct world d = open_coordinator(TOTAL);
    coordinator_set(d.c, JOB_STARTING, 3, "");
    ck_assert_int_eq(enrol_with(&d, "worker-0", 1, 4, 8, 0), 0);
    coordinator_set(d.c, JOB_TRAINING, 3, "");
    ck_assert_int_eq(assign(&d, "worker-0", 1, (struct ordinal_ranges){ .r = held, .n = 2 }, 20, 0), 4);
    ck_assert_int_eq(assign(&d, "worker-0", 1, (struct ordinal_ranges){ .r = held, .n = 2 }, 20, 0), 12);
    ck_assert_int_eq(d.reply.first, 8);
    close_coordinator(&d);
}
END_TEST

static int leave(struct world *d, const char *name, uint64_t incarnation, int64_t now)
{
    struct leave_request q = { .sender = sender(name, incarnation) };
    return coordinator_leave(d->c, &q, now, &d->reply, &d->e);
}

static int64_t ask(struct world *d, const char *name, uint64_t incarnation, int64_t now)
{
    return assign(d, name, incarnation, (struct ordinal_ranges){ 0 }, 20, now);
}

/* worker-0 says that it works on its batches, and does not. They are worker-1's when it has nothing else to do, and no
 * death is counted. What worker-0 computes in the end counts, and it gets batches again. */
START_TEST(a_stalled_worker_gives_its_batches_back)
{
    static const int64_t held[] = { 0, 10 };
    struct world d = open_coordinator(10);
    struct heartbeat_request alive = { .sender = sender("worker-0", 1), .held = { .r = held, .n = 2 } };
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(ask(&d, "worker-0", 1, 0), 10);
    for (int round = 0; round < LEDGER_DEATHS_MAX + 1; round++) {
        int64_t at = round * 3 * LEASE_MS;
        ck_assert_int_eq(enrol(&d, "worker-1", 2, at), 0);
        for (int64_t now = at; now < at + 3 * LEASE_MS; now += LEASE_MS / 2) {
            ck_assert_int_eq(coordinator_heartbeat(d.c, &alive, now, &d.reply, &d.e), 0);
            coordinator_tick(d.c, now);
            ck_assert_int_eq(ask(&d, "worker-1", 2, now), 0);
            ck_assert_str_eq(d.reply.message, "worker-0, which holds batches 0 to 9");
        }
        ck_assert_int_eq(coordinator_heartbeat(d.c, &alive, at + 3 * LEASE_MS, &d.reply, &d.e), 0);
        ck_assert_int_eq(ask(&d, "worker-1", 2, at + 3 * LEASE_MS), 0);
        ck_assert_uint_eq(look(&d).stalls, (uint64_t)round + 1);
        ck_assert_str_eq(look(&d).stalled, "worker-0 has not computed batches 0 to 9 for 3 s");
        ck_assert_int_eq(ask(&d, "worker-0", 1, at + 3 * LEASE_MS), 0);
        ck_assert_int_gt(ask(&d, "worker-1", 2, at + 3 * LEASE_MS), 0);
        ck_assert_int_eq(leave(&d, "worker-1", 2, at + 3 * LEASE_MS), 0);
        computed(&d, 0, 0, 1, at + 3 * LEASE_MS);
        ck_assert_uint_eq(look(&d).steps, (uint64_t)round + 1);
        ck_assert_int_eq(ask(&d, "worker-0", 1, at + 3 * LEASE_MS), 10);
        ck_assert_int_eq(look(&d).poisoned, -1);
    }
    close_coordinator(&d);
}
END_TEST

START_TEST(a_worker_that_computes_slowly_has_not_stalled)
{
    static const int64_t held[] = { 0, 10 };
    struct world d = open_coordinator(10);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(ask(&d, "worker-0", 1, 0), 10);
    for (int64_t i = 0, now = 0; i < 9; i++) {
        for (int k = 0; k < 5; k++, now += LEASE_MS / 2) {
            struct heartbeat_request alive = { .sender = sender("worker-0", 1), .held = { .r = held, .n = 2 } };
            ck_assert_int_eq(coordinator_heartbeat(d.c, &alive, now, &d.reply, &d.e), 0);
            ck_assert_int_eq(enrol(&d, "worker-1", 2, now), 0);
            ck_assert_int_eq(ask(&d, "worker-1", 2, now), 0);
        }
        const int64_t rest[] = { i + 1, 10 };
        struct heartbeat_request q = { .sender = sender("worker-0", 1),
                                       .report = { .ordinals = &i, .n = 1, .sums = (double[WIDTH_MAX]){ 1 } },
                                       .held = { .r = rest, .n = 2 } };
        q.report.nsums = metrics_width(d.m);
        ck_assert_int_eq(coordinator_heartbeat(d.c, &q, now, &d.reply, &d.e), 0);
    }
    ck_assert_uint_eq(look(&d).stalls, 0);
    close_coordinator(&d);
}
END_TEST

/* A batch takes worker-1 6 s: worker-0 has 18 s for one, and not the 3 s of three leases. */
START_TEST(where_batches_take_long_a_worker_has_longer)
{
    static const int64_t held[] = { 4, 10 };
    static const double sums[WIDTH_MAX] = { 1 };
    static const int64_t first = 0;
    struct world d = open_coordinator(10);
    struct heartbeat_request alive = { .sender = sender("worker-0", 1), .held = { .r = held, .n = 2 } };
    struct heartbeat_request slow = {
        .sender = sender("worker-1", 2),
        .report = { .ordinals = &first, .n = 1, .sums = sums, .nsums = metrics_width(d.m), .compute_ns = 6000000000U }
    };
    ck_assert_int_eq(enrol(&d, "worker-1", 2, 0), 0);
    ck_assert_int_eq(assign(&d, "worker-1", 2, (struct ordinal_ranges){ 0 }, 4, 0), 4);
    ck_assert_int_eq(coordinator_heartbeat(d.c, &slow, 0, &d.reply, &d.e), 0);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    while (assign(&d, "worker-0", 1, (struct ordinal_ranges){ .r = held, .n = 2 }, 20, 0) > 0)
        continue;
    for (int64_t now = 0; now < 18 * LEASE_MS; now += LEASE_MS / 2) {
        ck_assert_int_eq(coordinator_heartbeat(d.c, &alive, now, &d.reply, &d.e), 0);
        ck_assert_int_eq(ask(&d, "worker-1", 2, now), 0);
        ck_assert_uint_eq(look(&d).stalls, 0);
    }
    ck_assert_int_eq(ask(&d, "worker-1", 2, 18 * LEASE_MS), 0);
    ck_assert_uint_eq(look(&d).stalls, 1);
    close_coordinator(&d);
}
END_TEST

/* While the chief initialises the ps, nothing can be computed. */
START_TEST(nobody_stalls_while_the_chief_initialises)
{
    static const int64_t held[] = { 0, 10 };
    struct world d = open_coordinator(10);
    struct heartbeat_request alive = { .sender = sender("worker-0", 1), .held = { .r = held, .n = 2 } };
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(ask(&d, "worker-0", 1, 0), 10);
    coordinator_set(d.c, JOB_STARTING, 3, "");
    for (int64_t now = 0; now < 20 * LEASE_MS; now += LEASE_MS / 2) {
        ck_assert_int_eq(coordinator_heartbeat(d.c, &alive, now, &d.reply, &d.e), 0);
        coordinator_tick(d.c, now);
    }
    coordinator_set(d.c, JOB_TRAINING, 4, "");
    ck_assert_int_eq(enrol(&d, "worker-1", 2, 20 * LEASE_MS), 0);
    ck_assert_int_eq(ask(&d, "worker-1", 2, 20 * LEASE_MS), 0);
    ck_assert_uint_eq(look(&d).stalls, 0);
    close_coordinator(&d);
}
END_TEST

START_TEST(an_earlier_process_does_not_take_the_name_of_one_that_is_alive)
{
    struct world d = open_coordinator(TOTAL);
    ck_assert_int_eq(enrol(&d, "worker-0", 5, 0), 0);
    ck_assert_int_eq(ask(&d, "worker-0", 5, 0), 20);
    ck_assert_int_eq(enrol(&d, "worker-0", 4, 0), -1);
    ck_assert_int_eq(d.e.code, ERR_NOT_READY);
    ck_assert_str_eq(d.e.msg, "a process that started later is worker-0, and it is alive");
    ck_assert_int_eq(beat(&d, "worker-0", 5, 1), 0);
    coordinator_tick(d.c, LEASE_MS + 2);
    ck_assert_int_eq(enrol(&d, "worker-0", 4, LEASE_MS + 2), 0); /* clocks of hosts differ */
    close_coordinator(&d);
}
END_TEST

START_TEST(an_evaluator_gets_no_batches)
{
    struct world d = open_coordinator(TOTAL);
    struct register_request q = registration("evaluator-0", 1);
    q.sender.role = ROLE_EVALUATOR;
    ck_assert_int_eq(coordinator_register(d.c, &q, 0, &d.reply, &d.e), 0);
    ck_assert_int_eq(ask(&d, "evaluator-0", 1, 0), 0);
    close_coordinator(&d);
}
END_TEST

/* A worker's word about a newer chief is checked with the file of generations, so the next number is enough. */
START_TEST(a_generation_of_a_worker_is_one_above_at_most)
{
    static const struct {
        uint64_t said, seen;
    } CASES[] = { { 2, 2 }, { 3, 3 }, { 4, 4 }, { 5, 4 }, { UINT64_MAX, 4 } };
    for (size_t i = 0; i < COUNT_OF(CASES); i++) {
        struct world d = open_coordinator(TOTAL);
        struct register_request q = registration("worker-0", 1);
        q.sender.generation = CASES[i].said;
        ck_assert_int_eq(coordinator_register(d.c, &q, 0, &d.reply, &d.e), 0);
        ck_assert_uint_eq(look(&d).highest_generation, CASES[i].seen);
        close_coordinator(&d);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("words");
    TCase *t = tcase_create("all");
    tcase_add_test(t, a_member_speaks_of_its_own_batches_only);
    tcase_add_test(t, a_new_chief_takes_the_first_report_of_a_worker_that_it_does_not_know);
    tcase_add_test(t, a_new_process_does_not_speak_for_the_earlier_one);
    tcase_add_test(t, what_a_worker_holds_is_claimed_when_it_registers);
    tcase_add_test(t, what_a_worker_holds_is_claimed_when_training_begins);
    tcase_add_test(t, a_stalled_worker_gives_its_batches_back);
    tcase_add_test(t, a_worker_that_computes_slowly_has_not_stalled);
    tcase_add_test(t, where_batches_take_long_a_worker_has_longer);
    tcase_add_test(t, nobody_stalls_while_the_chief_initialises);
    tcase_add_test(t, an_earlier_process_does_not_take_the_name_of_one_that_is_alive);
    tcase_add_test(t, an_evaluator_gets_no_batches);
    tcase_add_test(t, a_generation_of_a_worker_is_one_above_at_most);
    suite_add_tcase(s, t);
    return s;
}
