/* Connections are counted within windows of a second, in a table of fixed size. */
#include "rpc/connect_rate.h"

#include "base/mem.h"
#include "base/rng.h"

/* Not 0. */
static uint64_t connect_key(const struct peer_address *client)
{
    return hash64(client->address, sizeof(client->address) / 2, client->family) | 1;
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

bool connect_rate_add(struct connect_rate *r, const struct peer_address *client, uint32_t weight, int64_t now_ms)
{
    if (client->family == AF_UNSPEC)
        return true;
    uint64_t address = connect_key(client);
    struct connect_client *c = connect_find(r->client[address >> 32 & (CONNECT_SETS - 1)], address);
    if (c->address != address || now_ms - c->window_ms >= CONNECT_WINDOW_MS)
        *c = (struct connect_client){ .address = address, .window_ms = now_ms };
    c->count = MIN(c->count + weight, CONNECT_MAX + 1);
    return c->count <= CONNECT_MAX;
}
