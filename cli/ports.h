/* ports - free ports for local replicas. */
#ifndef TRAINYARD_CLI_PORTS_H
#define TRAINYARD_CLI_PORTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* n different free ports, outside the range of ephemeral ports (where an outgoing connection could take one before the
 * replica does). `seed` determines where the search starts. */
MUST_USE int ports_find(size_t n, uint64_t seed, int *ret, struct err *e);

#endif
