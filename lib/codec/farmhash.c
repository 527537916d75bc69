/* FarmHash Fingerprint64: one function for each class of lengths. All arithmetic is modulo 2^64, and words are read as
 * little-endian, on every machine, so that a hash may be kept in files. */
#include "codec/farmhash.h"

enum { BLOCK = 64 };

/* Primes between 2^63 and 2^64, and the multiplier with which two hashes become one. */
#define K0   0xc3a5c85c97cb3127U
#define K1   0xb492b66fbe98f273U
#define K2   0x9ae16a3b2f90404fU
#define SEED 81U

struct pair {
    uint64_t a, b;
};

static uint64_t load32(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24;
}

static uint64_t load64(const unsigned char *p)
{
    return load32(p) | load32(p + 4) << 32;
}

static uint64_t rotate(uint64_t v, int bits)
{
    return v >> bits | v << (64 - bits);
}

static uint64_t fold(uint64_t v)
{
    return v ^ v >> 47;
}

static uint64_t join(uint64_t u, uint64_t v, uint64_t multiplier)
{
    uint64_t a = fold((u ^ v) * multiplier);
    return fold((v ^ a) * multiplier) * multiplier;
}

static uint64_t hash_to_16(const unsigned char *p, size_t n)
{
    uint64_t multiplier = K2 + n * 2;
    if (n >= 8) {
        uint64_t a = load64(p) + K2, b = load64(p + n - 8);
        return join(rotate(b, 37) * multiplier + a, (rotate(a, 25) + b) * multiplier, multiplier);
    }
    if (n >= 4)
        return join(n + (load32(p) << 3), load32(p + n - 4), multiplier);
    if (n == 0)
        return K2;
    uint64_t y = (uint64_t)p[0] + ((uint64_t)p[n / 2] << 8), z = n + ((uint64_t)p[n - 1] << 2);
    return fold((y * K2) ^ (z * K0)) * K2;
}

static uint64_t hash_to_32(const unsigned char *p, size_t n)
{
    uint64_t multiplier = K2 + n * 2;
    uint64_t a = load64(p) * K1, b = load64(p + 8), c = load64(p + n - 8) * multiplier, d = load64(p + n - 16) * K2;
    return join(rotate(a + b, 43) + rotate(c, 30) + d, a + rotate(b + K2, 18) + c, multiplier);
}

static uint64_t hash_to_64(const unsigned char *p, size_t n)
{
    uint64_t multiplier = K2 + n * 2;
    uint64_t a = load64(p) * K2, b = load64(p + 8), c = load64(p + n - 8) * multiplier, d = load64(p + n - 16) * K2;
    uint64_t y = rotate(a + b, 43) + rotate(c, 30) + d;
    uint64_t z = join(y, a + rotate(b + K2, 18) + c, multiplier);
    uint64_t e = load64(p + 16) * multiplier, f = load64(p + 24);
    uint64_t g = (y + load64(p + n - 32)) * multiplier, h = (z + load64(p + n - 24)) * multiplier;
    return join(rotate(e + f, 43) + rotate(g, 30) + h, e + rotate(f + a, 18) + g, multiplier);
}

/* ---- more than 64 bytes ---- */

struct state {
    uint64_t x, y, z;
    struct pair v, w;
};

/* 32 bytes and two seeds. */
static struct pair hash_32(const unsigned char *p, uint64_t a, uint64_t b)
{
    uint64_t last = load64(p + 24);
    a += load64(p);
    b = rotate(b + a + last, 21);
    uint64_t first = a;
    a += load64(p + 8) + load64(p + 16);
    return (struct pair){ a + last, b + rotate(a, 44) + first };
}

/* Takes 64 bytes. `scale`: 1, and 9 for the last ones. */
static void take_block(struct state *s, const unsigned char *p, uint64_t multiplier, uint64_t scale)
{
    uint64_t x = rotate(s->x + s->y + s->v.a + load64(p + 8), 37) * multiplier;
    uint64_t y = rotate(s->y + s->v.b + load64(p + 48), 42) * multiplier;
    x ^= s->w.b * scale;
    y += s->v.a * scale + load64(p + 40);
    uint64_t z = rotate(s->z + s->w.a, 33) * multiplier;
    s->v = hash_32(p, s->v.b * multiplier, x + s->w.a);
    s->w = hash_32(p + 32, z + s->w.b, y + load64(p + 16));
    s->x = z; /* the two change places */
    s->y = y;
    s->z = x;
}

static uint64_t hash_long(const unsigned char *p, size_t n)
{
    struct state s = { .y = SEED * K1 + 113 };
    s.z = fold(s.y * K2 + 113) * K2;
    s.x = SEED * K2 + load64(p);
    for (size_t i = 0; i < (n - 1) / BLOCK; i++)
        take_block(&s, p + i * BLOCK, K1, 1);
    uint64_t multiplier = K1 + ((s.z & 0xff) << 1);
    s.w.a += (n - 1) % BLOCK;
    s.v.a += s.w.a;
    s.w.a += s.v.a;
    take_block(&s, p + n - BLOCK, multiplier, 9);
    return join(join(s.v.a, s.w.a, multiplier) + fold(s.y) * K0 + s.z, join(s.v.b, s.w.b, multiplier) + s.x,
                multiplier);
}

uint64_t farmhash_fingerprint64(const void *data, size_t n)
{
    return n <= 16      ? hash_to_16(data, n)
           : n <= 32    ? hash_to_32(data, n)
           : n <= BLOCK ? hash_to_64(data, n)
                        : hash_long(data, n);
}
