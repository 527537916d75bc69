#include "check_main.h"
#include "cli/supervise.h"

#include <string.h>

#include "base/str.h"

/* A job whose events are logged: "+worker-0" started, "-15 chief-0" signalled, "! ..." printed. */
struct scenario {
    struct supervisor *s;
    struct buf log;
    enum err_code start_fails; /* with this error */
};
static struct scenario st;

static int on_start(void *user, size_t i, struct err *e)
{
    struct scenario *scenario = user;
    buf_printf(&scenario->log, "+%s ", supervisor_replica(scenario->s, i)->name);
    return scenario->start_fails != ERR_NONE ? err_set(e, scenario->start_fails, "no") : 0;
}

static void on_signal(void *user, size_t i, int signal)
{
    struct scenario *scenario = user;
    buf_printf(&scenario->log, "-%d %s ", signal, supervisor_replica(scenario->s, i)->name);
}

static void on_say(void *user, enum log_level level, const char *text)
{
    struct scenario *scenario = user;
    if (level >= LOG_WARNING)
        buf_printf(&scenario->log, "! %s ", text);
}

static const struct supervisor_ops OPS = { on_start, on_signal, on_say };
enum { PS0, WORKER0, WORKER1, CHIEF0 };

static void begin(bool chief, enum restart_policy policy, int64_t backoff_limit, int64_t deadline_ms)
{
    struct supervisor_config config = { .backoff_limit = backoff_limit,
                                        .active_deadline_ms = deadline_ms,
                                        .stop_grace_ms = 120000,
                                        .end_grace_ms = 10000 };
    st.s = supervisor_new(&config, &OPS, &st, 0);
    supervisor_add(st.s, ROLE_PS, 0, NULL, policy, false);
    supervisor_add(st.s, ROLE_WORKER, 0, NULL, policy, !chief);
    supervisor_add(st.s, ROLE_WORKER, 1, NULL, policy, false);
    if (chief)
        supervisor_add(st.s, ROLE_CHIEF, 0, NULL, policy, true);
    supervisor_tick(st.s, 0);
}

static void setup(void)
{
    st = (struct scenario){ .log = BUF_INIT };
}

static void teardown(void)
{
    supervisor_free(st.s);
    buf_fini(&st.log);
}

/* What happened since the last time. */
static void assert_log(const char *want)
{
    ck_assert_str_eq(st.log.data, want);
    buf_clear(&st.log);
}

static void assert_over(int exit_code)
{
    ck_assert(supervisor_over(st.s));
    ck_assert_int_eq(supervisor_exit_code(st.s), exit_code);
}

START_TEST(all_start_at_once_and_the_chief_ends_the_job)
{
    begin(true, RESTART_EXIT_CODE, 6, 0);
    assert_log("+ps-0 +worker-0 +worker-1 +chief-0 ");
    ck_assert_int_eq(supervisor_next(st.s), INT64_MAX);
    supervisor_exited(st.s, WORKER0, 0, "", 1000);
    supervisor_exited(st.s, PS0, 0, "", 1000);
    ck_assert(!supervisor_stopping(st.s));
    supervisor_exited(st.s, CHIEF0, 0, "", 1001);
    ck_assert(supervisor_stopping(st.s) && !supervisor_over(st.s));
    supervisor_exited(st.s, WORKER1, 143, "", 1002); /* after the end it does not matter how */
    assert_log("");
    assert_over(0);
}
END_TEST

START_TEST(worker_0_decides_without_a_chief)
{
    begin(false, RESTART_EXIT_CODE, 6, 0);
    supervisor_exited(st.s, WORKER1, 0, "", 5);
    supervisor_exited(st.s, WORKER0, 0, "", 6);
    supervisor_exited(st.s, PS0, 0, "", 7);
    assert_over(0);
}
END_TEST

