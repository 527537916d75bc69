/* A Feistel network with cycle walking. Permutations are part of the meaning of an ordinal, so their values may only
 * change together with SHUFFLE_VERSION. */
#include "data/permutation.h"
#include "base/rng.h"
#include "data/dataset.h"

struct permutation permutation_of(int64_t n, uint64_t key)
{
    struct permutation p = { .n = (uint64_t)n };
    unsigned bits = n > 1 ? 64 - (unsigned)__builtin_clzll((uint64_t)n - 1) : 0;
    p.high_bits = bits / 2;
    p.low_bits = bits - p.high_bits;
    for (unsigned i = 0; i < PERMUTATION_ROUNDS; i++)
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

/* Rounds change the low half by the high one, then the high half by the low one; each is its own inverse. */
static inline uint64_t forward(const struct permutation *p, uint64_t v)
{
    uint64_t low_mask = ((uint64_t)1 << p->low_bits) - 1, high_mask = ((uint64_t)1 << p->high_bits) - 1;
    uint64_t low = v & low_mask, high = v >> p->low_bits;
    for (unsigned i = 0; i < PERMUTATION_ROUNDS; i += 2) {
        low ^= mix(high, p->round[i]) & low_mask;
        high ^= mix(low, p->round[i + 1]) & high_mask;
    }
    return high << p->low_bits | low;
}

static inline uint64_t backward(const struct permutation *p, uint64_t v)
{
    uint64_t low_mask = ((uint64_t)1 << p->low_bits) - 1, high_mask = ((uint64_t)1 << p->high_bits) - 1;
    uint64_t low = v & low_mask, high = v >> p->low_bits;
    for (unsigned i = PERMUTATION_ROUNDS; i > 0; i -= 2) {
        high ^= mix(low, p->round[i - 1]) & high_mask;
        low ^= mix(high, p->round[i - 2]) & low_mask;
    }
    return high << p->low_bits | low;
}

int64_t permutation_at(const struct permutation *p, int64_t i)
{
    uint64_t v = forward(p, (uint64_t)i);
    while (v >= p->n)
        v = forward(p, v);
    return (int64_t)v;
}

int64_t permutation_inverse(const struct permutation *p, int64_t i)
{
    uint64_t v = backward(p, (uint64_t)i);
    while (v >= p->n)
        v = backward(p, v);
    return (int64_t)v;
}

void permutation_range(const struct permutation *p, int64_t first, size_t count, int64_t *ret)
{
    for (size_t i = 0; i < count; i++) /* without a branch: the processor works on several at once */
        ret[i] = (int64_t)forward(p, (uint64_t)first + i);
    for (size_t i = 0; i < count; i++)
        while ((uint64_t)ret[i] >= p->n)
            ret[i] = (int64_t)forward(p, (uint64_t)ret[i]);
}
