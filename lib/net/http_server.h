/* http_server - a small HTTP/1.1 server for the pages of a replica that people and probes read: /metrics, /healthz,
 * /readyz, /progress.
 *
 * It has its own threads and answers GET and HEAD. Unknown paths get 404 with the list of valid ones. Not for data:
 * answers are built in memory, and one slow handler delays the next. It has 64 connections at most, 16 of one client,
 * and 10 s for a request: slow clients are disconnected, so that a probe is always served (net/connection_limit.h).
 *
 * With the folder of an identity it speaks TLS 1.3 alone, and the 10 s include the handshake. A changed certificate is
 * served from the next connection on, without a restart (net/http_tls.h).
 */
#ifndef TRAINYARD_NET_HTTP_SERVER_H
#define TRAINYARD_NET_HTTP_SERVER_H

#include "base/buf.h"
#include "identity/identity.h"

struct http_route {
    const char *path; /* "/metrics" */
    /* Fills the body and returns the HTTP status (200, 503, ...). *content_type is "text/plain; charset=utf-8"
     * unless changed; what it points to must stay valid. Runs in the server's thread, never two at once. */
    int (*handle)(void *user, struct buf *body, const char **content_type);
    void *user;
    /* 0: open to everyone. Else IDENTITY_BIT()s: the client must prove with its certificate that it is a member of the
     * job with one of these roles. Others get 403, and so does everyone where the server has no TLS. */
    unsigned members;
};
#define HTTP_ANY_MEMBER (IDENTITY_BIT(IDENTITY_ROLES) - 1)

struct http_server;
/* address "0.0.0.0:8080", "127.0.0.1:0" (any free port). Port in use: ERR_INPUT. tls_dir: the folder of the identity,
 * NULL for plain HTTP. Routes are copied; their paths and users must stay valid. */
MUST_USE int http_server_start(const char *address, const char *tls_dir, const struct http_route *routes,
                               size_t nroutes, struct http_server **ret, struct err *e);
int http_server_port(const struct http_server *s);
uint64_t http_server_refused(const struct http_server *s); /* requests that were answered with 403 */
void http_server_free(struct http_server *s);              /* closes all connections, joins the thread */
DEFINE_AUTO(http_server, http_server_free);

/* The route that serves a registry (its user). */
struct registry;
struct http_route http_metrics_route(struct registry *r);
/* /healthz: "ok" as long as the process can answer. */
struct http_route http_alive_route(void);

#endif