START_TEST(a_worker_that_the_chief_stops_does_not_end_the_job)
{
    begin(true, RESTART_EXIT_CODE, 1, 0);
    buf_clear(&st.log);
    supervisor_exited(st.s, WORKER0, 143, "", 100); /* the chief fails, and ends a moment later */
    assert_log("! worker-0 ended with exit code 143; restarting it in 1 s (restart 1 of at most 1) ");
    supervisor_tick(st.s, 900);
    assert_log("");
    supervisor_exited(st.s, CHIEF0, 3, "training diverged", 900);
    ck_assert_int_eq(supervisor_exit_code(st.s), 3);
}
END_TEST

/* A worker fails the job, and then the chief ends: what the command ends with, and says. */
static const struct {
    int limit, worker, chief, code;
    const char *reason;
} AFTER_WORKER[] = {
    { 6, 3, 3, 3, "chief-0 ended with exit code 3: at batch 7" },   /* both diverged: the chief knows where */
    { 0, 143, 3, 3, "chief-0 ended with exit code 3: at batch 7" }, /* the chief had stopped the worker */
    { 6, 2, 143, 2, "worker-1 ended with exit code 2: no such file" },
    { 6, 2, 3, 2, "worker-1 ended with exit code 2: no such file" },
    { 0, 138, 3, 138,
      "worker-1 ended with exit code 138, and the limit of 0 restarts is reached (runPolicy.backoffLimit)" },
};

START_TEST(the_chief_may_know_why_a_worker_failed)
{
    begin(true, RESTART_EXIT_CODE, AFTER_WORKER[_i].limit, 0);
    supervisor_exited(st.s, WORKER1, AFTER_WORKER[_i].worker, "no such file", 100);
    supervisor_exited(st.s, CHIEF0, AFTER_WORKER[_i].chief, "at batch 7", 110);
    ck_assert_int_eq(supervisor_exit_code(st.s), AFTER_WORKER[_i].code);
    ck_assert_str_eq(supervisor_reason(st.s), AFTER_WORKER[_i].reason);
}
END_TEST

START_TEST(who_stays_after_the_end_is_stopped)
{
    begin(true, RESTART_EXIT_CODE, 6, 0);
    buf_clear(&st.log);
    supervisor_exited(st.s, CHIEF0, 0, "", 1000);
    supervisor_exited(st.s, WORKER0, 0, "", 1000);
    ck_assert_int_eq(supervisor_next(st.s), 11000);
    supervisor_tick(st.s, 10999);
    assert_log("");
    supervisor_tick(st.s, 11000);
    assert_log("-15 worker-1 ");
    supervisor_exited(st.s, WORKER1, 143, "", 11100);
    assert_log("-15 ps-0 ");
    ck_assert_int_eq(supervisor_next(st.s), 11600);
    supervisor_tick(st.s, 11600); /* without a chief it waits for nothing */
    assert_log("-15 ps-0 ");
    supervisor_tick(st.s, 21099);
    assert_log("");
    supervisor_tick(st.s, 21100);
    assert_log("! ps-0 did not stop within 10 s, killing -9 ps-0 ");
    supervisor_exited(st.s, PS0, 137, "", 21101);
    assert_over(0);
}
END_TEST

START_TEST(a_killed_replica_comes_back_later_each_time)
{
    static const int64_t DELAYS[] = { 10, 20, 40, 80 };
    int64_t now = 0;
    begin(true, RESTART_EXIT_CODE, 100, 0);
    for (size_t i = 0; i < COUNT_OF(DELAYS); i++) {
        buf_clear(&st.log);
        supervisor_exited(st.s, PS0, 137, "", now);
        ck_assert_ptr_nonnull(strstr(st.log.data, "ps-0 was killed by signal 9 (Killed); restarting it in"));
        buf_clear(&st.log);
        ck_assert_int_eq(supervisor_next(st.s), now + DELAYS[i]);
        supervisor_tick(st.s, now + DELAYS[i] - 1);
        assert_log("");
        now += DELAYS[i];
        supervisor_tick(st.s, now);
        assert_log("+ps-0 ");
    }
    for (int i = 0; i < 20; i++) { /* the delay has a ceiling */
        supervisor_exited(st.s, PS0, 137, "", now);
        ck_assert_int_le(supervisor_next(st.s) - now, RESTART_DELAY_MAX_MS);
        now = supervisor_next(st.s);
        supervisor_tick(st.s, now);
    }
    supervisor_exited(st.s, PS0, 137, "", now + RESTART_FORGET_MS); /* after a long run it is short again */
    ck_assert_int_eq(supervisor_next(st.s), now + RESTART_FORGET_MS + RESTART_DELAY_MS);
}
END_TEST

