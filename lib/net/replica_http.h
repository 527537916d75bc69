/* replica_http - the HTTP ports of a replica, and which page is on which port:
 *
 *     page                  without an identity     with one (--tls-dir)
 *     /healthz, /readyz     --http-port             --http-port
 *     /metrics              --http-port             --http-port; with --metrics-tls only --https-port
 *     /progress             --http-port             --https-port
 *
 * Pages on the HTTPS port are for members of the job: others get 403. /metrics has trainyard_insecure, 1 with
 * --insecure, and /progress then has "insecure": true.
 */
#ifndef TRAINYARD_NET_REPLICA_HTTP_H
#define TRAINYARD_NET_REPLICA_HTTP_H

#include "job/replica_options.h"
#include "net/http_server.h"
#include "net/registry.h"

struct replica_pages {
    struct registry *registry;         /* gets trainyard_insecure and trainyard_http_refused_total */
    struct http_route ready, progress; /* path and handler of /readyz and /progress */
};

struct replica_http;
/* address: that of the gRPC port; both ports are of the same host. *ret NULL: neither port is wanted. What pages
 * points to must stay valid. */
MUST_USE int replica_http_start(const struct replica_options *o, const char *address, const struct replica_pages *pages,
                                struct replica_http **ret, struct err *e);
void replica_http_free(struct replica_http *h); /* before the registry */
DEFINE_AUTO(replica_http, replica_http_free);

#endif
