/* status - the HTTP side of a replica: /metrics /healthz /readyz /progress. */
#ifndef TRAINYARD_WORKER_STATUS_H
#define TRAINYARD_WORKER_STATUS_H

#include "replica.h"
#include "train/chief.h"
#include "train/session.h"

struct status;
/* chief may be NULL. *ret NULL when --http-port is 0. */
MUST_USE int status_open(const struct replica *r, struct chief *chief, struct session_stats *stats, struct status **ret,
                         struct err *e);
void status_free(struct status *s);
DEFINE_AUTO(status, status_free)

#endif
