/* rng - random numbers as a pure function of their name (design invariant 2).
 *
 * Philox4x32-10 (Salmon et al., SC'11): 128-bit counter, 64-bit key -> 128 random bits. A draw of
 * training is named by (seed, stream, a, b, element), so that any process at any time draws the same.
 * Known answers: counter 0, key 0 -> 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
 */
#ifndef TRAINYARD_BASE_RNG_H
#define TRAINYARD_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct philox {
    uint32_t v[4];
};
struct philox philox4x32(const uint32_t counter[4], const uint32_t key[2]);

/* The purpose of a stream of draws; part of the key, so that streams never overlap. */
enum rng_stream { RNG_INIT = 1, RNG_SHUFFLE = 2, RNG_DROPOUT = 3, RNG_AUGMENT = 4, RNG_TEST = 9 };

/* rng - a cursor over the draws named (seed, stream, a, b); element 0, 1, 2, ... in order. */
struct rng {
    uint32_t key[2], counter[4];
    struct philox block;
    unsigned used;
};
struct rng rng_at(uint64_t seed, enum rng_stream stream, uint64_t a, uint32_t b);
uint32_t rng_u32(struct rng *r);
uint64_t rng_u64(struct rng *r);
float rng_uniform(struct rng *r);              /* [0, 1), 24 bits */
double rng_normal(struct rng *r);              /* mean 0, standard deviation 1 (Box-Muller) */
uint64_t rng_below(struct rng *r, uint64_t n); /* [0, n), unbiased */

/* 64-bit mixing hash of bytes (fingerprints, maps); not for adversaries. Stable across releases. */
uint64_t hash64(const void *data, size_t n, uint64_t seed);
uint64_t hash64_mix(uint64_t a, uint64_t b);

/* A number that distinguishes one process from all others of its name. Of a process that starts later, by the clock of
 * its host, it is higher; in one process each is higher than the one before. It is not 0, and fits a signed number.
 * Thread-safe. */
uint64_t random_incarnation(void);

#endif
