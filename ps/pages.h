/* pages - what a ps serves over HTTP: /metrics, /healthz (200 while the process runs), /readyz and /progress (JSON).
 * /readyz is 503 once it terminates or the job has finished, or when its gRPC port does not answer. Which page is on
 * which port: net/replica_http.h. */
#ifndef TRAINYARD_PS_PAGES_H
#define TRAINYARD_PS_PAGES_H

#include "job/replica_options.h"
#include "params/shard_service.h"
#include "rpc/rpc.h"

struct pages;
/* address: of the gRPC port. *ret NULL: no port is wanted. Name, shard and service are borrowed. */
MUST_USE int pages_open(const struct replica_options *o, const char *address, const char *name, struct shard *shard,
                        struct shard_service *service, const struct rpc_server *server, struct pages **ret,
                        struct err *e);
void pages_close(struct pages *p);
DEFINE_AUTO(pages, pages_close);

#endif
