/* The launcher's client against real servers: it reads the page of the member that it expects, and gives nothing to
 * another. */
#include "cli/http_get.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/stop.h"
#include "identity/tls_dir.h"
#include "net/address.h"
#include "net/http_server.h"
#include "temp_folder.h"

enum { HOUR = 3600, LIMIT_MS = 30000, PAGE_SIZE = 40000, SHORT_MS = 100 };

static char folder[64];
static struct ca *authority, *stranger;
static atomic_int answered;

static int page(void *user UNUSED, struct buf *body, const char **content_type UNUSED)
{
    atomic_fetch_add(&answered, 1);
    for (size_t i = 0; i < PAGE_SIZE; i++)
        buf_char(body, (char)('a' + i % 26));
    return 200;
}

static void write_identity(const char *name, const struct ca *c, int role, int index)
{
    AUTO_FINI(leaf) leaf = { 0 };
    struct err e = { 0 };
    auto_free char *dir = path_join(folder, name);
    ck_ok_e(ca_issue(c, role, index, (int64_t)clock_wall(), HOUR, &leaf, &e));
    ck_ok_e(tls_dir_write(dir, ca_pem(c), &leaf, &e));
}

static void start(void)
{
    struct err e = { 0 };
    atomic_store(&answered, 0);
    snprintf(folder, sizeof(folder), "/tmp/trainyard-get.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_ok_e(stop_install(&e)); /* ignores SIGPIPE, as the launcher does */
    ck_ok_e(ca_new("local", "u-1", (int64_t)clock_wall(), &authority, &e));
    ck_ok_e(ca_new("local", "u-2", (int64_t)clock_wall(), &stranger, &e));
    write_identity("launcher", authority, IDENTITY_LAUNCHER, 0);
    write_identity("chief-0", authority, ROLE_CHIEF, 0);
    write_identity("worker-0", authority, ROLE_WORKER, 0);
    write_identity("stranger", stranger, ROLE_CHIEF, 0);
}

static void stop(void)
{
    ca_free(TAKE(authority));
    ca_free(TAKE(stranger));
    remove_tree(folder);
}

/* As the launcher's loop does it. */
static enum http_get_result get(struct http_get *g, int port, const struct http_get_tls *tls, int64_t timeout_ms,
                                const char **body, size_t *n)
{
    enum http_get_result result = http_get_start(g, port, tls, "/progress", clock_ms(), timeout_ms);
    while (result == HTTP_GET_PENDING) {
        struct pollfd p = http_get_poll(g);
        ck_assert_int_ge(poll(&p, 1, (int)timeout_ms), 0);
        result = http_get_step(g, clock_ms(), body, n);
    }
    ck_assert_int_eq(g->fd, -1);
    return result;
}

/* identity of the server ("": plain HTTP), own identity ("": plain HTTP), whether the page is read */
static const struct {
    const char *server, *own;
    bool read;
} CASES[] = {
    { "", "", true },          { "chief-0", "launcher", true },   { "worker-0", "launcher", false },
    { "", "launcher", false }, { "stranger", "launcher", false }, { "chief-0", "stranger", false },
    { "chief-0", "", false },  { "chief-0", "absent", false },
};
START_TEST(reads_the_page_of_the_chief_only)
{
    const struct http_route routes[] = { { .path = "/progress", .handle = page } }; /* as a hostile server's */
    auto_free char *theirs = path_join(folder, CASES[_i].server), *own = path_join(folder, CASES[_i].own);
    const struct http_get_tls tls = { .dir = own, .role = ROLE_CHIEF, .index = 0 };
    AUTO(http_server) *server = NULL;
    AUTO_FINI(http_get) g = HTTP_GET_INIT;
    struct err e = { 0 };
    const char *body;
    size_t n;
    ck_ok_e(http_server_start("127.0.0.1:0", CASES[_i].server[0] != '\0' ? theirs : NULL, routes, 1, &server, &e));
    for (int again = 0; again < 2; again++) {
        enum http_get_result result =
            get(&g, http_server_port(server), CASES[_i].own[0] != '\0' ? &tls : NULL, LIMIT_MS, &body, &n);
        ck_assert_int_eq(result, CASES[_i].read ? HTTP_GET_DONE : HTTP_GET_FAILED);
        if (!CASES[_i].read)
            continue;
        ck_assert_uint_eq(n, PAGE_SIZE);
        ck_assert_int_eq(memcmp(body, "abcdef", 6), 0);
    }
    ck_assert_int_eq(atomic_load(&answered), CASES[_i].read ? 2 : 0);
}
END_TEST

static void restart_server(int port, struct http_server **server)
{
    const struct http_route routes[] = { { .path = "/progress", .handle = page, .members = HTTP_ANY_MEMBER } };
    auto_free char *own = path_join(folder, "chief-0");
    auto_free char *address = xasprintf("127.0.0.1:%d", port);
    struct err e = { 0 };
    http_server_free(*server);
    ck_ok_e(http_server_start(address, own, routes, 1, server, &e));
}

/* A second request needs no second handshake, so it works without the files; and after the chief was started again the
 * next request but one reaches it. */
START_TEST(a_connection_is_used_again)
{
    auto_free char *own = path_join(folder, "launcher"), *away = path_join(folder, "away");
    const struct http_get_tls tls = { .dir = own, .role = ROLE_CHIEF, .index = 0 };
    AUTO(http_server) *server = NULL;
    AUTO_FINI(http_get) g = HTTP_GET_INIT;
    struct err e = { 0 };
    const char *body;
    size_t n;
    restart_server(0, &server);
    int port = http_server_port(server);
    ck_assert_int_eq(get(&g, port, &tls, LIMIT_MS, &body, &n), HTTP_GET_DONE);
    ck_ok_e(file_rename(own, away, &e));
    ck_assert_int_eq(get(&g, port, &tls, LIMIT_MS, &body, &n), HTTP_GET_DONE);
    ck_ok_e(file_rename(away, own, &e));
    restart_server(port, &server);
    ck_assert_int_eq(get(&g, port, &tls, LIMIT_MS, &body, &n), HTTP_GET_FAILED);
    ck_assert_int_eq(get(&g, port, &tls, LIMIT_MS, &body, &n), HTTP_GET_DONE);
}
END_TEST

/* A server that accepts and says nothing, and a port without one. */
START_TEST(a_request_has_a_deadline)
{
    auto_free char *own = path_join(folder, "launcher");
    const struct http_get_tls tls = { .dir = own, .role = ROLE_CHIEF, .index = 0 };
    AUTO_FINI(http_get) g = HTTP_GET_INIT;
    auto_close int fd = -1;
    uint16_t port;
    struct err e = { 0 };
    const char *body;
    size_t n;
    ck_ok_e(address_listen("127.0.0.1:0", &fd, &port, &e));
    ck_assert_int_eq(get(&g, port, &tls, SHORT_MS, &body, &n), HTTP_GET_FAILED);
    ck_assert_int_eq(get(&g, port, NULL, SHORT_MS, &body, &n), HTTP_GET_FAILED);
    fd_close(fd);
    fd = -1;
    ck_assert_int_eq(get(&g, port, &tls, LIMIT_MS, &body, &n), HTTP_GET_FAILED);
}
END_TEST

/* answer, body or NULL, whether its length says that nothing is missing */
static const struct {
    const char *answer, *body;
    bool complete;
} ANSWERS[] = {
    { "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{}", "{}", false },
    { "HTTP/1.0 200 OK\r\n\r\n", "", false },
    { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: b\r\n\r\n{}", "{}", true },
    { "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", "{}", false },
    { "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}", "{}", false },
    { "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}", "{}", false },
    { "HTTP/1.1 200 OK\r\nA: b\r\n\r\n\r\nContent-Length: 0\r\n", "\r\nContent-Length: 0\r\n", false },
    { "HTTP/1.1 503 Service Unavailable\r\n\r\n{}", NULL, false },
    { "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", NULL, false },
    { "SSH-2.0-OpenSSH\r\n\r\n", NULL, false },
    { "", NULL, false },
    { "HTTP/1.1 20", NULL, false },
};
START_TEST(answers)
{
    size_t n = 0;
    ck_assert_int_eq(http_get_complete(ANSWERS[_i].answer, strlen(ANSWERS[_i].answer)), ANSWERS[_i].complete);
    const char *body = http_get_body(ANSWERS[_i].answer, strlen(ANSWERS[_i].answer), &n);
    if (ANSWERS[_i].body == NULL) {
        ck_assert_ptr_null(body);
    } else {
        ck_assert_str_eq(body, ANSWERS[_i].body);
        ck_assert_uint_eq(n, strlen(ANSWERS[_i].body));
    }
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("http_get");
    TCase *t = tcase_create("http_get");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_loop_test(t, reads_the_page_of_the_chief_only, 0, COUNT_OF(CASES));
    tcase_add_test(t, a_connection_is_used_again);
    tcase_add_test(t, a_request_has_a_deadline);
    tcase_add_loop_test(t, answers, 0, COUNT_OF(ANSWERS));
    suite_add_tcase(s, t);
    return s;
}
