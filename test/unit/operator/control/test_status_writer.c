#include "check_main.h"

#include "base/str.h"
#include "control/status_writer.h"

enum { NOW = 1000000, PROGRESS_MS = 15000 };
#define REST STATUS_REST
#define NEWS (STATUS_CONDITIONS | STATUS_REST)

/* A status as the last reconciliation left it, changed so long ago. */
struct want {
    const char *state; /* the latest true condition's name */
    enum condition_type latest;
    unsigned differs;
    int64_t changed_ago_ms;
    bool told_running; /* the server has it as running */
    int act;
    int64_t in_ms; /* STATUS_WRITE_LATER: from now */
};

static const struct want CASES[] = {
    { "Created", COND_CREATED, 0, 0, false, STATUS_WRITE_NOTHING, 0 },
    { "Created", COND_CREATED, NEWS, 0, false, STATUS_WRITE_QUEUED, 0 },
    { "Running", COND_RUNNING, NEWS, 100, false, STATUS_WRITE_LATER, 400 }, /* with the pods that follow */
    { "Running", COND_RUNNING, NEWS, 500, false, STATUS_WRITE_QUEUED, 0 },
    { "Running", COND_RUNNING, NEWS, 0, true, STATUS_WRITE_QUEUED, 0 },
    { "Running", COND_RUNNING, REST, 300, true, STATUS_WRITE_LATER, 700 }, /* only the counts changed */
    { "Running", COND_RUNNING, REST, 1000, true, STATUS_WRITE_QUEUED, 0 },
    { "Restarting", COND_RESTARTING, NEWS, 0, true, STATUS_WRITE_QUEUED, 0 },
    { "Succeeded", COND_SUCCEEDED, NEWS, 0, true, STATUS_WRITE_NOW, 0 },
    { "Failed", COND_FAILED, NEWS, 0, false, STATUS_WRITE_NOW, 0 },
    { "Suspended", COND_SUSPENDED, NEWS, 0, true, STATUS_WRITE_NOW, 0 },
    { "Running", COND_REFUSED, NEWS, 0, true, STATUS_WRITE_NOW, 0 },
    { "Succeeded", COND_SUCCEEDED, REST, 2000, true, STATUS_WRITE_QUEUED, 0 }, /* its pods are cleaned up */
};

static void assert_step(const struct cache_entry *entry, unsigned differs, int act, int64_t at_ms)
{
    struct status_write_step got = status_writer_decide(entry, differs, PROGRESS_MS, NOW);
    ck_assert_int_eq(got.act, act);
    ck_assert_int_eq(got.at_ms, at_ms);
}

START_TEST(what_people_act_on_is_written_at_once)
{
    const struct want *c = &CASES[_i];
    AUTO_FINI(job_status) acked = { .nconds = 0 };
    struct cache_entry entry = { .acked = &acked, .changed_ms = NOW - c->changed_ago_ms };
    if (c->told_running)
        job_status_set(&acked, COND_RUNNING, true, "R", "m", 1, 1);
    job_status_set(&entry.status, COND_CREATED, true, "C", "m", 1, 1);
    job_status_set(&entry.status, c->latest, true, "L", "m", 1, 1);
    str_fmt(entry.status.state, sizeof(entry.status.state), "%s", c->state);
    assert_step(&entry, c->differs, c->act, c->act == STATUS_WRITE_LATER ? NOW + c->in_ms : 0);
    job_status_fini(&entry.status);
}
END_TEST

START_TEST(progress_alone_is_written_now_and_then)
{
    AUTO_FINI(job_status) acked = { .nconds = 0 };
    struct cache_entry entry = { .acked = &acked, .changed_ms = NOW };
    assert_step(&entry, STATUS_PROGRESS, STATUS_WRITE_QUEUED, 0); /* the first */
    entry.progress_written_ms = NOW - PROGRESS_MS / 2;
    assert_step(&entry, STATUS_PROGRESS, STATUS_WRITE_NOTHING, 0);
    assert_step(&entry, STATUS_PROGRESS | NEWS, STATUS_WRITE_QUEUED, 0); /* together with other changes */
    entry.progress_written_ms = NOW - PROGRESS_MS;
    assert_step(&entry, STATUS_PROGRESS, STATUS_WRITE_QUEUED, 0);
}
END_TEST

START_TEST(what_was_refused_waits)
{
    AUTO_FINI(job_status) acked = { .nconds = 0 };
    struct cache_entry entry = { .acked = &acked,
                                 .changed_ms = NOW - 60000,
                                 .status_backoff = { .failures = 3, .until_ms = NOW + 4000 } };
    assert_step(&entry, NEWS, STATUS_WRITE_LATER, NOW + 4000);
    assert_step(&entry, REST, STATUS_WRITE_LATER, NOW + 4000);
    entry.status_backoff.until_ms = NOW;
    assert_step(&entry, NEWS, STATUS_WRITE_QUEUED, 0);
}
END_TEST

START_TEST(pauses_grow_while_it_is_refused)
{
    static const int64_t WANT_S[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300 };
    for (int i = 0; i < (int)COUNT_OF(WANT_S); i++) {
        ck_assert_int_eq(status_writer_retry_delay_ms(i + 1, true), WANT_S[i] * 1000);
        ck_assert_int_eq(status_writer_retry_delay_ms(i + 1, false),
                         1000); /* no answer: the client itself has waited */
    }
    ck_assert_int_eq(status_writer_retry_delay_ms(1 << 30, true), 300000);
}
END_TEST

/* When another client removes entries again and again, they are restored ever more slowly. */
START_TEST(what_is_taken_away_waits_ever_longer)
{
    static const int64_t WANT_S[] = { 5, 10, 20, 40, 80, 160, 320, 640, 640 };
    for (int i = 0; i < (int)COUNT_OF(WANT_S); i++)
        ck_assert_int_eq(status_writer_restore_delay_ms(i), WANT_S[i] * 1000);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("status_writer");
    TCase *t = tcase_create("status_writer");
    tcase_add_loop_test(t, what_people_act_on_is_written_at_once, 0, COUNT_OF(CASES));
    tcase_add_test(t, progress_alone_is_written_now_and_then);
    tcase_add_test(t, what_was_refused_waits);
    tcase_add_test(t, pauses_grow_while_it_is_refused);
    tcase_add_test(t, what_is_taken_away_waits_ever_longer);
    suite_add_tcase(s, t);
    return s;
}
