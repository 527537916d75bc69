/* Requests that cannot be answered yet (rpc_reply.again_ms): they are handled again after rpc_server_wake(). */
#include "rpc_case.h"

enum { FOREVER_MS = 600 * 1000, PATIENCE_MS = 120 * 1000 };

static struct rpc_case c;

static void finish(struct rpc_call *call)
{
    struct err e;
    AUTO(rpc_message) *m = NULL;
    ck_ok_e(rpc_wait(call, &m, &e));
}

static struct rpc_call *call_on(int lane, const char *method)
{
    return rpc_start(c.channel, lane, method, NULL, 0, NULL, 0, PATIENCE_MS);
}

/* A thread that waits for a call moves the bytes of its connection. So a call that no thread waits for begins at once
 * only where there is a connection. */
static void connect_lane(int lane)
{
    finish(call_on(lane, "/t.T/Echo"));
}

static void start(void)
{
    case_start(&c, 2, 2);
    atomic_store(&c.again_ms, FOREVER_MS);
    connect_lane(0);
    connect_lane(1);
}

static void stop(void)
{
    case_stop(&c);
}

static struct rpc_call *ask(int lane)
{
    return call_on(lane, "/t.T/Again");
}

static void wake(bool ready)
{
    atomic_store(&c.ready, ready);
    rpc_server_wake(c.server);
}

static void answered(struct rpc_call *call)
{
    struct err e = { 0 };
    AUTO(rpc_message) *m = NULL;
    ck_ok_e(rpc_wait(call, &m, &e));
    ck_assert_uint_eq(rpc_message_payload_size(m), 1);
}

static void refused(struct rpc_call *call)
{
    struct err e;
    struct rpc_message *m = NULL;
    ck_fails(rpc_wait(call, &m, &e), ERR_PENDING, "not there yet");
}

START_TEST(a_wake_handles_the_request_again)
{
    struct rpc_call *call = ask(0);
    ck_wait(atomic_load(&c.handled) == 1);
    wake(false);
    ck_wait(atomic_load(&c.handled) == 2); /* and it waits on */
    wake(true);
    answered(call);
    ck_assert_int_eq(atomic_load(&c.handled), 3);
}
END_TEST

/* With and without a thread of the server. */
START_TEST(the_thread_that_has_what_is_missing_answers)
{
    for (int n = 1; n <= 4; n++) {
        struct rpc_call *calls[4];
        atomic_store(&c.ready, false);
        atomic_store(&c.handled, 0);
        for (int i = 0; i < n; i++)
            calls[i] = ask(i % 2);
        ck_wait(atomic_load(&c.handled) == n);
        atomic_store(&c.ready, true);
        rpc_server_answer(c.server);
        for (int i = 0; i < n; i++)
            answered(calls[i]);
        ck_assert_int_eq(atomic_load(&c.handled), 2 * n);
    }
    rpc_server_answer(c.server); /* nothing waits */
}
END_TEST

static void answer_here(void *user UNUSED)
{
    rpc_server_answer(c.server);
}

/* That thread puts it back, and does not wait for its end. */
START_TEST(the_wait_of_a_request_that_another_thread_handled_ends)
{
    struct err e = { 0 };
    struct thread t = { 0 };
    struct rpc_message *m = NULL;
    atomic_store(&c.again_ms, 1000);
    struct rpc_call *call = ask(0);
    ck_wait(atomic_load(&c.handled) == 1);
    atomic_store(&c.blocks, true);
    ck_ok_e(thread_start(&t, "answer", answer_here, NULL, &e));
    case_wait_blocked(&c, 1);
    finish(call_on(1, "/t.T/Echo")); /* the threads of the server find that nothing waits */
    case_release(&c);
    thread_join(&t);
    ck_fails(rpc_wait(call, &m, &e), ERR_PENDING, "not there yet");
}
END_TEST

/* What waits must not hold the memory of a gradient; the handler has taken it. */
START_TEST(the_payload_is_there_the_first_time_only)
{
    AUTO_FINI(buf) bytes = BUF_INIT;
    const char head[] = { 10, 3, 'a', 'b', 'c' }; /* a field of three bytes */
    for (int i = 0; i < 100000; i++)
        buf_str(&bytes, "gradient ");
    struct rpc_piece piece = { .data = bytes.data, .size = bytes.len };
    struct rpc_call *call = rpc_start(c.channel, 0, "/t.T/Again", head, sizeof(head), &piece, 1, PATIENCE_MS);
    ck_wait(atomic_load(&c.handled) == 1);
    ck_assert_uint_eq(atomic_load(&c.again_payload), bytes.len);
    ck_assert(!atomic_load(&c.again));
    for (int n = 2; n < 4; n++) {
        wake(false);
        ck_wait(atomic_load(&c.handled) == n);
        ck_assert_uint_eq(atomic_load(&c.again_payload), 0);
        ck_assert_uint_eq(atomic_load(&c.again_head), sizeof(head));
        ck_assert(atomic_load(&c.again));
    }
    wake(true);
    answered(call);
}
END_TEST

START_TEST(without_a_wish_the_error_is_the_answer_at_once)
{
    atomic_store(&c.again_ms, 0);
    refused(ask(0));
    ck_assert_int_eq(atomic_load(&c.handled), 1);
}
END_TEST

