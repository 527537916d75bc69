#include "check_main.h"

#include <string.h>

#include "ps/ps_life.h"

static const struct ps_seen SERVING = {
    .now_ms = 1000000, .heard_ms = 1000000, .state = SHARD_SERVING, .generation = 1, .segments = 5, .bytes = 1 << 20
};

static struct ps_life serving(void)
{
    return (
        struct ps_life){ .max_wait_ms = 600000, .state = SHARD_SERVING, .generation = 1, .waiting_said_ms = 1000000 };
}

static bool has(const char *line, const char *text)
{
    return strstr(line, text) != NULL;
}

START_TEST(changes_are_said_once)
{
    struct ps_life life = { .max_wait_ms = 600000 };
    struct ps_seen seen = SERVING;
    char line[240];
    ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_ON);
    ck_assert_str_eq(line, "serving: generation 1, 5 segments, 1.0 MiB");
    ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_ON);
    ck_assert_str_eq(line, "");
    seen.generation = 3;
    ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_ON);
    ck_assert_str_eq(line, "generation 3");
}
END_TEST

START_TEST(waiting_is_said_every_30_s_and_ends)
{
    struct ps_life life = { .max_wait_ms = 100000 };
    struct ps_seen seen = { .now_ms = 1000, .heard_ms = 1000 };
    char line[240];
    int said = 0;
    enum ps_verdict v = PS_LIFE_ON;
    for (; v == PS_LIFE_ON && seen.now_ms < 1000000; seen.now_ms += 50) {
        v = ps_poll(&life, &seen, line);
        if (v == PS_LIFE_ON && line[0] != '\0') {
            said++;
            ck_assert_msg(has(line, "waiting for the chief to initialise it"), "%s", line);
        }
    }
    ck_assert_int_eq(v, PS_LIFE_LOST);
    ck_assert_int_eq(said, 3);
    ck_assert_str_eq(line, "no request for 100 s: the chief is lost");
    ck_assert_int_le(seen.now_ms, 1000 + 100000 + 200);
}
END_TEST

START_TEST(a_busy_ps_says_nothing)
{
    struct ps_life life = serving();
    struct ps_seen seen = SERVING;
    char line[240];
    for (int i = 0; i < 100; i++) {
        seen.now_ms += 60000;
        seen.heard_ms = seen.now_ms - 900;
        ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_ON);
        ck_assert_str_eq(line, "");
    }
    seen.now_ms += 40000;
    ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_ON);
    ck_assert_msg(has(line, "the last one came 40 s ago"), "%s", line);
}
END_TEST

START_TEST(the_end_of_the_job)
{
    struct ps_life life = serving();
    struct ps_seen seen = SERVING;
    char line[240];
    seen.state = SHARD_FINISHED;
    seen.signals = 1; /* finished has precedence over a signal */
    ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_DONE);
}
END_TEST

/* A job that is over before the first poll has served all the same; one that never began has not. */
START_TEST(a_job_that_ends_between_two_polls_is_said_to_have_served)
{
    struct ps_life life = { .max_wait_ms = 600000 }, idle = life;
    struct ps_seen seen = SERVING;
    char line[240];
    seen.state = SHARD_FINISHED;
    ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_ON);
    ck_assert_str_eq(line, "serving: generation 1, 5 segments, 1.0 MiB");
    ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_DONE);
    ck_assert_str_eq(line, "the job has finished");
    seen.generation = 0;
    ck_assert_int_eq(ps_poll(&idle, &seen, line), PS_LIFE_DONE);
}
END_TEST

START_TEST(a_signal_waits_for_the_chief)
{
    struct ps_life life = serving();
    struct ps_seen seen = SERVING;
    char line[240];
    seen.signals = 1;
    seen.bytes = (size_t)500 * 1000 * 1000; /* 10 s at 50 MB/s */
    ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_LEAVE);
    ck_assert_msg(has(line, "at most 40 s"), "%s", line);
    seen.state = SHARD_TERMINATING;
    seen.now_ms += 39900;
    seen.heard_ms += 39000; /* the chief polls once a second */
    ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_ON);

    struct ps_life saved = life, second = life;
    struct ps_seen now = seen;
    now.saved = true;
    ck_assert_int_eq(ps_poll(&saved, &now, line), PS_LIFE_STOPPED);
    ck_assert_msg(has(line, "all 5 segments were saved"), "%s", line);
    now.saved = false;
    now.signals = 2;
    ck_assert_int_eq(ps_poll(&second, &now, line), PS_LIFE_STOPPED);
    ck_assert_msg(has(line, "second signal"), "%s", line);
    seen.now_ms += 200;
    ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_STOPPED);
    ck_assert_msg(has(line, "did not save all segments within 40 s"), "%s", line);
}
END_TEST

START_TEST(a_signal_when_all_others_are_gone)
{
    struct ps_life life = serving();
    struct ps_seen seen = SERVING;
    char line[240];
    enum ps_verdict v = PS_LIFE_ON;
    seen.signals = 1;
    seen.now_ms += 100000; /* also when they had left before */
    ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_LEAVE);
    seen.state = SHARD_TERMINATING;
    int64_t left = seen.now_ms;
    for (; v == PS_LIFE_ON; seen.now_ms += 50)
        v = ps_poll(&life, &seen, line);
    ck_assert_int_eq(v, PS_LIFE_STOPPED);
    ck_assert_msg(has(line, "no request came for 10 s"), "%s", line);
    ck_assert_int_ge(seen.now_ms - left, 10000);
}
END_TEST

START_TEST(a_signal_with_nothing_to_save)
{
    static const enum shard_state STATES[] = { SHARD_UNINITIALISED, SHARD_LOADING };
    for (size_t i = 0; i < COUNT_OF(STATES); i++) {
        struct ps_life life = { .max_wait_ms = 1000 };
        struct ps_seen seen = { .now_ms = 1000, .heard_ms = 1000, .state = STATES[i], .signals = 1 };
        char line[240];
        ck_assert_int_eq(ps_poll(&life, &seen, line), PS_LIFE_STOPPED);
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("ps_life");
    TCase *c = tcase_create("all");
    tcase_add_test(c, changes_are_said_once);
    tcase_add_test(c, waiting_is_said_every_30_s_and_ends);
    tcase_add_test(c, a_busy_ps_says_nothing);
    tcase_add_test(c, the_end_of_the_job);
    tcase_add_test(c, a_job_that_ends_between_two_polls_is_said_to_have_served);
    tcase_add_test(c, a_job_that_ends_between_two_polls_is_said_to_have_served);
    tcase_add_test(c, a_signal_waits_for_the_chief);
    tcase_add_test(c, a_signal_when_all_others_are_gone);
    tcase_add_test(c, a_signal_with_nothing_to_save);
    suite_add_tcase(s, c);
    return s;
}
