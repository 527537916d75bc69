/* test_server - stands in for TensorFlow in tests of TFJobs: it says what it was given and ends as it is told.
 *
 *     GET /             ok
 *     GET /tfconfig     the value of TF_CONFIG, to the byte
 *     GET /env          the whole environment as a JSON object
 *     GET /exit?exitCode=N    answers, then exits with N (0 without it)
 *
 * One thread, one request at a time, each bounded by IO_SECONDS; statically linked, so that its image is this file
 * alone.
 */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/opt.h"
#include "base/stop.h"
#include "codec/json.h"

enum { PORT = 2222, PORTS_MAX = 8, REQUEST_MAX = 4096, IO_SECONDS = 2, RUNNING = -1 };

struct options {
    int64_t port, exit_after, exit_code;
    struct strlist also;
    bool ignore_term;
};

struct server {
    const struct options *options;
    struct pollfd fds[PORTS_MAX + 1]; /* the ports, then stop_fd() */
    nfds_t nports;
    int64_t end_ms; /* 0: none */
    int exit_code;  /* RUNNING until an answer says otherwise */
};

static int parse_options(int argc, char **argv, struct options *o, enum opt_result *ret, struct err *e)
{
    const struct opt_program program = { .name = "test_server",
                                         .usage = "[flags]",
                                         .about = "Tells what a replica was given, and ends as it is told." };
    const struct opt opts[] = {
        OPT_INT("port", "TEST_PORT", "N", &o->port, 0, UINT16_MAX, "where to listen (2222; 0: any)"),
        OPT_LIST("also-port", "N", &o->also, "a further port; may be given several times"),
        OPT_INT("exit-after", "TEST_EXIT_AFTER", "SECONDS", &o->exit_after, 0, 1 << 20, "end after so long (0: never)"),
        OPT_INT("exit-code", "TEST_EXIT_CODE", "N", &o->exit_code, 0, UINT8_MAX, "... with this exit code (0)"),
        OPT_BOOL("ignore-term", &o->ignore_term, "stay when SIGTERM comes, until SIGKILL"),
        OPT_END
    };
    AUTO_FINI(strlist) args = { 0 };
    if (opt_parse(&program, opts, argc, argv, &args, ret, e) < 0)
        return -1;
    return args.n == 0 ? 0 : err_set(e, ERR_INPUT, "'%s' is not a flag", args.items[0]);
}

/* ---- listening ---- */

static int listen_on(struct server *s, int64_t port, struct err *e)
{
    struct sockaddr_in a = { .sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_ANY),
                             .sin_port = htons((uint16_t)port) };
    socklen_t n = sizeof(a);
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) < 0 ||
        bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, SOMAXCONN) < 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) < 0) {
        int result = err_errno(e, ERR_INPUT, "port %lld", (long long)port);
        if (fd >= 0)
            close(fd);
        return result;
    }
    s->fds[s->nports++] = (struct pollfd){ .fd = fd, .events = POLLIN };
    log_info("listening on port %d", ntohs(a.sin_port));
    return 0;
}

static int open_server(struct server *s, struct err *e)
{
    const struct options *o = s->options;
    if (o->also.n >= PORTS_MAX)
        return err_set(e, ERR_INPUT, "%zu further ports, at most %d", o->also.n, PORTS_MAX - 1);
    if (listen_on(s, o->port, e) < 0)
        return -1;
    for (size_t i = 0; i < o->also.n; i++) {
        char *end;
        long port = strtol(o->also.items[i], &end, 10);
        if (*end != '\0' || end == o->also.items[i] || port < 0 || port > UINT16_MAX)
            return err_set(e, ERR_INPUT, "--also-port '%s' is not a port", o->also.items[i]);
        if (listen_on(s, port, e) < 0)
            return -1;
    }
    s->fds[s->nports] = (struct pollfd){ .fd = stop_fd(), .events = POLLIN };
    s->end_ms = o->exit_after > 0 ? clock_ms() + o->exit_after * 1000 : 0;
    return 0;
}

static void close_server(struct server *s)
{
    for (nfds_t i = 0; i < s->nports; i++)
        close(s->fds[i].fd);
}

/* ---- answers ---- */

static void show_env(struct buf *body)
{
    json_auto_t *all = json_object();
    for (char **v = environ; *v != NULL; v++) {
        const char *equals = strchr(*v, '=');
        if (equals == NULL)
            continue;
        auto_free char *name = strndup(*v, (size_t)(equals - *v));
        json_object_set_new(all, name, json_string(equals + 1));
    }
    json_emit(all, body);
}

