#include "check_main.h"

#include "base/str.h"
#include "control/controller_internal.h"

enum { NOW = 1000000, PROGRESS_MS = 15000 };
#define REST STATUS_REST
#define NEWS (STATUS_CONDITIONS | STATUS_REST)

/* A status as the last look left it, changed so long ago. */
struct want {
    const char *state; /* the latest true condition's name */
    enum condition_type latest;
    unsigned differs;
    int64_t changed_ago_ms;
    bool told_running; /* the server knows it as running */
    int act;
    int64_t in_ms; /* WRITER_LATER: from now */
};

static const struct want CASES[] = {
    { "Created", COND_CREATED, 0, 0, false, WRITER_NOTHING, 0 },
    { "Created", COND_CREATED, NEWS, 0, false, WRITER_IN_TURN, 0 },
    { "Running", COND_RUNNING, NEWS, 100, false, WRITER_LATER, 400 }, /* with the pods that follow */
    { "Running", COND_RUNNING, NEWS, 500, false, WRITER_IN_TURN, 0 },
    { "Running", COND_RUNNING, NEWS, 0, true, WRITER_IN_TURN, 0 },
    { "Running", COND_RUNNING, REST, 300, true, WRITER_LATER, 700 }, /* counts alone */
    { "Running", COND_RUNNING, REST, 1000, true, WRITER_IN_TURN, 0 },
    { "Restarting", COND_RESTARTING, NEWS, 0, true, WRITER_IN_TURN, 0 },
    { "Succeeded", COND_SUCCEEDED, NEWS, 0, true, WRITER_AT_ONCE, 0 },
    { "Failed", COND_FAILED, NEWS, 0, false, WRITER_AT_ONCE, 0 },
    { "Suspended", COND_SUSPENDED, NEWS, 0, true, WRITER_AT_ONCE, 0 },
    { "Running", COND_REFUSED, NEWS, 0, true, WRITER_AT_ONCE, 0 },
    { "Succeeded", COND_SUCCEEDED, REST, 2000, true, WRITER_IN_TURN, 0 }, /* its pods are cleaned up */
};

static void assert_step(const struct record *r, unsigned differs, int act, int64_t at_ms)
{
    struct writer_step got = writer_decide(r, differs, PROGRESS_MS, NOW);
    ck_assert_int_eq(got.act, act);
    ck_assert_int_eq(got.at_ms, at_ms);
}

START_TEST(what_people_act_on_is_written_at_once)
{
    const struct want *c = &CASES[_i];
    AUTO_FINI(job_status) acked = { .nconds = 0 };
    struct record r = { .acked = &acked, .changed_ms = NOW - c->changed_ago_ms };
    if (c->told_running)
        job_status_set(&acked, COND_RUNNING, true, "R", "m", 1, 1);
    job_status_set(&r.status, COND_CREATED, true, "C", "m", 1, 1);
    job_status_set(&r.status, c->latest, true, "L", "m", 1, 1);
    str_fmt(r.status.state, sizeof(r.status.state), "%s", c->state);
    assert_step(&r, c->differs, c->act, c->act == WRITER_LATER ? NOW + c->in_ms : 0);
    job_status_fini(&r.status);
}
END_TEST

START_TEST(progress_alone_is_written_now_and_then)
{
    AUTO_FINI(job_status) acked = { .nconds = 0 };
    struct record r = { .acked = &acked, .changed_ms = NOW };
    assert_step(&r, STATUS_PROGRESS, WRITER_IN_TURN, 0); /* the first */
    r.progress_written_ms = NOW - PROGRESS_MS / 2;
    assert_step(&r, STATUS_PROGRESS, WRITER_NOTHING, 0);
    assert_step(&r, STATUS_PROGRESS | NEWS, WRITER_IN_TURN, 0); /* with other news */
    r.progress_written_ms = NOW - PROGRESS_MS;
    assert_step(&r, STATUS_PROGRESS, WRITER_IN_TURN, 0);
}
END_TEST

START_TEST(what_was_refused_waits)
{
    AUTO_FINI(job_status) acked = { .nconds = 0 };
    struct record r = { .acked = &acked,
                        .changed_ms = NOW - 60000,
                        .tells = { .failures = 3, .until_ms = NOW + 4000 } };
    assert_step(&r, NEWS, WRITER_LATER, NOW + 4000);
    assert_step(&r, REST, WRITER_LATER, NOW + 4000);
    r.tells.until_ms = NOW;
    assert_step(&r, NEWS, WRITER_IN_TURN, 0);
}
END_TEST

START_TEST(pauses_grow_while_it_is_refused)
{
    static const int64_t WANT_S[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300 };
    for (int i = 0; i < (int)COUNT_OF(WANT_S); i++) {
        ck_assert_int_eq(writer_pause_ms(i + 1, true), WANT_S[i] * 1000);
        ck_assert_int_eq(writer_pause_ms(i + 1, false), 1000); /* nobody answered: the client itself has waited */
    }
    ck_assert_int_eq(writer_pause_ms(1 << 30, true), 300000);
}
END_TEST

/* Somebody who takes away again and again is not fought with. */
START_TEST(what_is_taken_away_waits_ever_longer)
{
    static const int64_t WANT_S[] = { 5, 10, 20, 40, 80, 160, 320, 640, 640 };
    for (int i = 0; i < (int)COUNT_OF(WANT_S); i++)
        ck_assert_int_eq(writer_patience_ms(i), WANT_S[i] * 1000);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("writer");
    TCase *t = tcase_create("writer");
    tcase_add_loop_test(t, what_people_act_on_is_written_at_once, 0, COUNT_OF(CASES));
    tcase_add_test(t, progress_alone_is_written_now_and_then);
    tcase_add_test(t, what_was_refused_waits);
    tcase_add_test(t, pauses_grow_while_it_is_refused);
    tcase_add_test(t, what_is_taken_away_waits_ever_longer);
    suite_add_tcase(s, t);
    return s;
}
