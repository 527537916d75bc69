/* Philox4x32-10: a draw is computed from its name alone, without state, so that any worker can repeat it in any
 * order. */
#include "base/rng.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

/* Constants and round of Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3" (SC'11). */
enum { PHILOX_ROUNDS = 10 };
static const uint32_t MULTIPLIER_0 = 0xD2511F53, MULTIPLIER_1 = 0xCD9E8D57;
static const uint32_t WEYL_0 = 0x9E3779B9, WEYL_1 = 0xBB67AE85;

struct philox philox4x32(const uint32_t counter[4], const uint32_t key[2])
{
    uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];

    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)MULTIPLIER_0 * x0, p1 = (uint64_t)MULTIPLIER_1 * x2;
        x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)p1;
        x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)p0;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    return (struct philox){ .v = { x0, x1, x2, x3 } };
}

/* The key mixes seed and stream; the counter is (element block, b, a), so that no two names share a draw
 * under one key. */
struct rng rng_at(uint64_t seed, enum rng_stream stream, uint64_t a, uint32_t b)
{
    uint64_t key = hash64_mix(seed, (uint64_t)stream);
    return (struct rng){ .key = { (uint32_t)key, (uint32_t)(key >> 32) },
                         .counter = { 0, b, (uint32_t)a, (uint32_t)(a >> 32) },
                         .used = 4 };
}

uint32_t rng_u32(struct rng *r)
{
    if (r->used == 4) {
        r->block = philox4x32(r->counter, r->key);
        r->counter[0]++;
        r->used = 0;
    }
    return r->block.v[r->used++];
}

uint64_t rng_u64(struct rng *r)
{
    uint64_t low = rng_u32(r);
    return low | (uint64_t)rng_u32(r) << 32;
}

float rng_uniform(struct rng *r)
{
    return (float)(rng_u32(r) >> 8) * 0x1p-24F;
}

/* Box-Muller; 1 - u is in (0, 1], so the logarithm is finite. Always two draws: no state between calls. */
double rng_normal(struct rng *r)
{
    double u = 1.0 - (double)rng_u32(r) * 0x1p-32;
    double v = (double)rng_u32(r) * 0x1p-32;
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

/* Draws below the largest multiple of n only, so that every value is equally likely. */
uint64_t rng_below(struct rng *r, uint64_t n)
{
    if (n <= 1)
        return 0;
    uint64_t excess = (UINT64_MAX % n + 1) % n; /* 2^64 mod n */
    uint64_t v = rng_u64(r);
    while (v > UINT64_MAX - excess)
        v = rng_u64(r);
    return v % n;
}

static uint64_t hash_finalize(uint64_t h) /* the 64-bit finalizer of MurmurHash3 */
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdULL;
    h ^= h >> 33;
    h *= 0xc4ceb9fe1a85ec53ULL;
    h ^= h >> 33;
    return h;
}

uint64_t hash64_mix(uint64_t a, uint64_t b)
{
    return hash_finalize(a * 0x9E3779B97F4A7C15ULL + hash_finalize(b + 0x632BE59BD9B4E019ULL));
}

uint64_t hash64(const void *data, size_t n, uint64_t seed)
{
    const unsigned char *p = data;
    uint64_t h = hash64_mix(seed, n);

    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word = 0;
        for (int i = 0; i < 8; i++) /* little endian on every machine; compilers make one load of it */
            word |= (uint64_t)p[i] << (8 * i);
        h = hash64_mix(h, word);
    }
    uint64_t tail = 0;
    for (size_t i = 0; i < n; i++)
        tail |= (uint64_t)p[i] << (8 * i);
    return n > 0 ? hash64_mix(h, tail) : h;
}

static _Atomic uint64_t last_incarnation;

uint64_t random_incarnation(void)
{
    enum { RANDOM_BITS = 22 };
    const double since_2020 = MAX(clock_wall() - 1577836800.0, 0.0);
    uint64_t v = 0;
    if (getrandom(&v, sizeof(v), 0) != sizeof(v))
        v = (uint64_t)clock_ns() ^ (uint64_t)getpid() << 32;
    v = (uint64_t)(since_2020 * 1000) << RANDOM_BITS | (v & ((1U << RANDOM_BITS) - 1));
    uint64_t last = atomic_load(&last_incarnation), next;
    do
        next = MAX(v, last + 1);
    while (!atomic_compare_exchange_weak(&last_incarnation, &last, next));
    return next;
}
