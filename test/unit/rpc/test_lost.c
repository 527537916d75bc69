#include "rpc_case.h"

#include <sys/socket.h>
#include <unistd.h>

#include "net/address.h"

/* A deadline after which the test would have been ended: a call that fails before has not waited for it. */
enum { LONG_MS = 3600000 };

static struct rpc_case c;

static void start(void)
{
    case_start(&c, 2, 1);
}

static void stop(void)
{
    case_stop(&c);
}

START_TEST(a_server_that_is_gone_is_told_at_once)
{
    struct err e;
    ck_assert_int_eq(case_call(c.channel, "/t.T/Echo", "", 0, 5000, &e), ERR_NONE);
    rpc_server_free(TAKE(c.server));
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(case_call(c.channel, "/t.T/Echo", "", 0, LONG_MS, &e), ERR_LOST);
    ck_assert_msg(strstr(e.msg, c.target) != NULL && strstr(e.msg, "Connection refused") != NULL, "%s", e.msg);
}
END_TEST

START_TEST(a_channel_recovers_when_its_server_is_back)
{
    struct err e;
    ck_assert_int_eq(case_call(c.channel, "/t.T/Echo", "", 0, 5000, &e), ERR_NONE);
    rpc_server_free(TAKE(c.server));
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(case_call(c.channel, "/t.T/Echo", "", 0, 5000, &e), ERR_LOST);
    case_serve(&c, c.target, 2);
    enum err_code code;
    ck_wait((code = case_call(c.channel, "/t.T/Echo", "", 0, 5000, &e)) != ERR_LOST);
    ck_assert_int_eq(code, ERR_NONE);
}
END_TEST

START_TEST(a_port_in_use_is_bad_input)
{
    struct err e;
    struct rpc_server *second = NULL;
    ck_assert_int_eq(
        rpc_server_start(c.target, &RPC_INSECURE, NULL, 0, &(struct rpc_server_options){ .threads = 1 }, &second, &e),
        -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(e.msg, "is in use"));
    char wild[32];
    snprintf(wild, sizeof(wild), "0.0.0.0:%d", rpc_server_port(c.server));
    ck_assert_int_eq(
        rpc_server_start(wild, &RPC_INSECURE, NULL, 0, &(struct rpc_server_options){ .threads = 1 }, &second, &e), -1);
    ck_assert_ptr_nonnull(strstr(e.msg, "is in use"));
}
END_TEST

