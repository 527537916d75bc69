/* A server with an identity, asked by curl and `openssl s_client` as users do: whom it answers, whom it refuses and
 * with which words, and that a changed certificate is served without a failed request. */
#include "net/http_tls.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/thread.h"
#include "identity/tls_dir.h"
#include "net/connection_limit.h"
#include "net/http_server.h"
#include "temp_folder.h"

enum { DAY = 24 * 3600, LOAD_THREADS = 2, RELOADS = 3, LONG_MS = 1000 };

static char folder[64];
static struct ca *authority, *stranger;
static struct http_server *server;

static int64_t now(void)
{
    return (int64_t)clock_wall();
}

static int progress(void *user UNUSED, struct buf *body, const char **content_type)
{
    buf_str(body, "{\"step\": 7}\n");
    *content_type = "application/json";
    return 200;
}

static int alive(void *user UNUSED, struct buf *body, const char **content_type UNUSED)
{
    buf_str(body, "ok\n");
    return 200;
}

/* Writes the identity of a member into folder/NAME. `at` is the time of issue. */
static void write_identity(const char *name, const struct ca *c, int role, int index, int64_t at)
{
    AUTO_FINI(leaf) leaf = { 0 };
    struct err e = { 0 };
    auto_free char *dir = path_join(folder, name);
    ck_ok_e(ca_issue(c, role, index, at, DAY, &leaf, &e));
    ck_ok_e(tls_dir_write(dir, ca_pem(authority), &leaf, &e));
}

