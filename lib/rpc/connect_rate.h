/* connect_rate - part of rpc.h: how many connections a client may open within a second.
 *
 * A connection costs a server some hundred microseconds, and one with TLS some milliseconds, before the client has
 * shown who it is. A client that connects in a loop would take all processor time of a server of two cores.
 *
 * Clients are told apart by their addresses: IPv4 whole, of IPv6 the first 64 bits, because a client has all addresses
 * of such a network. Those without an address are not limited. Only the addresses that connected last are remembered,
 * so the memory is fixed.
 *
 * Not thread-safe. Does not block, does not allocate.
 */
#ifndef TRAINYARD_RPC_CONNECT_RATE_H
#define TRAINYARD_RPC_CONNECT_RATE_H

#include <stdbool.h>
#include <stdint.h>

#include "rpc/peer_address.h"

enum {
    CONNECT_WINDOW_MS = 1000,
    CONNECT_MAX = 500, /* connections of an address within a window. A host of 64 workers opens some 130 at a start */
    CONNECT_CUT_OFF = 50, /* a connection that was ended for its frames counts as so many more */
    CONNECT_SETS = 128,
    CONNECT_WAYS = 8, /* addresses of a set */
};

/* All zero is a valid start. */
struct connect_rate {
    struct connect_client {
        uint64_t address; /* 0: free */
        int64_t window_ms;
        uint32_t count;
    } client[CONNECT_SETS][CONNECT_WAYS];
};

/* The client has connected, with weight 1, or was cut off for what it sent, with CONNECT_CUT_OFF. False: it has used up
 * what it may; a connection should be closed. */
bool connect_rate_add(struct connect_rate *r, const struct peer_address *client, uint32_t weight, int64_t now_ms);

#endif
