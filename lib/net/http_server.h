/* http_server - a small HTTP/1.1 server for the pages of a replica that people and probes read: /metrics, /healthz,
 * /readyz, /progress.
 *
 * It has its own threads and answers GET and HEAD. Unknown paths get 404 with the list of valid ones. Not for data:
 * answers are built in memory, and one slow handler delays the next. It has 64 connections at most, 16 of one client,
 * and 10 s for a request: slow clients are disconnected, so that a probe is always served (net/connection_limit.h).
 */
#ifndef TRAINYARD_NET_HTTP_SERVER_H
#define TRAINYARD_NET_HTTP_SERVER_H

#include "base/buf.h"

struct http_route {
    const char *path; /* "/metrics" */
    /* Fills the body and returns the HTTP status (200, 503, ...). *content_type is "text/plain; charset=utf-8"
     * unless changed; what it points to must stay valid. Runs in the server's thread, never two at once. */
    int (*handle)(void *user, struct buf *body, const char **content_type);
    void *user;
};

struct http_server;
/* address "0.0.0.0:8080", "127.0.0.1:0" (any free port). Port in use: ERR_INPUT. Routes are copied; their paths and
 * users must stay valid. */
MUST_USE int http_server_start(const char *address, const struct http_route *routes, size_t nroutes,
                               struct http_server **ret, struct err *e);
int http_server_port(const struct http_server *s);
void http_server_free(struct http_server *s); /* closes all connections, joins the thread */
DEFINE_AUTO(http_server, http_server_free);

/* The route that serves a registry (its user). */
struct registry;
struct http_route http_metrics_route(struct registry *r);
/* /healthz: "ok" as long as the process can answer. */
struct http_route http_alive_route(void);

#endif
