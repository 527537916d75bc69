#include "coordinator_world.h"

#include "base/clock.h"
#include "base/thread.h"

START_TEST(registers_and_leases)
{
    struct world d = open_coordinator(TOTAL);
    struct register_request q = registration("worker-0", 1);
    q.sender.job_uid = ""; /* started by hand: receives it */
    ck_assert_int_eq(coordinator_register(d.c, &q, 0, &d.reply, &d.e), 0);
    ck_assert_str_eq(d.reply.job_uid, "uid-1");
    ck_assert_uint_eq(d.reply.generation, 3);
    ck_assert_int_eq(lease(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(d.reply.first, 0);
    ck_assert_int_eq(d.reply.count, 4);
    close_coordinator(&d);
}
END_TEST

static void other_batch(struct register_request *q)
{
    q->space.batch_size = 32;
}
static void other_seed(struct register_request *q)
{
    q->space.seed = 2;
}
static void other_data(struct register_request *q)
{
    q->space.fingerprint = 10;
}
static void other_examples(struct register_request *q)
{
    q->space.examples = 641;
}
static void other_model(struct register_request *q)
{
    q->layout_hash = 6;
}
static void other_job(struct register_request *q)
{
    q->sender.job_uid = "uid-2";
}
static void other_ps(struct register_request *q)
{
    q->ps_count = 1;
}
static void other_placement(struct register_request *q)
{
    q->placement_hash++;
}

START_TEST(refuses_a_worker_that_differs_and_names_the_field)
{
    static const struct {
        void (*change)(struct register_request *q);
        const char *says;
    } cases[] = { { other_batch, "fit.batchSize" },
                  { other_seed, "fit.seed" },
                  { other_data, "data.train" },
                  { other_examples, "data.train" },
                  { other_model, "spec.model" },
                  { other_job, "uid-2" },
                  { other_ps, "1 ps" },
                  { other_placement, "strategy.placement, or `device` of a layer" } };
    struct world d = open_coordinator(TOTAL);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct register_request q = registration("worker-0", 1);
        cases[i].change(&q);
        ck_assert_int_eq(coordinator_register(d.c, &q, 0, &d.reply, &d.e), -1);
        ck_assert_int_eq(d.e.code, ERR_REFUSED);
        ck_assert_msg(strstr(d.e.msg, cases[i].says) != NULL, "%s", d.e.msg);
    }
    close_coordinator(&d);
}
END_TEST

START_TEST(a_new_process_takes_over_the_name_and_frees_its_leases)
{
    struct world d = open_coordinator(TOTAL);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(lease(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(enrol(&d, "worker-0", 2, 10), 0);
    ck_assert_int_eq(lease(&d, "worker-0", 2, 10), 0);
    ck_assert_int_eq(d.reply.first, 0);
    ck_assert_int_eq(beat(&d, "worker-0", 1, 20), -1);
    ck_assert_int_eq(d.e.code, ERR_FENCED);
    close_coordinator(&d);
}
END_TEST

START_TEST(a_silent_worker_is_gone_after_its_lease)
{
    struct world d = open_coordinator(TOTAL);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(lease(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(enrol(&d, "worker-1", 2, LEASE_MS), 0);
    coordinator_tick(d.c, LEASE_MS);
    ck_assert_int_eq(look(&d).workers, 2);
    coordinator_tick(d.c, LEASE_MS + 1);
    ck_assert_int_eq(lease(&d, "worker-1", 2, LEASE_MS + 1), 0);
    ck_assert_int_eq(d.reply.first, 0);
    ck_assert_int_eq(beat(&d, "worker-0", 1, LEASE_MS + 2), -1);
    ck_assert_int_eq(d.e.code, ERR_NOT_READY); /* it registers again and goes on */
    close_coordinator(&d);
}
END_TEST

/* The chief waits for the result of an evaluator as long as members > workers. */
START_TEST(an_evaluator_is_a_member_as_long_as_it_calls)
{
    struct world d = open_coordinator(TOTAL);
    struct coordinator_view view;
    struct register_request q = registration("evaluator-0", 1);
    q.sender.role = ROLE_EVALUATOR;
    ck_assert_int_eq(coordinator_register(d.c, &q, 0, &d.reply, &d.e), 0);
    ck_assert_int_eq(enrol(&d, "worker-0", 2, 0), 0);
    coordinator_set(d.c, JOB_FINISHED, 3, "the job has finished");
    struct heartbeat_request alive = { .sender = q.sender };
    for (int64_t now = LEASE_MS; now <= 5 * LEASE_MS; now += LEASE_MS) {
        ck_assert_int_eq(coordinator_heartbeat(d.c, &alive, now, &d.reply, &d.e), 0);
        coordinator_tick(d.c, now + 1);
        coordinator_view(d.c, &view);
        ck_assert(view.members == 1 && view.workers == 0); /* the worker is silent */
    }
    coordinator_tick(d.c, 6 * LEASE_MS);
    coordinator_view(d.c, &view);
    ck_assert_int_eq(view.members, 1);
    coordinator_tick(d.c, 6 * LEASE_MS + 1);
    coordinator_view(d.c, &view);
    ck_assert_int_eq(view.members, 0);
    close_coordinator(&d);
}
END_TEST

START_TEST(nothing_is_leased_before_it_is_allowed_or_while_starting)
{
    struct world d = open_coordinator(0);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(lease(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(d.reply.count, 0);
    coordinator_allow_below(d.c, 3);
    ck_assert_int_eq(lease(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(d.reply.count, 3);
    coordinator_set(d.c, JOB_STARTING, 4, "the chief to restore ps-1");
    coordinator_allow_below(d.c, 9);
    ck_assert_int_eq(lease(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(d.reply.count, 0);
    ck_assert_int_eq((int)d.reply.state, JOB_STARTING);
    ck_assert_str_eq(d.reply.message, "the chief to restore ps-1");
    close_coordinator(&d);
}
END_TEST

static void observe(struct world *d, int64_t low, int64_t begun)
{
    AUTO_FINI(ordinal_set) done = ORDINAL_SET_INIT;
    for (int64_t i = 0; i < low; i++)
        ck_assert_int_eq(ordinal_set_add(&done, i, NULL), 1);
    coordinator_observe(d->c, &done, begun);
}

static int64_t assign_to(struct world *d, int worker, const int64_t *held, size_t n)
{
    return assign(d, worker == 0 ? "worker-0" : "worker-1", 1 + (uint64_t)worker,
                  (struct ordinal_ranges){ .r = held, .n = n }, 8, 1);
}

START_TEST(leases_shrink_towards_the_limit_and_end_there)
{
    struct world d = open_coordinator(16);
    int64_t sizes[TOTAL], held[2][2 * TOTAL];
    size_t nheld[2] = { 0, 0 };
    int n = 0;
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(enrol(&d, "worker-1", 2, 0), 0);
    for (int64_t got; (got = assign_to(&d, n % 2, held[n % 2], nheld[n % 2])) > 0; n++) {
        int64_t *at = held[n % 2] + nheld[n % 2];
        sizes[n] = got;
        at[0] = d.reply.first;
        at[1] = d.reply.first + got;
        nheld[n % 2] += 2;
    }
    int64_t sum = 0;
    for (int i = 0; i < n; i++) {
        ck_assert_msg(i == 0 || sizes[i] <= sizes[i - 1], "lease %d has %lld after %lld", i, (long long)sizes[i],
                      (long long)sizes[i - 1]);
        sum += sizes[i];
    }
    ck_assert_int_eq(sum, 16); /* nothing of the next epoch */
    ck_assert(sizes[0] == 4 && sizes[n - 1] == 1 && sizes[n - 2] == 1);
    coordinator_allow_below(d.c, TOTAL);
    ck_assert_int_eq(assign_to(&d, 0, held[0], nheld[0]), 1);
    ck_assert_int_eq(d.reply.first, 16);
    close_coordinator(&d);
}
END_TEST

static void waiting_thread(void *user)
{
    const struct world *d = user;
    coordinator_wait(d->c, clock_ms() + 3600000); /* longer than this test may take */
}

START_TEST(the_chief_is_woken_when_all_that_is_open_was_worked_on)
{
    struct world d = open_coordinator(10);
    struct coordinator_view view;
    int64_t all[2] = { 0, 10 };
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(assign(&d, "worker-0", 1, (struct ordinal_ranges){ 0 }, 10, 0), 10);
    coordinator_wait(d.c, clock_ms()); /* the registration */
    ck_assert_int_eq(assign(&d, "worker-0", 1, (struct ordinal_ranges){ .r = all, .n = 2 }, 10, 1), 0);
    coordinator_view(d.c, &view);
    ck_assert(!view.drained && view.working);
    struct thread chief = { 0 };
    ck_assert_int_eq(thread_start(&chief, "chief", waiting_thread, &d, &d.e), 0);
    ck_assert_int_eq(assign(&d, "worker-0", 1, (struct ordinal_ranges){ 0 }, 10, 2), 0);
    thread_join(&chief);
    coordinator_view(d.c, &view);
    ck_assert(view.drained && !view.working);
    observe(&d, 10, 3);
    coordinator_view(d.c, &view);
    ck_assert(!view.drained && view.done_low == 10 && !view.finished);
    close_coordinator(&d);
}
END_TEST

START_TEST(workers_are_told_what_they_wait_for)
{
    struct world d = open_coordinator(10);
    ck_assert_int_eq(enrol(&d, "worker-0", 1, 0), 0);
    ck_assert_int_eq(assign(&d, "worker-0", 1, (struct ordinal_ranges){ 0 }, 10, 0), 10);
    ck_assert_int_eq(enrol(&d, "worker-1", 2, 0), 0);
    ck_assert_int_eq(assign(&d, "worker-1", 2, (struct ordinal_ranges){ 0 }, 10, 0), 0);
    ck_assert_str_eq(d.reply.message, "worker-0, which holds batches 0 to 9");
    ck_assert_int_eq(assign(&d, "worker-0", 1, (struct ordinal_ranges){ 0 }, 10, 1), 0);
    observe(&d, 10, 2);
    coordinator_set_wait_reason(d.c, "the evaluation of epoch 1, before epoch 3 begins");
    ck_assert_int_eq(assign(&d, "worker-1", 2, (struct ordinal_ranges){ 0 }, 10, 3), 0);
    ck_assert_str_eq(d.reply.message, "the evaluation of epoch 1, before epoch 3 begins");
    close_coordinator(&d);
}
END_TEST

START_TEST(divergence_reaches_the_chief)
{
    struct world d = open_coordinator(TOTAL);
    struct coordinator_view view;
    ck_assert_int_eq(enrol(&d, "worker-1", 1, 0), 0);
    ck_assert_int_eq(assign(&d, "worker-1", 1, (struct ordinal_ranges){ 0 }, 15, 0), 15);
    struct heartbeat_request q = { .sender = sender("worker-1", 1), .diverged = true, .diverged_ordinal = 12 };
    ck_assert_int_eq(coordinator_heartbeat(d.c, &q, 1, &d.reply, &d.e), 0);
    coordinator_view(d.c, &view);
    ck_assert(view.diverged);
    ck_assert_int_eq(view.diverged_ordinal, 12);
    ck_assert_str_eq(view.diverged_by, "worker-1");
    close_coordinator(&d);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("coordinator");
    TCase *t = tcase_create("coordinator");
    tcase_add_test(t, registers_and_leases);
    tcase_add_test(t, refuses_a_worker_that_differs_and_names_the_field);
    tcase_add_test(t, a_new_process_takes_over_the_name_and_frees_its_leases);
    tcase_add_test(t, a_silent_worker_is_gone_after_its_lease);
    tcase_add_test(t, an_evaluator_is_a_member_as_long_as_it_calls);
    tcase_add_test(t, nothing_is_leased_before_it_is_allowed_or_while_starting);
    tcase_add_test(t, leases_shrink_towards_the_limit_and_end_there);
    tcase_add_test(t, the_chief_is_woken_when_all_that_is_open_was_worked_on);
    tcase_add_test(t, workers_are_told_what_they_wait_for);
    tcase_add_test(t, divergence_reaches_the_chief);
    suite_add_tcase(s, t);
    return s;
}
