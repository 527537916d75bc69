/* libmicrohttpd with one thread, GET and HEAD, and small answers from memory. Signals stay with the main thread. A
 * route for members is answered only after the client's certificate was checked. */
#include "net/http_server.h"

#include <microhttpd.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "net/address.h"
#include "net/connection_limit.h"
#include "net/http_tls.h"
#include "net/registry.h"

enum {
    DAEMON_CONNECTIONS_MAX = 4 * CONNECTIONS_MAX, /* that are not closed yet; connection_limit.h keeps them fewer */
    IDLE_SECONDS = 10,
    CONNECTION_BYTES = 8 << 10, /* for the request's line and headers */
    STACK_BYTES = 256 << 10,
};

struct http_server {
    struct MHD_Daemon *daemon;
    struct http_server_tls *tls; /* NULL: plain HTTP */
    uint16_t port;
    atomic_uint_fast64_t refused;
    struct connection_limit connections;
    size_t nroutes;
    struct http_route routes[];
};

static int fd_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    return i != NULL ? i->connect_fd : -1;
}

/* The GnuTLS session; NULL without TLS. */
static void *session_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return i != NULL ? i->tls_session : NULL;
}

/* libmicrohttpd reports a new connection before its TLS handshake. */
static void on_connection(void *user, struct MHD_Connection *c, void **state, enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = user;
    int fd = fd_of(c);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED)
        http_tls_detach(*state);
    else if (s->tls != NULL)
        *state = http_tls_attach(s->tls, session_of(c));
    if (fd < 0)
        return;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        connection_limit_leave(&s->connections, fd);
        return;
    }
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    connection_limit_come(&s->connections, fd, i != NULL ? i->client_addr : NULL, clock_ms());
}

static enum MHD_Result respond(struct MHD_Connection *c, int status, struct buf *body, const char *type)
{
    size_t n = body->len;
    struct MHD_Response *r = MHD_create_response_from_buffer(n, buf_detach(body), MHD_RESPMEM_MUST_FREE);
    if (r == NULL)
        return MHD_NO;
    MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    enum MHD_Result rc = MHD_queue_response(c, (unsigned)status, r);
    MHD_destroy_response(r);
    return rc;
}

static int not_found(const struct http_server *s, struct buf *body)
{
    buf_str(body, "not found; the pages are:");
    for (size_t i = 0; i < s->nroutes; i++)
        buf_printf(body, " %s", s->routes[i].path);
    buf_char(body, '\n');
    return MHD_HTTP_NOT_FOUND;
}

static int check_member(struct http_server *s, const struct http_route *r, struct MHD_Connection *c, struct err *e)
{
    struct identity peer;
    char name[IDENTITY_NAME_SIZE];
    if (r->members == 0)
        return 0;
    if (s->tls == NULL)
        return err_set(e, ERR_REFUSED, "this page is served over TLS only");
    if (http_tls_peer(s->tls, session_of(c), &peer, e) < 0)
        return -1;
    if ((r->members & IDENTITY_BIT(peer.role)) == 0)
        return err_set(e, ERR_REFUSED, "%s may not read this page", identity_name(&peer, name));
    return 0;
}

static int run_route(struct http_server *s, struct MHD_Connection *c, const struct http_route *r, struct buf *body,
                     const char **type)
{
    struct err e = { .msg = "" };
    if (check_member(s, r, c, &e) == 0)
        return r->handle(r->user, body, type);
    atomic_fetch_add(&s->refused, 1);
    log_debug("HTTP server: refused %s: %s", r->path, e.msg);
    buf_printf(body, "%s\n", e.msg);
    return MHD_HTTP_FORBIDDEN;
}

static int find_route(struct http_server *s, struct MHD_Connection *c, const char *path, struct buf *body,
                      const char **type)
{
    for (size_t i = 0; i < s->nroutes; i++)
        if (strcmp(s->routes[i].path, path) == 0)
            return run_route(s, c, &s->routes[i], body, type);
    return not_found(s, body);
}