START_TEST(the_back_off_limit_ends_it)
{
    begin(true, RESTART_EXIT_CODE, 2, 0);
    for (int i = 0; i < 2; i++) {
        supervisor_exited(st.s, WORKER1, 138, "", 1000 * i);
        supervisor_tick(st.s, 1000 * i + 500);
    }
    buf_clear(&st.log);
    supervisor_exited(st.s, WORKER1, 138, "", 5000);
    assert_log("! worker-1 ended with exit code 138, and the limit of 2 restarts is reached (runPolicy.backoffLimit) "
               "-15 chief-0 ");
    supervisor_exited(st.s, CHIEF0, 143, "", 5001);
    assert_log("-15 worker-0 ");
    supervisor_exited(st.s, WORKER0, 143, "", 5002);
    supervisor_exited(st.s, PS0, 143, "", 5003);
    assert_over(138);
}
END_TEST

/* policy, exit code, whether worker-1 is started again; else the job ends with that code, or goes on (0) */
static const struct {
    enum restart_policy policy;
    int exit_code;
    bool again, fails;
} ENDS[] = {
    { RESTART_EXIT_CODE, 0, false, false },  { RESTART_EXIT_CODE, 1, false, true },
    { RESTART_EXIT_CODE, 2, false, true },   { RESTART_EXIT_CODE, 3, false, true },
    { RESTART_EXIT_CODE, 127, false, true }, { RESTART_EXIT_CODE, 138, true, false },
    { RESTART_EXIT_CODE, 143, true, false }, { RESTART_ON_FAILURE, 1, true, false },
    { RESTART_ON_FAILURE, 2, false, true },  { RESTART_ON_FAILURE, 0, false, false },
    { RESTART_ALWAYS, 0, true, false },      { RESTART_ALWAYS, 3, false, true },
    { RESTART_NEVER, 137, false, true },     { RESTART_NEVER, 0, false, false },
};
START_TEST(policies)
{
    begin(true, ENDS[_i].policy, 6, 0);
    buf_clear(&st.log);
    supervisor_exited(st.s, WORKER1, ENDS[_i].exit_code, "why not", 100);
    ck_assert_int_eq(supervisor_stopping(st.s), ENDS[_i].fails);
    if (ENDS[_i].fails) {
        ck_assert_int_eq(supervisor_exit_code(st.s), ENDS[_i].exit_code);
        ck_assert(str_starts(supervisor_reason(st.s), "worker-1 ") && str_ends(supervisor_reason(st.s), ": why not"));
    }
    buf_clear(&st.log);
    supervisor_tick(st.s, ENDS[_i].exit_code == 143 ? 1100 : 110);
    assert_log(ENDS[_i].again ? "+worker-1 " : "");
}
END_TEST

START_TEST(ctrl_c_saves_first)
{
    begin(true, RESTART_EXIT_CODE, 6, 0);
    buf_clear(&st.log);
    supervisor_exited(st.s, WORKER1, 137, "", 50); /* waits for its restart, which never comes */
    buf_clear(&st.log);
    supervisor_stop(st.s, 1, 55);
    assert_log("-15 chief-0 ");
    supervisor_tick(st.s, 60000);
    assert_log("");
    supervisor_exited(st.s, CHIEF0, 143, "", 60001);
    assert_log("-15 worker-0 ");
    supervisor_exited(st.s, WORKER0, 143, "", 60002);
    assert_log("-15 ps-0 ");
    supervisor_exited(st.s, PS0, 0, "", 60003);
    assert_over(143);
}
END_TEST

