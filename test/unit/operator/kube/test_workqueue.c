#include "kube/workqueue.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "check_main.h"
#include "net/registry.h"
#include "test/fake/api_server.h"

/* The keys that work() got, as "a b a ", and what it does meanwhile. */
struct log {
    struct buf seen;
    struct workqueue *q;
    void (*act)(struct log *log, const char *key);
    int calls;
    int64_t late_ms;
};

static void work(void *user, const char *key)
{
    struct log *log = user;
    log->calls++;
    buf_printf(&log->seen, "%s ", key);
    if (log->act != NULL)
        log->act(log, key);
}

static void turn(struct loop *l, int64_t ms)
{
    struct err e = { 0 };
    ck_ok_e(loop_turn(l, ms, &e));
}

struct calls {
    const struct log *log;
    int n;
};
static bool were_made(void *user)
{
    const struct calls *c = user;
    return c->log->calls >= c->n;
}
static void turn_until(struct loop *l, const struct log *log, int calls)
{
    fake_until(l, were_made, &(struct calls){ log, calls });
}

#define START(at_once_)                                                                                                \
    AUTO(loop) *l = loop_new();                                                                                        \
    fake_clock(l);                                                                                                     \
    struct log log = { .seen = BUF_INIT };                                                                             \
    struct workqueue *q = log.q = workqueue_new(l, "jobs", at_once_, work, &log, NULL)
#define END()                                                                                                          \
    workqueue_free(q);                                                                                                 \
    buf_fini(&log.seen)

START_TEST(a_key_is_worked_on_once_however_often_it_was_added)
{
    START(10);
    char key[] = "a";
    workqueue_add(q, key);
    workqueue_add(q, "b");
    key[0] = 'x'; /* it was copied */
    workqueue_add(q, "a");
    ck_assert_uint_eq(workqueue_length(q), 2);
    ck_assert_int_eq(log.calls, 0); /* never from within queue_add */
    turn(l, 0);
    ck_assert_str_eq(log.seen.data, "a b ");
    ck_assert_uint_eq(workqueue_length(q), 0);
    turn(l, 0);
    ck_assert_int_eq(log.calls, 2);
    END();
}
END_TEST

START_TEST(so_many_at_once_and_then_others_have_their_turn)
{
    START(2);
    for (const char *const *key = (const char *const[]){ "a", "b", "c", "d", "e", NULL }; *key != NULL; key++)
        workqueue_add(q, *key);
    turn(l, 0);
    ck_assert_str_eq(log.seen.data, "a b ");
    turn(l, 0);
    ck_assert_str_eq(log.seen.data, "a b c d ");
    turn(l, 0);
    ck_assert_str_eq(log.seen.data, "a b c d e ");
    END();
}
END_TEST

static void add_itself_once(struct log *log, const char *key)
{
    if (log->calls == 1) {
        workqueue_add(log->q, key);
        workqueue_add(log->q, "b");
        workqueue_add(log->q, key);
    }
}
START_TEST(what_is_added_while_it_is_worked_on_comes_again)
{
    START(1);
    log.act = add_itself_once;
    workqueue_add(q, "a");
    turn_until(l, &log, 3);
    turn(l, 0);
    ck_assert_str_eq(log.seen.data, "a a b ");
    END();
}
END_TEST

START_TEST(later_is_later_and_the_earlier_time_holds)
{
    START(10);
    int64_t now = loop_now(l);
    workqueue_add_at(q, "late", now + 600);
    workqueue_add_at(q, "soon", now + 3600000);
    workqueue_add_at(q, "soon", now + 300);
    workqueue_add_at(q, "soon", now + 3600000);
    workqueue_add_at(q, "past", now - 5);
    turn(l, 0);
    ck_assert_str_eq(log.seen.data, "past ");
    turn_until(l, &log, 2);
    ck_assert_int_eq(loop_now(l), now + 300);
    turn_until(l, &log, 3);
    ck_assert_int_eq(loop_now(l), now + 600);
    ck_assert_str_eq(log.seen.data, "past soon late ");
    END();
}
END_TEST