/* libmicrohttpd calls this once when the headers are there, and again for (and after) a body, which is ignored. */
static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *path, const char *method,
                                  const char *version UNUSED, const char *data UNUSED, size_t *ndata, void **state)
{
    static char seen;
    if (*state == NULL) {
        *state = &seen;
        return MHD_YES;
    }
    if (*ndata > 0) {
        *ndata = 0;
        return MHD_YES;
    }
    AUTO_FINI(buf) body = BUF_INIT;
    const char *type = "text/plain; charset=utf-8";
    int status;
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        status = MHD_HTTP_METHOD_NOT_ALLOWED;
        buf_str(&body, "only GET and HEAD\n");
    } else {
        status = find_route(user, c, path, &body, &type);
    }
    connection_limit_served(&((struct http_server *)user)->connections, fd_of(c), clock_ms());
    return respond(c, status, &body, type);
}

/* Handshakes that fail are among the library's messages. */
static __attribute__((format(printf, 2, 0))) void log_message(void *user UNUSED, const char *fmt, va_list ap)
{
    char text[256];
    if (!log_enabled(LOG_DEBUG) || vsnprintf(text, sizeof(text), fmt, ap) < 0)
        return;
    text[strcspn(text, "\n")] = '\0';
    log_debug("HTTP server: %s", text);
}

/* Signals belong to main: the thread inherits a mask that blocks them all. */
static struct MHD_Daemon *start_daemon(struct http_server *s, int fd)
{
    /* With epoll the library spins while a handshake waits for the client. */
    unsigned loop = s->tls != NULL ? MHD_USE_POLL_INTERNAL_THREAD | MHD_USE_TLS : MHD_USE_EPOLL_INTERNAL_THREAD;
    enum MHD_OPTION tls_or_end = s->tls != NULL ? MHD_OPTION_HTTPS_PRIORITIES : MHD_OPTION_END;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    struct MHD_Daemon *d =
        MHD_start_daemon(loop | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER,
                         log_message, NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                         (unsigned)DAEMON_CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION,
                         on_connection, s, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, tls_or_end,
                         HTTP_TLS_PRIORITY, MHD_OPTION_HTTPS_CERT_CALLBACK, http_tls_no_certificate(), MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return d;
}

int http_server_start(const char *address, const char *tls_dir, const struct http_route *routes, size_t nroutes,
                      struct http_server **ret, struct err *e)
{
    AUTO(http_server) *s = xcalloc(1, sizeof(*s) + nroutes * sizeof(*routes));
    auto_close int fd = -1;
    s->nroutes = nroutes;
    if (connection_limit_init(&s->connections, e) < 0)
        return -1;
    for (size_t i = 0; i < nroutes; i++)
        s->routes[i] = routes[i];
    if (tls_dir != NULL && http_tls_new(tls_dir, &s->tls, e) < 0)
        return -1;
    if (address_listen(address, &fd, &s->port, e) < 0)
        return err_wrap(e, "HTTP server");
    s->daemon = start_daemon(s, fd);
    if (s->daemon == NULL)
        return err_set(e, ERR_NOMEM, "HTTP server: cannot start on %s", address);
    TAKE_FD(fd); /* the daemon closes it */
    *ret = TAKE(s);
    return 0;
}

int http_server_port(const struct http_server *s)
{
    return s->port;
}

uint64_t http_server_refused(const struct http_server *s)
{
    return atomic_load(&s->refused);
}

void http_server_free(struct http_server *s)
{
    if (s == NULL)
        return;
    if (s->daemon != NULL)
        MHD_stop_daemon(s->daemon);
    http_tls_free(s->tls);
    connection_limit_fini(&s->connections);
    free(s);
}

static int show_registry(void *user, struct buf *body, const char **content_type)
{
    registry_emit(user, body);
    *content_type = REGISTRY_CONTENT_TYPE;
    return MHD_HTTP_OK;
}

struct http_route http_metrics_route(struct registry *r)
{
    return (struct http_route){ .path = "/metrics", .handle = show_registry, .user = r };
}

static int show_alive(void *user, struct buf *body, const char **content_type)
{
    (void)user, (void)content_type;
    buf_str(body, "ok\n");
    return MHD_HTTP_OK;
}

struct http_route http_alive_route(void)
{
    return (struct http_route){ .path = "/healthz", .handle = show_alive };
}