static const char *const BAD[] = { "nonsense", "127.0.0.1:99999", "203.0.113.7:0", "", "127.0.0.1:http", ":::" };
START_TEST(a_bad_address_is_bad_input)
{
    struct err e = { .msg = "" };
    struct rpc_server *s = NULL;
    ck_assert_int_eq(
        rpc_server_start(BAD[_i], &RPC_INSECURE, NULL, 0, &(struct rpc_server_options){ .threads = 1 }, &s, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_msg(strstr(e.msg, BAD[_i]) != NULL, "%s", e.msg);
}
END_TEST

/* A listener that is not a server of ours. */
static int listen_raw(char target[32])
{
    struct err e;
    uint16_t port;
    int fd;
    ck_ok_e(address_listen("127.0.0.1:0", &fd, &port, &e));
    snprintf(target, 32, "127.0.0.1:%d", port);
    return fd;
}

static const char SETTINGS_FRAME[] = "\x00\x00\x00\x04\x00\x00\x00\x00\x00"; /* HTTP/2 SETTINGS: ready, all defaults */

/* Begins HTTP/2, reads at most so many bytes without an answer, and closes the connection. */
struct mute {
    int listener;
    size_t most;
};

static void be_mute(void *user)
{
    char bytes[4096];
    const struct mute *m = user;
    int fd = accept(m->listener, NULL, NULL);
    if (send(fd, SETTINGS_FRAME, sizeof(SETTINGS_FRAME) - 1, MSG_NOSIGNAL) > 0)
        for (size_t got = 0; got < m->most;) {
            ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
            if (n <= 0)
                break;
            got += (size_t)n;
        }
    close(fd);
}

START_TEST(a_connection_cut_in_a_call_is_lost_at_once)
{
    static char data[1 << 20];
    struct err e;
    char target[32];
    auto_close int fd = listen_raw(target);
    struct thread t = { 0 };
    struct mute killed = { fd, 20000 }; /* during a call */
    ck_ok_e(thread_start(&t, "peer", be_mute, &killed, &e));
    AUTO(rpc_channel) *channel = rpc_channel_new(target, &RPC_INSECURE, NULL);
    struct rpc_piece piece = { .data = data, .size = sizeof(data) };
    struct rpc_message *m = NULL;
    ck_assert_int_eq(rpc_unary(channel, "/t.T/Echo", NULL, 0, &piece, 1, LONG_MS, &m, &e), -1);
    ck_assert_msg(e.code == ERR_LOST, "%s", e.msg);
    thread_join(&t);
}
END_TEST

START_TEST(a_frozen_server_is_noticed_long_before_the_deadline)
{
    struct err e;
    char target[32];
    auto_close int fd = listen_raw(target);
    struct thread t = { 0 };
    struct mute frozen = { fd, SIZE_MAX };
    ck_ok_e(thread_start(&t, "peer", be_mute, &frozen, &e));
    AUTO(rpc_channel) *channel = rpc_channel_new(target, &RPC_INSECURE, NULL);
    int64_t before = clock_ms();
    ck_assert_int_eq(case_call(channel, "/t.T/Echo", "", 0, LONG_MS, &e), ERR_LOST);
    ck_assert_int_gt(clock_ms() - before, 15000); /* the answer to a ping may take long on a slow link */
    thread_join(&t);
}
END_TEST

/* The kernel accepts the connection, as it does for a process that is stopped. */
START_TEST(a_peer_that_never_answers_a_connection_is_lost_before_the_deadline)
{
    struct err e;
    char target[32];
    int fd = listen_raw(target);
    AUTO(rpc_channel) *channel = rpc_channel_new(target, &RPC_INSECURE, NULL);
    ck_assert_int_eq(case_call(channel, "/t.T/Echo", "", 0, 50, &e), ERR_TIMEOUT); /* the attempt continues */
    ck_assert_msg(case_call(channel, "/t.T/Echo", "", 0, LONG_MS, &e) == ERR_LOST, "%s", e.msg);
    close(fd);
}
END_TEST

/* So many would not stop within the limit of this test if each waited the 5 s that running calls have. */
START_TEST(a_server_without_callers_stops_quickly)
{
    for (int i = 0; i < 150; i++) {
        rpc_server_free(TAKE(c.server));
        case_serve(&c, "127.0.0.1:0", 2);
    }
}
END_TEST

static void stop_server(void *user UNUSED)
{
    rpc_server_free(TAKE(c.server));
}

START_TEST(a_running_handler_may_finish_while_the_server_stops)
{
    struct err e;
    struct rpc_call *k = rpc_start(c.channel, 0, "/t.T/Block", NULL, 0, NULL, 0, 20000);
    case_wait_blocked(&c, 1);
    struct thread t = { 0 };
    ck_ok_e(thread_start(&t, "stop", stop_server, NULL, &e));
    case_release(&c);
    AUTO(rpc_message) *m = NULL;
    ck_ok_e(rpc_wait(k, &m, &e));
    thread_join(&t);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("lost");
    TCase *t = tcase_create("lost");
    tcase_set_timeout(t, 30);
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_test(t, a_server_that_is_gone_is_told_at_once);
    tcase_add_test(t, a_channel_recovers_when_its_server_is_back);
    tcase_add_test(t, a_port_in_use_is_bad_input);
    tcase_add_loop_test(t, a_bad_address_is_bad_input, 0, COUNT_OF(BAD));
    tcase_add_test(t, a_connection_cut_in_a_call_is_lost_at_once);
    tcase_add_test(t, a_peer_that_never_answers_a_connection_is_lost_before_the_deadline);
    tcase_add_test(t, a_server_without_callers_stops_quickly);
    tcase_add_test(t, a_running_handler_may_finish_while_the_server_stops);
    TCase *slow = tcase_create("keepalive");
    tcase_set_timeout(slow, 90);
    tcase_add_checked_fixture(slow, start, stop);
    tcase_add_test(slow, a_frozen_server_is_noticed_long_before_the_deadline);
    suite_add_tcase(s, t);
    suite_add_tcase(s, slow);
    return s;
}