START_TEST(a_time_that_was_set_holds_when_the_key_comes_before)
{
    START(10);
    workqueue_add_at(q, "a", loop_now(l) + 300);
    workqueue_add(q, "a");
    turn(l, 0);
    ck_assert_str_eq(log.seen.data, "a ");
    turn_until(l, &log, 2);
    ck_assert_str_eq(log.seen.data, "a a ");
    END();
}
END_TEST

static void drop_itself(struct log *log, const char *key)
{
    workqueue_add(log->q, key);
    workqueue_add_at(log->q, key, log->late_ms);
    workqueue_drop(log->q, key);
    buf_printf(&log->seen, "%s ", key); /* the key lives as long as the work on it */
}
START_TEST(what_is_dropped_does_not_come)
{
    START(10);
    workqueue_add(q, "ready");
    workqueue_add_at(q, "late", loop_now(l) + 10);
    workqueue_add(q, "a");
    workqueue_drop(q, "ready");
    workqueue_drop(q, "late");
    workqueue_drop(q, "unknown");
    log.act = drop_itself;
    log.late_ms = loop_now(l) + 10;
    fake_pass(l, 60);
    ck_assert_str_eq(log.seen.data, "a a ");
    ck_assert_uint_eq(workqueue_length(q), 0);
    END();
}
END_TEST

static void free_the_queue(struct log *log, const char *key)
{
    (void)key;
    workqueue_free(log->q);
}
START_TEST(work_may_free_the_queue)
{
    START(10);
    log.act = free_the_queue;
    workqueue_add(q, "a");
    workqueue_add(q, "b");
    workqueue_add_at(q, "c", loop_now(l) + 5);
    fake_pass(l, 30);
    ck_assert_str_eq(log.seen.data, "a ");
    buf_fini(&log.seen);
}
END_TEST

START_TEST(metrics_have_the_names_of_controller_runtime)
{
    AUTO(loop) *l = loop_new();
    AUTO(registry) *r = registry_new();
    AUTO_FINI(buf) text = BUF_INIT;
    struct log log = { .seen = BUF_INIT };
    struct workqueue *q = log.q = workqueue_new(l, "tfjobs", 1, work, &log, r);

    workqueue_add(q, "a");
    workqueue_add(q, "a");
    workqueue_add(q, "b");
    turn(l, 0);
    workqueue_add_at(q, "c", loop_now(l) + 1000);
    registry_emit(r, &text);
    static const char *const LINES[] = {
        "workqueue_depth{name=\"tfjobs\"} 1\n",
        "workqueue_adds_total{name=\"tfjobs\"} 2\n",
        "workqueue_queue_duration_seconds_count{name=\"tfjobs\"} 1\n",
        "workqueue_work_duration_seconds_count{name=\"tfjobs\"} 1\n",
        "workqueue_work_duration_seconds_bucket{name=\"tfjobs\",le=\"10\"} 1\n",
        "workqueue_unfinished_work_seconds{name=\"tfjobs\"} 0\n",
        "workqueue_longest_running_processor_seconds{name=\"tfjobs\"} 0\n",
        "workqueue_retries_total{name=\"tfjobs\"} 1\n",
    };
    for (size_t i = 0; i < COUNT_OF(LINES); i++)
        ck_assert_msg(strstr(text.data, LINES[i]) != NULL, "%s is missing in\n%s", LINES[i], text.data);
    workqueue_free(q);
    registry_emit(r, &text); /* it may be scraped when the queue is freed */
    buf_fini(&log.seen);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("queue");
    TCase *t = tcase_create("all");
    tcase_add_test(t, a_key_is_worked_on_once_however_often_it_was_added);
    tcase_add_test(t, so_many_at_once_and_then_others_have_their_turn);
    tcase_add_test(t, what_is_added_while_it_is_worked_on_comes_again);
    tcase_add_test(t, later_is_later_and_the_earlier_time_holds);
    tcase_add_test(t, a_time_that_was_set_holds_when_the_key_comes_before);
    tcase_add_test(t, what_is_dropped_does_not_come);
    tcase_add_test(t, work_may_free_the_queue);
    tcase_add_test(t, metrics_have_the_names_of_controller_runtime);
    suite_add_tcase(s, t);
    return s;
}
