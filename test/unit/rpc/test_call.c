#include "rpc_case.h"

static struct rpc_case c;

static void start(void)
{
    case_start(&c, 2, 2);
}

static void stop(void)
{
    case_stop(&c);
}

static void fill(unsigned char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)((i + seed) * 2654435761U >> 13);
}

/* Sends n bytes as pieces of uneven sizes and compares what comes back. */
static void echo(struct rpc_channel *channel, int lane, size_t n, unsigned seed)
{
    struct err e;
    auto_free unsigned char *data = xmalloc(n + 1), *back = xmalloc(n + 1);
    fill(data, n, seed);
    struct rpc_piece pieces[4] = { { .data = data, .size = n / 3 },
                                   { .data = data + n / 3, .size = 0 },
                                   { .data = data + n / 3, .size = n / 2 - n / 3 },
                                   { .data = data + n / 2, .size = n - n / 2 } };
    struct rpc_call *call = rpc_start(channel, lane, "/t.T/Echo", "\x08\x07", 2, pieces, 4, 20000);
    AUTO(rpc_message) *m = NULL;
    ck_ok_e(rpc_wait(call, &m, &e));

    size_t head_size;
    const void *head = rpc_message_head(m, &head_size);
    ck_assert_uint_eq(head_size, 2);
    ck_assert_mem_eq(head, "\x08\x07", 2);
    ck_assert_uint_eq(rpc_message_payload_size(m), n);
    ck_assert(rpc_message_copy(m, 0, back, n));
    ck_assert(memcmp(data, back, n) == 0);

    size_t pos = 0, walked = 0, size;
    const void *p;
    for (; rpc_message_next(m, &pos, &p, &size); walked += size)
        ck_assert(walked + size <= n && memcmp(p, data + walked, size) == 0);
    ck_assert_uint_eq(walked, n);
}

static const size_t SIZES[] = { 0, 1, 5, 127, 128, 4096, 65536, 407080, 4 << 20, 64 << 20 };

START_TEST(bytes_of_any_size_come_back)
{
    echo(c.channel, 0, SIZES[_i], (unsigned)_i);
    echo(c.channel, 1, SIZES[_i], (unsigned)_i + 1);
}
END_TEST

START_TEST(pieces_of_an_answer_are_given_back)
{
    for (int i = 0; i < 20; i++)
        echo(c.channel, 0, 100000, 1);
    rpc_server_free(TAKE(c.server));
    ck_assert_int_eq(atomic_load(&c.pieces_done), 20);
}
END_TEST

