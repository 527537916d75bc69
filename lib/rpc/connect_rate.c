/* Connections are counted within windows of a second, in a table of fixed size. */
#include "rpc/connect_rate.h"

#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

/* Not 0. IPv4 in an IPv6 socket is one of IPv4. */
static uint64_t connect_address(const struct sockaddr_in6 *client)
{
    struct sockaddr_in v4;
    uint64_t network;
    memcpy(&v4, client, sizeof(v4));
    memcpy(&network, &client->sin6_addr, sizeof(network));
    if (client->sin6_family == AF_INET6 && !IN6_IS_ADDR_V4MAPPED(&client->sin6_addr))
        return hash64(&network, sizeof(network), AF_INET6) | 1;
    if (client->sin6_family == AF_INET6)
        memcpy(&v4.sin_addr, &client->sin6_addr.s6_addr[12], sizeof(v4.sin_addr));
    return hash64(&v4.sin_addr, sizeof(v4.sin_addr), AF_INET) | 1;
}

/* The entry of this address, or one to reuse: that whose window is the oldest. */
static struct connect_client *connect_find(struct connect_client set[CONNECT_WAYS], uint64_t address)
{
    struct connect_client *oldest = &set[0];
    for (int i = 0; i < CONNECT_WAYS; i++) {
        if (set[i].address == address)
            return &set[i];
        if (set[i].address == 0 || (oldest->address != 0 && set[i].window_ms < oldest->window_ms))
            oldest = &set[i];
    }
    return oldest;
}

bool connect_rate_add(struct connect_rate *r, const struct sockaddr_in6 *client, uint32_t weight, int64_t now_ms)
{
    if (client->sin6_family != AF_INET && client->sin6_family != AF_INET6)
        return true;
    uint64_t address = connect_address(client);
    struct connect_client *c = connect_find(r->client[address >> 32 & (CONNECT_SETS - 1)], address);
    if (c->address != address || now_ms - c->window_ms >= CONNECT_WINDOW_MS)
        *c = (struct connect_client){ .address = address, .window_ms = now_ms };
    c->count = MIN(c->count + weight, CONNECT_MAX + 1);
    return c->count <= CONNECT_MAX;
}
