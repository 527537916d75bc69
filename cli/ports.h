/* ports - free ports for replicas of this machine. */
#ifndef TRAINYARD_CLI_PORTS_H
#define TRAINYARD_CLI_PORTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* n different ports that nobody uses now, outside of the range the kernel gives to outgoing connections (where one of
 * those could take it before the replica does). `seed` says where the search begins. */
MUST_USE int ports_find(size_t n, uint64_t seed, int *ret, struct err *e);

#endif
