/* http_pages - the HTTP pages of a replica: /metrics /healthz /readyz /progress. They are served before the data is
 * opened, which may take minutes: until http_pages_ready() /progress has the state "starting", and /readyz the reason.
 * Which page is on which port: net/replica_http.h. */
#ifndef TRAINYARD_WORKER_HTTP_PAGES_H
#define TRAINYARD_WORKER_HTTP_PAGES_H

#include "chief/chief.h"
#include "replica.h"
#include "rpc/rpc.h"
#include "train/session.h"

struct collective;
struct http_pages;
/* Replica and stats are borrowed. *ret NULL when no port is wanted; the other calls accept that. */
MUST_USE int http_pages_open(const struct replica *r, struct session_stats *stats, struct http_pages **ret,
                             struct err *e);
/* What the replica waits for before it is ready. text: static. */
void http_pages_set_wait_reason(struct http_pages *s, const char *text);
void http_pages_ready(struct http_pages *s);
/* From now on /progress and /metrics are those of the chief (borrowed). NULL: it has ended, and /progress answers 503.
 */
void http_pages_set_chief(struct http_pages *s, struct chief *chief);
/* From now on /readyz also checks that this server (borrowed) answers. NULL: no longer. */
void http_pages_set_server(struct http_pages *s, const struct rpc_server *server);
/* From now on /metrics says how many workers share memory with this member (borrowed). NULL: no longer. */
void http_pages_set_collective(struct http_pages *s, struct collective *collective);
void http_pages_free(struct http_pages *s);
DEFINE_AUTO(http_pages, http_pages_free);

#endif