static void start(void)
{
    static const struct http_route ROUTES[] = {
        { .path = "/healthz", .handle = alive },
        { .path = "/progress", .handle = progress, .members = HTTP_ANY_MEMBER },
        { .path = "/workers", .handle = progress, .members = IDENTITY_BIT(ROLE_WORKER) | IDENTITY_BIT(ROLE_CHIEF) },
    };
    struct err e = { 0 };
    snprintf(folder, sizeof(folder), "/tmp/trainyard-http.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_ok_e(ca_new("local", "u-1", now() - 3 * DAY, &authority, &e));
    ck_ok_e(ca_new("local", "u-2", now(), &stranger, &e));
    write_identity("chief-0", authority, ROLE_CHIEF, 0, now());
    write_identity("worker-0", authority, ROLE_WORKER, 0, now());
    write_identity("ps-1", authority, ROLE_PS, 1, now());
    write_identity("operator", authority, IDENTITY_OPERATOR, 0, now());
    write_identity("old", authority, ROLE_WORKER, 0, now() - 2 * DAY);
    write_identity("stranger", stranger, ROLE_WORKER, 0, now());
    auto_free char *own = path_join(folder, "chief-0");
    ck_ok_e(http_server_start("127.0.0.1:0", own, ROUTES, COUNT_OF(ROUTES), &server, &e));
}

static void stop(void)
{
    http_server_free(TAKE(server));
    ca_free(TAKE(authority));
    ca_free(TAKE(stranger));
    remove_tree(folder);
}

/* Runs a command of the shell; its output goes to *out. FOLDER and PORT are variables in it. */
static int shell(const char *command, struct buf *out)
{
    auto_free char *line = xasprintf("FOLDER=%s PORT=%d; { %s; } 2>&1", folder, http_server_port(server), command);
    FILE *f = popen(line, "re");
    char text[1024];
    ck_assert_ptr_nonnull(f);
    for (size_t n; (n = fread(text, 1, sizeof(text), f)) > 0;)
        buf_add(out, text, n);
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* curl with an identity ("" for none); prints the body and the status. Returns the status, 0 when there was none. */
static int get(const char *identity, const char *path, struct buf *out)
{
    auto_free char *with = identity[0] != '\0'
                               ? xasprintf("--cert $FOLDER/%s/tls.crt --key $FOLDER/%s/tls.key", identity, identity)
                               : xstrdup("");
    /* the name in the certificate is a member of the job and not a host */
    auto_free char *command =
        xasprintf("curl -sk --max-time 50 %s -w '%%{http_code}' https://127.0.0.1:$PORT%s", with, path);
    (void)shell(command, out);
    ck_assert_msg(out->len >= 3, "curl printed: %s", out->data != NULL ? out->data : "nothing");
    return atoi(out->data + out->len - 3);
}

/* identity, path, status, part of the body */
static const struct {
    const char *identity, *path;
    int status;
    const char *part;
} CASES[] = {
    { "", "/healthz", 200, "ok" },
    { "", "/progress", 403, "this page needs a client certificate of the job" },
    { "", "/none", 404, "the pages are: /healthz /progress /workers" },
    { "worker-0", "/progress", 200, "\"step\": 7" },
    { "ps-1", "/progress", 200, "\"step\": 7" },
    { "operator", "/progress", 200, "\"step\": 7" },
    { "chief-0", "/workers", 200, "\"step\": 7" },
    { "ps-1", "/workers", 403, "ps-1 may not read this page" },
    { "operator", "/workers", 403, "operator may not read this page" },
    { "old", "/progress", 403, "expired" },
    { "stranger", "/progress", 403, "certificate" },
};
START_TEST(members_are_served_and_others_are_refused_with_a_reason)
{
    AUTO_FINI(buf) answer = BUF_INIT;
    int status = get(CASES[_i].identity, CASES[_i].path, &answer);
    ck_assert_msg(status == CASES[_i].status, "%s", answer.data);
    ck_assert_msg(strstr(answer.data, CASES[_i].part) != NULL, "%s", answer.data);
    ck_assert_uint_eq(http_server_refused(server), status == 403);
}
END_TEST

START_TEST(plain_http_and_older_tls_are_refused)
{
    AUTO_FINI(buf) plain = BUF_INIT, old = BUF_INIT, new = BUF_INIT;
    ck_assert_int_ne(shell("curl -s --max-time 50 http://127.0.0.1:$PORT/healthz", &plain), 0);
    ck_assert_uint_eq(plain.len, 0);
    ck_assert_int_ne(shell("openssl s_client -tls1_2 -connect 127.0.0.1:$PORT </dev/null", &old), 0);
    ck_assert_msg(strstr(old.data, "no peer certificate available") != NULL, "%s", old.data);
    ck_assert_int_eq(shell("openssl s_client -tls1_3 -groups P-256 -connect 127.0.0.1:$PORT </dev/null", &new), 0);
    ck_assert_msg(strstr(new.data, "TLSv1.3") != NULL, "%s", new.data);
    ck_assert_msg(strstr(new.data, "Server Temp Key: ECDH, prime256v1") != NULL, "%s", new.data);
}
END_TEST

/* ---- a new certificate ---- */

static atomic_bool enough;
static atomic_int served, failed;

static void load(void *user UNUSED)
{
    while (!atomic_load(&enough)) {
        AUTO_FINI(buf) answer = BUF_INIT;
        int status = get("worker-0", "/progress", &answer);
        atomic_fetch_add(status == 200 ? &served : &failed, 1);
        if (status != 200)
            fprintf(stderr, "answer: %s\n", answer.data);
    }
}

/* The certificate that a new connection gets, in PEM. */
static void served_certificate(struct buf *out)
{
    buf_clear(out);
    ck_assert_int_eq(shell("openssl s_client -connect 127.0.0.1:$PORT </dev/null 2>/dev/null | openssl x509", out), 0);
}

static bool serves_another(const char *before)
{
    AUTO_FINI(buf) text = BUF_INIT;
    served_certificate(&text);
    return strcmp(text.data, before) != 0;
}

START_TEST(a_new_certificate_is_served_and_no_request_fails)
{
    struct thread threads[LOAD_THREADS] = { 0 };
    struct err e = { 0 };
    for (size_t i = 0; i < LOAD_THREADS; i++)
        ck_ok_e(thread_start(&threads[i], "load", load, NULL, &e));
    for (int i = 0; i < RELOADS; i++) {
        AUTO_FINI(buf) before = BUF_INIT;
        served_certificate(&before);
        write_identity("chief-0", authority, ROLE_CHIEF, 0, now());
        ck_wait(serves_another(before.data));
    }
    atomic_store(&enough, true);
    for (size_t i = 0; i < LOAD_THREADS; i++)
        thread_join(&threads[i]);
    ck_assert_int_gt(atomic_load(&served), 0);
    ck_assert_int_eq(atomic_load(&failed), 0);
}
END_TEST

/* The CAs change while the operator's master key does: a client of the new CA is served as soon as ca.crt has it. */
START_TEST(a_new_authority_is_accepted)
{
    AUTO(ca) *second = NULL;
    AUTO_FINI(leaf) leaf = { 0 };
    struct err e = { 0 };
    auto_free char *own = path_join(folder, "chief-0");
    ck_ok_e(ca_new("local", "u-1", now(), &second, &e));
    write_identity("worker-0", second, ROLE_WORKER, 0, now());
    AUTO_FINI(buf) refused = BUF_INIT;
    ck_assert_int_eq(get("worker-0", "/progress", &refused), 403);
    auto_free char *both = xasprintf("%s%s", ca_pem(authority), ca_pem(second));
    ck_ok_e(ca_issue(authority, ROLE_CHIEF, 0, now(), DAY, &leaf, &e));
    ck_ok_e(tls_dir_write(own, both, &leaf, &e));
    AUTO_FINI(buf) answer = BUF_INIT;
    ck_wait((buf_clear(&answer), get("worker-0", "/progress", &answer)) == 200);
}
END_TEST

static bool is_served_and_read(int watch)
{
    AUTO_FINI(buf) answer = BUF_INIT;
    ck_assert_int_eq(get("worker-0", "/progress", &answer), 200);
    return poll(&(struct pollfd){ .fd = watch, .events = POLLIN }, 1, 0) == 1;
}

START_TEST(a_folder_that_became_unusable_changes_nothing)
{
    auto_free char *path = xasprintf("%s/chief-0/tls.key", folder);
    struct err e = { 0 };
    ck_ok_e(file_write(path, "no key", 6, &e));
    auto_close int fd = inotify_init1(IN_CLOEXEC);
    ck_assert_int_ge(inotify_add_watch(fd, path, IN_CLOSE_NOWRITE), 0);
    ck_wait(is_served_and_read(fd));
    AUTO_FINI(buf) answer = BUF_INIT;
    ck_assert_int_eq(get("worker-0", "/progress", &answer), 200);
}
END_TEST

START_TEST(a_server_needs_a_usable_identity)
{
    struct err e = { 0 };
    struct http_server *other = NULL;
    auto_free char *expired = path_join(folder, "old"), *absent = path_join(folder, "absent");
    ck_assert_int_eq(http_server_start("127.0.0.1:0", expired, NULL, 0, &other, &e), -1);
    ck_assert_msg(e.code == ERR_INPUT && strstr(e.msg, "expired") != NULL, "%s", e.msg);
    ck_assert_int_eq(http_server_start("127.0.0.1:0", absent, NULL, 0, &other, &e), -1);
    ck_assert_msg(strstr(e.msg, "absent/ca.crt") != NULL, "%s", e.msg);
}
END_TEST

/* ---- handshakes that do not end ---- */

static int connect_to_server(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)http_server_port(server)),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

START_TEST(unfinished_handshakes_do_not_keep_others_out)
{
    static const char HELLO[] = "\x16\x03\x01\x02"; /* the start of a record */
    int slow[2 * CONNECTIONS_MAX];
    char c;
    for (size_t i = 0; i < COUNT_OF(slow); i++) {
        slow[i] = connect_to_server();
        (void)send(slow[i], HELLO, i % 2 == 0 ? 0 : sizeof(HELLO) - 1, MSG_NOSIGNAL);
    }
    AUTO_FINI(buf) answer = BUF_INIT;
    ck_assert_int_eq(get("worker-0", "/progress", &answer), 200);
    ck_assert_int_le(recv(slow[0], &c, 1, 0), 0); /* the oldest one was closed */
    for (size_t i = 0; i < COUNT_OF(slow); i++)
        close(slow[i]);
}
END_TEST

/* Instead of libc's, for libmicrohttpd: counts the calls of the server's thread that begin to wait for long, with
 * nothing to do on any descriptor. A loop that spins never makes one, whatever the time is. */
static atomic_int long_waits;

__attribute__((visibility("default"))) int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    static const struct timespec none = { 0 };
    const struct timespec t = { .tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L };
    int ready = ppoll(fds, n, &none, NULL);
    if (ready != 0)
        return ready;
    if (timeout_ms < 0 || timeout_ms >= LONG_MS)
        atomic_fetch_add(&long_waits, 1);
    return ppoll(fds, n, timeout_ms < 0 ? NULL : &t, NULL);
}

