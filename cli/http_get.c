/* One HTTP GET to a replica on loopback, without blocking: the launcher polls /progress in its event loop. Each
 * request has a deadline, and a reply has a maximum size. */
#include "http_get.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/str.h"

enum { ANSWER_MAX = 64 << 10 };

static void hang_up(struct http_get *g)
{
    tls_client_free(TAKE(g->tls));
    fd_close(g->fd);
    fd_close(g->kept);
    g->fd = g->kept = -1;
}

static enum http_get_result connect_to(struct http_get *g, int port, const struct http_get_tls *tls)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct err e = { .msg = "" };
    int yes = 1;

    hang_up(g);
    g->port = port;
    g->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (g->fd < 0)
        return HTTP_GET_FAILED;
    setsockopt(g->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)); /* the request follows the end of a handshake */
    if ((connect(g->fd, (const struct sockaddr *)&to, sizeof(to)) == 0 || errno == EINPROGRESS) &&
        (tls == NULL || tls_client_new(tls->dir, tls->role, tls->index, g->fd, &g->tls, &e) == 0))
        return HTTP_GET_PENDING;
    hang_up(g);
    return HTTP_GET_FAILED;
}

enum http_get_result http_get_start(struct http_get *g, int port, const struct http_get_tls *tls, const char *path,
                                    int64_t now, int64_t timeout_ms)
{
    buf_clear(&g->answer);
    g->sent = g->complete = false;
    g->deadline = now + timeout_ms;
    str_fmt(g->path, sizeof(g->path), "%s", path);
    if (g->kept < 0 || g->port != port)
        return connect_to(g, port, tls);
    g->fd = g->kept;
    g->kept = -1;
    return HTTP_GET_PENDING;
}

struct pollfd http_get_poll(const struct http_get *g)
{
    short events = g->sent ? POLLIN : POLLOUT;
    return (struct pollfd){ .fd = g->fd, .events = g->tls != NULL ? tls_client_events(g->tls, events) : events };
}

/* The request is smaller than any socket buffer: it is sent completely, or the connection has failed. TLS sends it
 * after its handshake, which takes several calls. */
static enum http_get_result send_request(struct http_get *g)
{
    char request[160];
    str_fmt(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n",
            g->path);
    size_t n = strlen(request);
    ssize_t sent = g->tls != NULL ? tls_client_write(g->tls, request, n) : send(g->fd, request, n, MSG_NOSIGNAL);
    g->sent = sent == (ssize_t)n;
    return g->sent || (g->tls != NULL && errno == EAGAIN) ? HTTP_GET_PENDING : HTTP_GET_FAILED;
}

static enum http_get_result receive(struct http_get *g)
{
    for (;;) {
        char part[4096];
        ssize_t n = g->tls != NULL ? tls_client_read(g->tls, part, sizeof(part)) : read(g->fd, part, sizeof(part));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? HTTP_GET_PENDING : HTTP_GET_FAILED;
        if (n == 0)
            return HTTP_GET_DONE;
        buf_add(&g->answer, part, (size_t)n);
        if (g->answer.len > ANSWER_MAX)
            return HTTP_GET_FAILED;
        g->complete = http_get_complete(g->answer.data, g->answer.len);
        if (g->complete)
            return HTTP_GET_DONE;
    }
}

bool http_get_complete(const char *answer, size_t n)
{
    static const char LENGTH[] = "\r\nContent-Length: ";
    const char *end = memmem(answer, n, "\r\n\r\n", 4);
    const char *at = end != NULL ? memmem(answer, (size_t)(end - answer), LENGTH, strlen(LENGTH)) : NULL;
    size_t body = 0;

    if (at == NULL)
        return false;
    for (at += strlen(LENGTH); *at >= '0' && *at <= '9' && body <= ANSWER_MAX; at++)
        body = 10 * body + (size_t)(*at - '0');
    return *at == '\r' && n - (size_t)(end + 4 - answer) >= body;
}

const char *http_get_body(const char *answer, size_t n, size_t *ret_size)
{
    static const char OK[] = "HTTP/1.x 200";
    const char *end = n >= sizeof(OK) ? memmem(answer, n, "\r\n\r\n", 4) : NULL;
    if (end == NULL || memcmp(answer, OK, 7) != 0 || memcmp(answer + 8, OK + 8, 4) != 0)
        return NULL;
    *ret_size = n - (size_t)(end + 4 - answer);
    return end + 4;
}

enum http_get_result http_get_step(struct http_get *g, int64_t now, const char **ret_body, size_t *ret_size)
{
    struct pollfd p = http_get_poll(g);
    enum http_get_result result = HTTP_GET_PENDING;

    if (g->fd < 0)
        return HTTP_GET_FAILED;
    if (poll(&p, 1, 0) > 0)
        result = g->sent ? receive(g) : send_request(g);
    if (result == HTTP_GET_DONE) {
        *ret_body = http_get_body(g->answer.data, g->answer.len, ret_size);
        result = *ret_body != NULL ? HTTP_GET_DONE : HTTP_GET_FAILED;
    } else if (result == HTTP_GET_PENDING && now >= g->deadline) {
        result = HTTP_GET_FAILED;
    }
    if (result == HTTP_GET_DONE && g->complete) {
        g->kept = g->fd;
        g->fd = -1;
    } else if (result != HTTP_GET_PENDING) {
        hang_up(g);
    }
    return result;
}

void http_get_fini(struct http_get *g)
{
    hang_up(g);
    buf_fini(&g->answer);
}
