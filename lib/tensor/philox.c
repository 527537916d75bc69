/* Philox 4x32-10 in vector lanes: the same numbers as base/rng.h, many at once. */
#include "tensor/philox.h"

#include "tensor/kernel.h"

/* The rounds of base/rng.c for LANES consecutive counters side by side; x[w][lane] is word w of a block. */
enum { LANES = 32, ROUNDS = 10, WORDS = 4 * LANES };

static inline void blocks(const struct rng *r, uint32_t first, uint32_t x[4][LANES])
{
    uint32_t k0 = r->key[0], k1 = r->key[1];
    for (uint32_t i = 0; i < LANES; i++) {
        x[0][i] = first + i;
        x[1][i] = r->counter[1];
        x[2][i] = r->counter[2];
        x[3][i] = r->counter[3];
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LANES; i++) {
            uint64_t p0 = (uint64_t)0xD2511F53U * x[0][i], p1 = (uint64_t)0xCD9E8D57U * x[2][i];
            x[0][i] = (uint32_t)(p1 >> 32) ^ x[1][i] ^ k0;
            x[2][i] = (uint32_t)(p0 >> 32) ^ x[3][i] ^ k1;
            x[1][i] = (uint32_t)p1;
            x[3][i] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
}

/* Draws first*4 .. first*4 + WORDS - 1, in order. */
static KERNEL void fill_words(const struct rng *r, uint32_t first, uint32_t *restrict out)
{
    uint32_t x[4][LANES];
    blocks(r, first, x);
    for (int i = 0; i < LANES; i++) {
        for (int w = 0; w < 4; w++)
            out[4 * i + w] = x[w][i];
    }
}

static KERNEL void threshold(const uint32_t *restrict draw, uint32_t limit, float keep, float *restrict y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = draw[i] >= limit ? keep : 0.0F;
}

void philox_mask(const struct rng *r, double rate, float keep, float *y, size_t n)
{
    uint32_t limit = (uint32_t)(rate * 0x1p32), first = r->counter[0];
    for (size_t i = 0; i < n; i += WORDS, first += LANES) {
        uint32_t draw[WORDS];
        fill_words(r, first, draw);
        threshold(draw, limit, keep, y + i, n - i < WORDS ? n - i : WORDS);
    }
}