START_TEST(a_second_ctrl_c_waits_for_nothing)
{
    begin(true, RESTART_EXIT_CODE, 6, 0);
    supervisor_stop(st.s, 1, 50);
    buf_clear(&st.log);
    supervisor_stop(st.s, 2, 60);
    assert_log("! stopping at once -9 ps-0 -9 worker-0 -9 worker-1 -9 chief-0 ");
    for (size_t i = 0; i < 4; i++)
        supervisor_exited(st.s, i, 137, "", 61);
    assert_over(143);
}
END_TEST

START_TEST(a_chief_that_does_not_save_is_killed)
{
    begin(true, RESTART_EXIT_CODE, 6, 0);
    supervisor_stop(st.s, 1, 0);
    buf_clear(&st.log);
    supervisor_tick(st.s, 120000);
    assert_log("! chief-0 did not stop within 2 min, killing -9 chief-0 ");
    supervisor_tick(st.s, 125000); /* SIGKILL did not end it either: kill everything */
    assert_log("-9 ps-0 -9 worker-0 -9 worker-1 -9 chief-0 ");
    supervisor_tick(st.s, 130000);
    assert_log("! ps-0, worker-0, worker-1, chief-0 cannot be killed ");
    assert_over(143);
}
END_TEST

START_TEST(a_job_that_was_done_when_stopped_is_done)
{
    begin(false, RESTART_EXIT_CODE, 6, 0);
    supervisor_stop(st.s, 1, 0);
    supervisor_exited(st.s, WORKER0, 0, "", 1);
    supervisor_exited(st.s, WORKER1, 0, "", 2);
    supervisor_exited(st.s, PS0, 0, "", 3);
    assert_over(0);
}
END_TEST

#define LATE                                                                                                           \
    "! DeadlineExceeded: the job was active longer than 5 s (runPolicy.activeDeadlineSeconds); the same command "      \
    "continues it "

START_TEST(a_deadline_ends_it)
{
    begin(true, RESTART_EXIT_CODE, 6, 5000);
    ck_assert_int_eq(supervisor_next(st.s), 5000);
    buf_clear(&st.log);
    supervisor_tick(st.s, 5000);
    assert_log(LATE "-15 chief-0 ");
    supervisor_exited(st.s, CHIEF0, 143, "", 5100);
    supervisor_exited(st.s, WORKER0, 143, "", 5200);
    supervisor_exited(st.s, WORKER1, 143, "", 5200);
    supervisor_exited(st.s, PS0, 143, "", 5300);
    assert_over(124);
    ck_assert(str_starts(supervisor_reason(st.s), "DeadlineExceeded: the job was active longer than 5 s "));
}
END_TEST

START_TEST(a_job_that_was_done_at_its_deadline_is_done)
{
    begin(true, RESTART_EXIT_CODE, 6, 5000);
    supervisor_tick(st.s, 5000);
    supervisor_exited(st.s, CHIEF0, 0, "", 5001);
    supervisor_exited(st.s, WORKER0, 0, "", 5002);
    supervisor_exited(st.s, WORKER1, 0, "", 5003);
    supervisor_exited(st.s, PS0, 0, "", 5004);
    assert_over(0);
    ck_assert_str_eq(supervisor_reason(st.s), "");
}
END_TEST

START_TEST(a_start_that_fails_is_tried_again)
{
    st.start_fails = ERR_IO;
    begin(false, RESTART_EXIT_CODE, 100, 0);
    st.start_fails = ERR_NONE;
    buf_clear(&st.log);
    supervisor_tick(st.s, 10);
    assert_log("+ps-0 +worker-0 +worker-1 ");
}
END_TEST

START_TEST(a_start_that_cannot_succeed_is_not_tried_again)
{
    st.start_fails = ERR_LIMIT;
    begin(false, RESTART_EXIT_CODE, 100, 0);
    assert_over(2);
    ck_assert_str_eq(supervisor_reason(st.s), "ps-0 ended with exit code 2: no");
}
END_TEST

