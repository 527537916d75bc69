/* SipHash-2-4 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012). All arithmetic is modulo 2^64, and
 * words are read as little-endian, on every machine, so that a hash may be kept in files. */
#include "codec/siphash.h"

struct sip {
    uint64_t v[4];
};

static uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void sip_round(struct sip *s)
{
    s->v[0] += s->v[1];
    s->v[2] += s->v[3];
    s->v[1] = rotate(s->v[1], 13) ^ s->v[0];
    s->v[3] = rotate(s->v[3], 16) ^ s->v[2];
    s->v[0] = rotate(s->v[0], 32);
    s->v[2] += s->v[1];
    s->v[0] += s->v[3];
    s->v[1] = rotate(s->v[1], 17) ^ s->v[2];
    s->v[3] = rotate(s->v[3], 21) ^ s->v[0];
    s->v[2] = rotate(s->v[2], 32);
}

static void sip_word(struct sip *s, uint64_t word)
{
    s->v[3] ^= word;
    sip_round(s);
    sip_round(s);
    s->v[0] ^= word;
}

/* Up to eight bytes. */
static uint64_t load(const unsigned char *p, size_t n)
{
    uint64_t ret = 0;
    for (size_t i = 0; i < n; i++)
        ret |= (uint64_t)p[i] << 8 * i;
    return ret;
}

uint64_t siphash(const uint64_t key[2], const void *data, size_t n)
{
    static const unsigned char NOTHING[1] = { 0 };
    const unsigned char *p = n > 0 ? data : NOTHING;
    struct sip s = { { key[0] ^ 0x736f6d6570736575U, key[1] ^ 0x646f72616e646f6dU, key[0] ^ 0x6c7967656e657261U,
                       key[1] ^ 0x7465646279746573U } };
    size_t whole = n - n % 8;
    for (size_t i = 0; i < whole; i += 8)
        sip_word(&s, load(p + i, 8));
    sip_word(&s, (uint64_t)n << 56 | load(p + whole, n - whole));
    s.v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(&s);
    return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}
