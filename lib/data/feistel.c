#include "base/rng.h"
#include "data/dataset.h"
#include "data/perm.h"

struct perm perm_of(int64_t n, uint64_t key)
{
    struct perm p = { .n = (uint64_t)n };
    unsigned bits = n > 1 ? 64 - (unsigned)__builtin_clzll((uint64_t)n - 1) : 0;
    p.high_bits = bits / 2;
    p.low_bits = bits - p.high_bits;
    for (unsigned i = 0; i < PERM_ROUNDS; i++)
        p.round[i] = hash64_mix(key, i);
    return p;
}

/* The upper bits of a product depend on all bits below them; two products reach every bit. */
static inline uint64_t mix(uint64_t v, uint64_t key)
{
    v = (v ^ key) * 0x9E3779B97F4A7C15ULL;
    v = (v ^ v >> 32) * 0xD6E8FEB86659FD93ULL;
    return v >> 32;
}

/* Even rounds change the low half by the high one, odd rounds the other way. Each is its own inverse. */
static inline uint64_t apply_round(const struct perm *p, unsigned round, uint64_t v)
{
    uint64_t low_mask = ((uint64_t)1 << p->low_bits) - 1, high_mask = ((uint64_t)1 << p->high_bits) - 1;
    uint64_t low = v & low_mask, high = v >> p->low_bits;
    if (round % 2 == 0)
        low ^= mix(high, p->round[round]) & low_mask;
    else
        high ^= mix(low, p->round[round]) & high_mask;
    return high << p->low_bits | low;
}

int64_t perm_at(const struct perm *p, int64_t i)
{
    uint64_t v = (uint64_t)i;
    do {
        for (unsigned round = 0; round < PERM_ROUNDS; round++)
            v = apply_round(p, round, v);
    } while (v >= p->n);
    return (int64_t)v;
}

int64_t perm_inverse(const struct perm *p, int64_t i)
{
    uint64_t v = (uint64_t)i;
    do {
        for (unsigned round = PERM_ROUNDS; round-- > 0;)
            v = apply_round(p, round, v);
    } while (v >= p->n);
    return (int64_t)v;
}

int64_t feistel(int64_t i, int64_t n, uint64_t key)
{
    struct perm p = perm_of(n, key);
    return perm_at(&p, i);
}