/* While clients leave their handshake unfinished the server waits: it must not spend the processor's time. */
START_TEST(an_unfinished_handshake_costs_no_processor_time)
{
    static const char START[] = "\x16\x03\x01\x02\x00\x01\x00";
    auto_close int fd = connect_to_server();
    ck_assert_int_eq(send(fd, START, sizeof(START) - 1, MSG_NOSIGNAL), sizeof(START) - 1);
    AUTO_FINI(buf) answer = BUF_INIT;
    ck_assert_int_eq(get("worker-0", "/progress", &answer), 200); /* so the bytes above were read */
    int before = atomic_load(&long_waits);
    ck_assert_int_eq(get("worker-0", "/progress", &answer), 200); /* wakes it: it waits anew after this one */
    ck_wait(atomic_load(&long_waits) > before);
    char c;
    ck_assert_int_eq(recv(fd, &c, 1, MSG_DONTWAIT), -1); /* the connection is still there */
    ck_assert_int_eq(errno, EAGAIN);
}
END_TEST

/* A client that is never idle: a byte of its first record from time to time. */
START_TEST(a_handshake_has_a_deadline)
{
    auto_close int fd = connect_to_server();
    static const char RECORD[] = "\x16\x03\x01\x02\x00";
    ck_assert_int_eq(send(fd, RECORD, sizeof(RECORD) - 1, MSG_NOSIGNAL), sizeof(RECORD) - 1);
    ck_wait((poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 200), send(fd, "\x01", 1, MSG_NOSIGNAL)) != 1);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("http_tls");
    TCase *t = tcase_create("http_tls");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, start, stop);
    tcase_add_loop_test(t, members_are_served_and_others_are_refused_with_a_reason, 0, COUNT_OF(CASES));
    tcase_add_test(t, plain_http_and_older_tls_are_refused);
    tcase_add_test(t, a_new_certificate_is_served_and_no_request_fails);
    tcase_add_test(t, a_new_authority_is_accepted);
    tcase_add_test(t, a_folder_that_became_unusable_changes_nothing);
    tcase_add_test(t, a_server_needs_a_usable_identity);
    tcase_add_test(t, unfinished_handshakes_do_not_keep_others_out);
    tcase_add_test(t, an_unfinished_handshake_costs_no_processor_time);
    tcase_add_test(t, a_handshake_has_a_deadline);
    suite_add_tcase(s, t);
    return s;
}