/* The HTTP status; an answer that ends the server sets its exit code. */
static int answer(struct server *s, const char *target, struct buf *body)
{
    static const char EXIT[] = "/exit", CODE[] = "exitCode=";
    if (str_eq(target, "/")) {
        buf_str(body, "ok\n");
    } else if (str_eq(target, "/tfconfig")) {
        const char *value = getenv("TF_CONFIG");
        buf_str(body, value != NULL ? value : "");
    } else if (str_eq(target, "/env")) {
        show_env(body);
    } else if (str_starts(target, EXIT) && (target[strlen(EXIT)] == '\0' || target[strlen(EXIT)] == '?')) {
        const char *code = strstr(target, CODE);
        s->exit_code = code != NULL ? (int)(strtol(code + strlen(CODE), NULL, 10) & UINT8_MAX) : 0;
        buf_printf(body, "exiting with %d\n", s->exit_code);
    } else {
        buf_str(body, "there are /, /tfconfig, /env and /exit?exitCode=N\n");
        return 404;
    }
    return 200;
}

/* Reads until the end of the header. -1: the peer is gone, too slow or too long. */
static int read_request(int fd, char *text, size_t size)
{
    size_t n = 0;
    while (n + 1 < size) {
        ssize_t got = recv(fd, text + n, size - 1 - n, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        n += (size_t)got;
        text[n] = '\0';
        if (strstr(text, "\r\n\r\n") != NULL)
            return 0;
    }
    return -1;
}

static void send_all(int fd, const struct buf *b)
{
    for (size_t n = 0; n < b->len;) {
        ssize_t sent = send(fd, b->data + n, b->len - n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return;
        n += (size_t)sent;
    }
}

static void serve(struct server *s, int fd)
{
    const struct timeval limit = { .tv_sec = IO_SECONDS };
    char request[REQUEST_MAX], target[REQUEST_MAX];
    AUTO_FINI(buf) body = BUF_INIT;
    AUTO_FINI(buf) reply = BUF_INIT;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (read_request(fd, request, sizeof(request)) < 0 || sscanf(request, "GET %4095s HTTP/", target) != 1)
        return;
    int status = answer(s, target, &body);
    log_info("GET %s: %d", target, status);
    buf_printf(&reply, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n", status,
               status == 200 ? "OK" : "Not Found", str_eq(target, "/env") ? "application/json" : "text/plain",
               body.len);
    buf_add(&reply, body.data, body.len);
    send_all(fd, &reply);
    shutdown(fd, SHUT_WR);
}

static void accept_one(struct server *s, int listening)
{
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    serve(s, fd);
    close(fd);
}

/* ---- the loop ---- */

static int wait_ms(const struct server *s, int64_t now_ms)
{
    return s->end_ms == 0 ? -1 : (int)MIN(MAX(s->end_ms - now_ms, 0), INT32_MAX);
}

static int run(struct server *s)
{
    while (s->exit_code == RUNNING) {
        bool minds_stop = !s->options->ignore_term;
        (void)poll(s->fds, s->nports + (minds_stop ? 1 : 0), wait_ms(s, clock_ms())); /* EINTR: look again */
        for (nfds_t i = 0; i < s->nports; i++)
            if ((s->fds[i].revents & POLLIN) != 0)
                accept_one(s, s->fds[i].fd);
        if (s->exit_code != RUNNING)
            break;
        if (minds_stop && stop_count() > 0)
            s->exit_code = EXIT_STOPPED;
        else if (s->end_ms != 0 && clock_ms() >= s->end_ms)
            s->exit_code = (int)s->options->exit_code;
    }
    log_info("exiting with %d", s->exit_code);
    return s->exit_code;
}

int main(int argc, char **argv)
{
    struct options o = { .port = PORT };
    struct server s = { .options = &o, .exit_code = RUNNING };
    enum opt_result parsed;
    struct err e = { .code = ERR_NONE };
    int result = 0;

    if (parse_options(argc, argv, &o, &parsed, &e) < 0 ||
        (parsed == OPT_OK && (stop_install(&e) < 0 || open_server(&s, &e) < 0))) {
        log_error("%s", e.msg);
        result = err_exit_code(&e);
    } else if (parsed == OPT_OK) {
        result = run(&s);
    }
    close_server(&s);
    strlist_fini(&o.also);
    return result;
}
