/* pages - what a ps serves over HTTP: /metrics, /healthz (200 while the process runs), /readyz and /progress (JSON).
 * /readyz is 503 once it terminates or the job has finished, or when its gRPC port does not answer. */
#ifndef TRAINYARD_PS_PAGES_H
#define TRAINYARD_PS_PAGES_H

#include "params/shard_service.h"
#include "rpc/rpc.h"

struct pages;
/* address "host:port"; name, shard and service are borrowed. */
MUST_USE int pages_open(const char *address, const char *name, struct shard *shard, struct shard_service *service,
                        const struct rpc_server *server, struct pages **ret, struct err *e);
void pages_close(struct pages *p);
DEFINE_AUTO(pages, pages_close);

#endif