/* The same with restartScope Job and an evaluator: */
enum { EVALUATOR0 = CHIEF0 + 1 };
static void begin_together(int64_t backoff_limit, int64_t deadline_ms)
{
    struct supervisor_config config = { .backoff_limit = backoff_limit,
                                        .restart_all = true,
                                        .active_deadline_ms = deadline_ms,
                                        .stop_grace_ms = 120000,
                                        .end_grace_ms = 10000 };
    st.s = supervisor_new(&config, &OPS, &st, 0);
    supervisor_add(st.s, ROLE_PS, 0, NULL, RESTART_EXIT_CODE, false);
    supervisor_add(st.s, ROLE_WORKER, 0, NULL, RESTART_EXIT_CODE, false);
    supervisor_add(st.s, ROLE_WORKER, 1, NULL, RESTART_EXIT_CODE, false);
    supervisor_add(st.s, ROLE_CHIEF, 0, NULL, RESTART_EXIT_CODE, true);
    supervisor_add(st.s, ROLE_EVALUATOR, 0, NULL, RESTART_EXIT_CODE, false);
    supervisor_tick(st.s, 0);
    buf_clear(&st.log);
}

START_TEST(one_failure_restarts_all)
{
    begin_together(1, 0);
    supervisor_exited(st.s, WORKER1, 137, "", 100);
    assert_log(
        "! worker-1 was killed by signal 9 (Killed); restarting all replicas (restart 1 of at most 1) -15 chief-0 ");
    ck_assert(!supervisor_stopping(st.s));
    supervisor_exited(st.s, PS0, 138, "", 110); /* of the restart, so it starts no other and does not count */
    supervisor_exited(st.s, CHIEF0, 143, "", 200);
    assert_log("-15 worker-0 ");
    supervisor_tick(st.s, 700); /* without a chief it waits for nothing */
    assert_log("-15 worker-0 ");
    supervisor_tick(st.s, 60000);
    assert_log("! worker-0 did not stop within 10 s, killing -9 worker-0 ");
    supervisor_exited(st.s, WORKER0, 137, "", 60001);
    assert_log("");
    ck_assert_int_eq(supervisor_next(st.s), 60001 + RESTART_DELAY_MS);
    supervisor_tick(st.s, 60001 + RESTART_DELAY_MS);
    assert_log("+ps-0 +worker-0 +worker-1 +chief-0 ");
    supervisor_exited(st.s, WORKER0, 138, "", 60500); /* one more than the limit */
    assert_log("! worker-0 ended with exit code 138, and the limit of 1 restarts is reached (runPolicy.backoffLimit) "
               "-15 chief-0 ");
    ck_assert(supervisor_stopping(st.s));
}
END_TEST

START_TEST(an_evaluator_is_restarted_alone)
{
    begin_together(6, 0);
    supervisor_exited(st.s, EVALUATOR0, 137, "", 100);
    assert_log("! evaluator-0 was killed by signal 9 (Killed); restarting it in 10 ms (restart 1 of at most 6) ");
    supervisor_tick(st.s, 110);
    assert_log("+evaluator-0 ");
    supervisor_exited(st.s, CHIEF0, 137, "", 200);
    assert_log(
        "! chief-0 was killed by signal 9 (Killed); restarting all replicas (restart 2 of at most 6) -15 worker-0 "
        "-15 worker-1 ");
    supervisor_exited(st.s, EVALUATOR0, 137, "", 210); /* meanwhile: it comes back with the others */
    assert_log("! evaluator-0 was killed by signal 9 (Killed); restarting it in 20 ms (restart 3 of at most 6) ");
    supervisor_exited(st.s, WORKER0, 143, "", 300);
    supervisor_exited(st.s, WORKER1, 143, "", 300);
    supervisor_exited(st.s, PS0, 143, "", 301);
    assert_log("-15 ps-0 ");
    supervisor_tick(st.s, 400);
    assert_log("+ps-0 +worker-0 +worker-1 +chief-0 +evaluator-0 ");
}
END_TEST

START_TEST(a_job_at_its_end_is_not_restarted)
{
    begin_together(6, 0);
    supervisor_exited(st.s, WORKER0, 0, "", 90); /* it has finished, so it has nothing to do */
    supervisor_exited(st.s, WORKER1, 137, "", 100);
    buf_clear(&st.log);
    supervisor_exited(st.s, CHIEF0, 0, "", 110);
    ck_assert(supervisor_stopping(st.s));
    supervisor_exited(st.s, PS0, 0, "", 120);
    supervisor_exited(st.s, EVALUATOR0, 0, "", 130);
    assert_log("");
    assert_over(0);
}
END_TEST