START_TEST(when_its_time_is_over_the_error_is_the_answer)
{
    atomic_store(&c.again_ms, 20);
    refused(ask(0)); /* nothing else happens at the server meanwhile */
}
END_TEST

START_TEST(each_request_has_its_own_time)
{
    struct rpc_call *patient = ask(0);
    ck_wait(atomic_load(&c.handled) == 1);
    atomic_store(&c.again_ms, 20);
    refused(ask(1));
    wake(true);
    answered(patient);
}
END_TEST

static atomic_bool over;
static void expect_refusal(void *user)
{
    refused(user);
    atomic_store(&over, true);
}

START_TEST(wakes_do_not_prolong_the_wait)
{
    struct err e;
    struct thread t = { 0 };
    atomic_store(&over, false);
    atomic_store(&c.again_ms, 50);
    ck_ok_e(thread_start(&t, "client", expect_refusal, ask(0), &e));
    ck_wait((rpc_server_wake(c.server), atomic_load(&over)));
    thread_join(&t);
    ck_assert_int_gt(atomic_load(&c.handled), 0);
}
END_TEST

/* The handler has looked, and what it needs comes before its request is among those that wait. */
START_TEST(a_wake_before_the_wait_is_not_lost)
{
    atomic_store(&c.wakes, true);
    answered(ask(0));
    ck_assert_int_eq(atomic_load(&c.handled), 2);
}
END_TEST

static void ask_often(struct rpc_call *ret[CASE_WAITING_MAX])
{
    int before = atomic_load(&c.handled);
    for (int i = 0; i < CASE_WAITING_MAX; i++)
        ret[i] = ask(i);
    ck_wait(atomic_load(&c.handled) == before + CASE_WAITING_MAX);
}

START_TEST(requests_that_wait_occupy_no_thread)
{
    struct rpc_call *calls[CASE_WAITING_MAX];
    ask_often(calls);
    for (int i = 0; i < 20; i++)
        finish(call_on(i % 2, "/t.T/Echo"));
    wake(true);
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        answered(calls[i]);
    ck_assert_int_eq(atomic_load(&c.handled), 2 * COUNT_OF(calls));
}
END_TEST

START_TEST(a_server_that_stops_answers_them)
{
    struct rpc_call *calls[5];
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        calls[i] = ask((int)i);
    ck_wait(atomic_load(&c.handled) == COUNT_OF(calls));
    rpc_server_free(TAKE(c.server));
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        refused(calls[i]);
}
END_TEST

/* What the failed handler wanted to send is given back each time, as is what is sent in the end. */
START_TEST(pieces_of_each_attempt_are_given_back)
{
    struct rpc_call *call = ask(0);
    ck_wait(atomic_load(&c.handled) == 1);
    wake(true);
    answered(call);
    rpc_server_free(TAKE(c.server));
    ck_assert_int_eq(atomic_load(&c.pieces_done), 2 + 2); /* two of connect_lane() */
}
END_TEST

START_TEST(a_caller_may_go_meanwhile)
{
    struct err e;
    struct rpc_message *m = NULL;
    struct rpc_call *call = ask(0);
    ck_wait(atomic_load(&c.handled) == 1);
    rpc_cancel(call);
    ck_assert_int_eq(rpc_wait(call, &m, &e), -1);
    ck_assert_int_eq(e.code, ERR_STOPPED);
    wake(true);
    ck_wait(atomic_load(&c.handled) == 2); /* without a caller */
    answered(ask(1));
}
END_TEST

/* Both threads are done with the requests that were handled: one of them takes Block, and the other one Echo. */
static void settle(void)
{
    struct rpc_call *block = call_on(0, "/t.T/Block");
    case_wait_blocked(&c, 1);
    finish(call_on(1, "/t.T/Echo"));
    case_release(&c);
    finish(block);
}

START_TEST(so_many_wait_and_others_get_the_error)
{
    struct rpc_call *calls[CASE_WAITING_MAX];
    ask_often(calls);
    settle();
    refused(ask(1));
    wake(true);
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        answered(calls[i]);
    atomic_store(&c.ready, false);
    ask_often(calls); /* there is room again */
    wake(true);
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        answered(calls[i]);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("again");
    TCase *t = tcase_create("again");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_test(t, a_wake_handles_the_request_again);
    tcase_add_test(t, the_thread_that_has_what_is_missing_answers);
    tcase_add_test(t, the_wait_of_a_request_that_another_thread_handled_ends);
    tcase_add_test(t, the_payload_is_there_the_first_time_only);
    tcase_add_test(t, without_a_wish_the_error_is_the_answer_at_once);
    tcase_add_test(t, when_its_time_is_over_the_error_is_the_answer);
    tcase_add_test(t, each_request_has_its_own_time);
    tcase_add_test(t, wakes_do_not_prolong_the_wait);
    tcase_add_test(t, a_wake_before_the_wait_is_not_lost);
    tcase_add_test(t, requests_that_wait_occupy_no_thread);
    tcase_add_test(t, a_server_that_stops_answers_them);
    tcase_add_test(t, pieces_of_each_attempt_are_given_back);
    tcase_add_test(t, a_caller_may_go_meanwhile);
    tcase_add_test(t, so_many_wait_and_others_get_the_error);
    suite_add_tcase(s, t);
    return s;
}