static void count_done(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

START_TEST(pieces_of_a_request_are_given_back)
{
    static atomic_int done;
    struct err e;
    struct rpc_piece pieces[2] = { { .data = "abc", .size = 3, .done = count_done, .user = &done },
                                   { .data = "", .size = 0, .done = count_done, .user = &done } };
    AUTO(rpc_message) *m = NULL;
    ck_ok_e(rpc_unary(c.channel, "/t.T/Echo", NULL, 0, pieces, 2, 5000, &m, &e));
    rpc_channel_free(TAKE(c.channel));
    ck_assert_int_eq(atomic_load(&done), 2);

    pieces[0].size = SIZE_MAX; /* refused, and released all the same */
    c.channel = rpc_channel_new(c.target, &RPC_INSECURE, NULL);
    AUTO(rpc_message) *none = NULL;
    ck_assert_int_eq(rpc_unary(c.channel, "/t.T/Echo", NULL, 0, pieces, 2, 5000, &none, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_int_eq(atomic_load(&done), 4);
}
END_TEST

START_TEST(an_error_keeps_its_code_and_words)
{
    struct err e;
    char head[2] = { 8, (char)_i };
    ck_assert_int_eq(case_call(c.channel, "/t.T/Fail", head, 2, 5000, &e), _i);
    ck_assert_str_eq(e.msg, "as asked: 100 % \xc3\xa9\n");
}
END_TEST

START_TEST(an_unknown_method_is_refused)
{
    struct err e;
    ck_assert_int_eq(case_call(c.channel, "/t.T/Nonsense", "", 0, 5000, &e), ERR_REFUSED);
    ck_assert_ptr_nonnull(strstr(e.msg, "/t.T/Nonsense"));
}
END_TEST

START_TEST(a_malformed_head_is_an_error_with_its_place)
{
    struct err e;
    ck_assert_int_eq(case_call(c.channel, "/t.T/Echo", "\x12\x40", 2, 5000, &e), ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(e.msg, "/t.T/Echo"));
    ck_assert_ptr_nonnull(strstr(e.msg, "field 2 at byte 0"));
}
END_TEST

/* The message of a client that supports only protobuf: one piece, an unknown field 3, the payload last. */
START_TEST(a_plain_protobuf_message_is_understood)
{
    static const char plain[] = "\x08\x07\x18\x05\x7a\x05hello";
    struct err e;
    AUTO(rpc_message) *m = NULL;
    ck_ok_e(rpc_unary(c.channel, "/t.T/Echo", plain, sizeof(plain) - 1, NULL, 0, 5000, &m, &e));
    char out[5];
    ck_assert_uint_eq(rpc_message_payload_size(m), 5);
    ck_assert(rpc_message_copy(m, 0, out, 5));
    ck_assert_mem_eq(out, "hello", 5);
}
END_TEST

START_TEST(a_deadline_ends_a_call)
{
    struct err e;
    ck_assert_int_eq(case_call(c.channel, "/t.T/Block", "", 0, 60, &e), ERR_TIMEOUT);
    ck_assert_ptr_nonnull(strstr(e.msg, "within 60 ms"));
    case_release(&c);
}
END_TEST

START_TEST(a_cancelled_call_ends)
{
    struct err e;
    struct rpc_call *k = rpc_start(c.channel, 0, "/t.T/Block", NULL, 0, NULL, 0, 60000);
    case_wait_blocked(&c, 1);
    rpc_cancel(k);
    struct rpc_message *m = NULL;
    ck_assert_int_eq(rpc_wait(k, &m, &e), -1);
    ck_assert_int_eq(e.code, ERR_STOPPED);
    case_release(&c);
}
END_TEST

START_TEST(a_blocking_handler_holds_up_no_other)
{
    struct err e;
    struct rpc_call *k = rpc_start(c.channel, 0, "/t.T/Block", NULL, 0, NULL, 0, 60000);
    case_wait_blocked(&c, 1);
    for (int i = 0; i < 20; i++)
        echo(c.channel, i % 2, 100000, 3);
    case_release(&c);
    AUTO(rpc_message) *m = NULL;
    ck_ok_e(rpc_wait(k, &m, &e));
}
END_TEST

START_TEST(started_calls_run_in_parallel)
{
    struct err e;
    struct rpc_call *calls[40];
    for (size_t i = 0; i < COUNT_OF(calls); i++) /* more than threads, more than requested ahead */
        calls[i] = rpc_start(c.channel, (int)i, "/t.T/Echo", "\x08\x07", 2, NULL, 0, 20000);
    for (size_t i = COUNT_OF(calls); i-- > 0;) {
        AUTO(rpc_message) *m = NULL;
        ck_ok_e(rpc_wait(calls[i], &m, &e));
    }
}
END_TEST

static void echo_often(void *user)
{
    unsigned seed = *(unsigned *)user;
    for (unsigned i = 0; i < 25; i++)
        echo(c.channel, (int)(seed + i), (size_t)(i * 7919 * (seed + 1)) % 300000, seed + i);
}

START_TEST(eight_threads_share_a_channel)
{
    struct err e;
    struct thread threads[8] = { 0 };
    unsigned seeds[8];
    for (unsigned i = 0; i < 8; i++) {
        seeds[i] = i;
        ck_ok_e(thread_start(&threads[i], "client", echo_often, &seeds[i], &e));
    }
    for (int i = 0; i < 8; i++)
        thread_join(&threads[i]);
}
END_TEST

/* HealthCheckResponse { status = SERVING 1, NOT_SERVING 2 } */
static void check_health(const char *head, size_t n, const char *want)
{
    struct err e;
    AUTO(rpc_message) *m = NULL;
    ck_ok_e(rpc_unary(c.channel, "/grpc.health.v1.Health/Check", head, n, NULL, 0, 5000, &m, &e));
    size_t size;
    const void *p = rpc_message_head(m, &size);
    ck_assert_uint_eq(size, 2);
    ck_assert_mem_eq(p, want, 2);
}

START_TEST(health_says_whether_it_serves)
{
    struct err e;
    check_health("", 0, "\x08\x01");
    check_health("\x0a\x03t.T", 5, "\x08\x01");
    rpc_server_set_serving(c.server, false);
    check_health("\x0a\x03t.T", 5, "\x08\x02");
    ck_assert_int_eq(case_call(c.channel, "/grpc.health.v1.Health/Check", "\x0a\x03t.X", 5, 5000, &e), ERR_NOT_FOUND);
    ck_assert_int_eq(case_call(c.channel, "/grpc.health.v1.Health/Check", "\x0a\x02t.", 4, 5000, &e), ERR_NOT_FOUND);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("call");
    TCase *t = tcase_create("call");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_loop_test(t, bytes_of_any_size_come_back, 0, COUNT_OF(SIZES));
    tcase_add_test(t, pieces_of_an_answer_are_given_back);
    tcase_add_test(t, pieces_of_a_request_are_given_back);
    tcase_add_loop_test(t, an_error_keeps_its_code_and_words, ERR_INPUT, ERR_INTERNAL + 1);
    tcase_add_test(t, an_unknown_method_is_refused);
    tcase_add_test(t, a_malformed_head_is_an_error_with_its_place);
    tcase_add_test(t, a_plain_protobuf_message_is_understood);
    tcase_add_test(t, a_deadline_ends_a_call);
    tcase_add_test(t, a_cancelled_call_ends);
    tcase_add_test(t, a_blocking_handler_holds_up_no_other);
    tcase_add_test(t, started_calls_run_in_parallel);
    tcase_add_test(t, eight_threads_share_a_channel);
    tcase_add_test(t, health_says_whether_it_serves);
    suite_add_tcase(s, t);
    return s;
}
