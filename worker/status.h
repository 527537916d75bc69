/* status - the HTTP side of a replica: /metrics /healthz /readyz /progress. It is there before the data is opened,
 * which may take minutes: until status_ready() it says "starting", and /readyz what is being done. */
#ifndef TRAINYARD_WORKER_STATUS_H
#define TRAINYARD_WORKER_STATUS_H

#include "chief/chief.h"
#include "replica.h"
#include "rpc/rpc.h"
#include "train/session.h"

struct status;
/* Replica and stats are borrowed. *ret NULL when --http-port is 0; the other calls take that. */
MUST_USE int status_open(const struct replica *r, struct session_stats *stats, struct status **ret, struct err *e);
/* What it waits for now, before it is ready. text: static. */
void status_awaits(struct status *s, const char *text);
void status_ready(struct status *s);
/* From now on /progress and /metrics are the chief's (borrowed); NULL: it goes, and /progress with it. */
void status_lead(struct status *s, struct chief *chief);
/* From now on /readyz asks the server's own port, too (borrowed); NULL: it goes. */
void status_serves(struct status *s, const struct rpc_server *server);
void status_free(struct status *s);
DEFINE_AUTO(status, status_free);

#endif