START_TEST(who_has_finished_is_not_started_again)
{
    begin_together(6, 0);
    supervisor_exited(st.s, WORKER0, 0, "", 90);
    supervisor_exited(st.s, WORKER1, 137, "", 100);
    supervisor_exited(st.s, CHIEF0, 143, "", 110);
    supervisor_exited(st.s, PS0, 143, "", 120);
    buf_clear(&st.log);
    supervisor_tick(st.s, 130);
    assert_log("+ps-0 +worker-1 +chief-0 ");
}
END_TEST

START_TEST(a_restart_of_all_ends_with_the_job)
{
    begin_together(6, 5000);
    supervisor_exited(st.s, WORKER1, 137, "", 100);
    buf_clear(&st.log);
    if (_i == 0) { /* the chief diverged */
        supervisor_exited(st.s, CHIEF0, 3, "loss is NaN", 110);
        assert_log("! chief-0 ended with exit code 3 -15 worker-0 -15 evaluator-0 ");
        ck_assert_str_eq(supervisor_reason(st.s), "chief-0 ended with exit code 3: loss is NaN");
        ck_assert_int_eq(supervisor_exit_code(st.s), 3);
    } else if (_i == 1) {
        ck_assert_int_eq(supervisor_next(st.s), 5000);
        supervisor_tick(st.s, 5000);
        assert_log(LATE "-15 chief-0 ");
        ck_assert_int_eq(supervisor_exit_code(st.s), 124);
    } else { /* Ctrl-C */
        supervisor_stop(st.s, 1, 110);
        assert_log("-15 chief-0 ");
        supervisor_exited(st.s, CHIEF0, 143, "", 120);
        assert_log("-15 worker-0 -15 evaluator-0 ");
        ck_assert_int_eq(supervisor_exit_code(st.s), 143);
    }
    for (size_t i = 0; i < 5; i++)
        if (supervisor_replica(st.s, i)->state == REPLICA_RUNNING)
            supervisor_exited(st.s, i, 143, "", 6000);
    ck_assert(supervisor_over(st.s));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("supervise");
    TCase *t = tcase_create("supervise");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, all_start_at_once_and_the_chief_ends_the_job);
    tcase_add_test(t, worker_0_decides_without_a_chief);
    tcase_add_test(t, a_worker_that_the_chief_stops_does_not_end_the_job);
    tcase_add_loop_test(t, the_chief_may_know_why_a_worker_failed, 0, COUNT_OF(AFTER_WORKER));
    tcase_add_test(t, who_stays_after_the_end_is_stopped);
    tcase_add_test(t, a_killed_replica_comes_back_later_each_time);
    tcase_add_test(t, the_back_off_limit_ends_it);
    tcase_add_loop_test(t, policies, 0, COUNT_OF(ENDS));
    tcase_add_test(t, ctrl_c_saves_first);
    tcase_add_test(t, a_second_ctrl_c_waits_for_nothing);
    tcase_add_test(t, a_chief_that_does_not_save_is_killed);
    tcase_add_test(t, a_job_that_was_done_when_stopped_is_done);
    tcase_add_test(t, a_deadline_ends_it);
    tcase_add_test(t, a_job_that_was_done_at_its_deadline_is_done);
    tcase_add_test(t, a_start_that_fails_is_tried_again);
    tcase_add_test(t, a_start_that_cannot_succeed_is_not_tried_again);
    tcase_add_test(t, one_failure_restarts_all);
    tcase_add_test(t, an_evaluator_is_restarted_alone);
    tcase_add_test(t, a_job_at_its_end_is_not_restarted);
    tcase_add_test(t, who_has_finished_is_not_started_again);
    tcase_add_loop_test(t, a_restart_of_all_ends_with_the_job, 0, 3);
    suite_add_tcase(s, t);
    return s;
}
