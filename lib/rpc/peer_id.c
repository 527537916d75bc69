/* The client of a connection: its address without the port, except on loopback. */
#include "rpc/peer_id.h"

#include <string.h>

#include "base/rng.h"
#include "base/str.h"

static bool is_loopback(const char *peer)
{
    return str_starts(peer, "ipv4:127.") || str_starts(peer, "ipv6:%5B::1%5D:") || str_starts(peer, "ipv6:[::1]:");
}

uint64_t rpc_peer_id(const char *peer)
{
    const char *port = is_loopback(peer) ? NULL : strrchr(peer, ':');
    uint64_t hash = hash64(peer, port != NULL ? (size_t)(port - peer) : strlen(peer), 0);
    return hash != 0 ? hash : 1;
}
