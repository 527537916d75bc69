/* ports - ports for local replicas, reserved while the launcher lives. */
#ifndef TRAINYARD_CLI_PORTS_H
#define TRAINYARD_CLI_PORTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct ports {
    size_t n;
    int *number;
    int *held; /* the sockets that keep them */
};

/* Reserves n different free ports, outside the range of ephemeral ports (where an outgoing connection could take one
 * before the replica does). `seed` determines where the search starts. Until ports_fini() a server that sets
 * SO_REUSEADDR, as replicas do, may listen on a port, also again after it was restarted; no other launcher reserves it.
 */
MUST_USE int ports_reserve(struct ports *p, size_t n, uint64_t seed, struct err *e);
void ports_fini(struct ports *p);
DEFINE_AUTO_FINI(ports, ports_fini);

#endif
