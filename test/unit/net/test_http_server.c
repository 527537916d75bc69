#include "check_main.h"
#include "net/address.h"
#include "net/http_server.h"
#include "net/registry.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread.h"

static struct registry *registry;
static struct http_server *server;
static char address[32];

static int progress(void *user UNUSED, struct buf *body, const char **content_type)
{
    buf_str(body, "{\"step\": 7}");
    *content_type = "application/json";
    return 200;
}

static int not_ready(void *user, struct buf *body, const char **content_type UNUSED)
{
    buf_printf(body, "waiting for %s\n", (const char *)user);
    return 503;
}

static void start(void)
{
    struct err e;
    registry = registry_new();
    counter_add(registry_counter(registry, "a_total", "A.", NULL), 5);
    static char ps[] = "ps-1";
    const struct http_route routes[] = {
        http_metrics_route(registry),
        { .path = "/progress", .handle = progress },
        { .path = "/readyz", .handle = not_ready, .user = ps },
    };
    ck_ok_e(http_server_start("127.0.0.1:0", NULL, routes, COUNT_OF(routes), &server, &e));
    snprintf(address, sizeof(address), "127.0.0.1:%d", http_server_port(server));
}

static void stop(void)
{
    http_server_free(TAKE(server));
    registry_free(TAKE(registry));
}

/* A connection to the server, on which the bytes were sent. */
static int say(const char *bytes)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)http_server_port(server)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    ck_assert_int_eq(send(fd, bytes, strlen(bytes), MSG_NOSIGNAL), (ssize_t)strlen(bytes));
    return fd;
}

/* Sends the bytes and reads all that comes until the server closes the connection. */
static void talk(const char *bytes, struct buf *out)
{
    auto_close int fd = say(bytes);
    char c[1024];
    for (;;) {
        ssize_t n = recv(fd, c, sizeof(c), 0);
        if (n == 0)
            return;
        if (n > 0)
            buf_add(out, c, (size_t)n);
    }
}

/* GET as a browser sends it, without keep-alive. Returns the status; the answer includes its headers. */
static int get(const char *path, struct buf *answer)
{
    AUTO_FINI(buf) request = BUF_INIT;
    buf_printf(&request, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    talk(request.data, answer);
    ck_assert_int_eq(strncmp(answer->data, "HTTP/1.1 ", 9), 0);
    return atoi(answer->data + 9);
}

/* path, status, part of the body */
static const struct {
    const char *path;
    int status;
    const char *part;
} PAGES[] = {
    { "/metrics", 200, "\na_total 5\n" },
    { "/progress", 200, "{\"step\": 7}" },
    { "/progress?pretty=1", 200, "{\"step\": 7}" },
    { "/readyz", 503, "waiting for ps-1" },
    { "/", 404, "the pages are: /metrics /progress /readyz" },
    { "/progress/x", 404, "not found" },
};
START_TEST(pages_are_served)
{
    AUTO_FINI(buf) answer = BUF_INIT;
    ck_assert_int_eq(get(PAGES[_i].path, &answer), PAGES[_i].status);
    ck_assert_msg(strstr(answer.data, PAGES[_i].part) != NULL, "%s", answer.data);
}
END_TEST

START_TEST(head_has_no_body_and_post_is_refused)
{
    AUTO_FINI(buf) head = BUF_INIT;
    talk("HEAD /progress HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", &head);
    ck_assert_ptr_nonnull(strstr(head.data, " 200 "));
    ck_assert_ptr_nonnull(strstr(head.data, "Content-Type: application/json\r\n"));
    ck_assert_ptr_null(strstr(head.data, "step"));
    AUTO_FINI(buf) post = BUF_INIT;
    talk("POST /progress HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc", &post);
    ck_assert_msg(strstr(post.data, " 405 ") != NULL, "%s", post.data);
    ck_assert_ptr_nonnull(strstr(post.data, "Allow: GET, HEAD\r\n"));
}
END_TEST

static const char *const NONSENSE[] = { "\r\n\r\n", "GET\r\n\r\n", "\x16\x03\x01\x02", "GET / HTTP/9.9\r\n\r\n",
                                        "GET /%00 HTTP/1.0\r\n\r\n" };
START_TEST(nonsense_does_no_harm)
{
    auto_close int fd = say(NONSENSE[_i]);
    ck_assert_int_ge(fd, 0);
    AUTO_FINI(buf) answer = BUF_INIT;
    ck_assert_int_eq(get("/progress", &answer), 200);
}
END_TEST

static void get_often(void *user UNUSED)
{
    for (int i = 0; i < 20; i++) {
        AUTO_FINI(buf) answer = BUF_INIT;
        ck_assert_int_eq(get("/metrics", &answer), 200);
    }
}

START_TEST(several_may_ask_at_once)
{
    struct err e;
    struct thread threads[4] = { 0 };
    for (int i = 0; i < 4; i++)
        ck_ok_e(thread_start(&threads[i], "get", get_often, NULL, &e));
    for (int i = 0; i < 4; i++)
        thread_join(&threads[i]);
}
END_TEST

START_TEST(a_port_in_use_is_bad_input)
{
    struct err e;
    struct http_server *second = NULL;
    ck_assert_int_eq(http_server_start(address, NULL, NULL, 0, &second, &e), -1);
    ck_assert_int_eq(e.code, ERR_INPUT);
    ck_assert_ptr_nonnull(strstr(e.msg, "is in use"));
}
END_TEST

/* Unfinished requests of one client, as many as fill every place. */
START_TEST(slow_clients_do_not_keep_others_out)
{
    int slow[200];
    AUTO_FINI(buf) answer = BUF_INIT;
    for (size_t i = 0; i < COUNT_OF(slow); i++)
        slow[i] = say("GET /progress HTTP/1.1\r\nHost:");
    ck_assert_int_eq(get("/progress", &answer), 200);
    char c;
    ck_assert_int_le(recv(slow[0], &c, 1, 0), 0); /* the oldest one was closed */
    for (size_t i = 0; i < COUNT_OF(slow); i++)
        close(slow[i]);
}
END_TEST

/* A connection that is never idle: it sends a byte from time to time. */
START_TEST(a_request_has_a_deadline)
{
    auto_close int fd = say("GET /progress HTTP/1.1\r\nX:");
    ck_wait((poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 200), send(fd, "x", 1, MSG_NOSIGNAL)) != 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("http_server");
    TCase *t = tcase_create("http_server");
    tcase_set_timeout(t, 90);
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_loop_test(t, pages_are_served, 0, COUNT_OF(PAGES));
    tcase_add_test(t, head_has_no_body_and_post_is_refused);
    tcase_add_loop_test(t, nonsense_does_no_harm, 0, COUNT_OF(NONSENSE));
    tcase_add_test(t, several_may_ask_at_once);
    tcase_add_test(t, slow_clients_do_not_keep_others_out);
    tcase_add_test(t, a_request_has_a_deadline);
    tcase_add_test(t, a_port_in_use_is_bad_input);
    suite_add_tcase(s, t);
    return s;
}
