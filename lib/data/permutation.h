/* permutation - a keyed permutation of [0, n), ready for many draws. Inside of lib/data.
 *
 * A Feistel network over the smallest number of bits that holds n - 1 (two halves, the low one not the smaller
 * one), and cycle walking: an image >= n is permuted again, which keeps the bijection (Black, Rogaway,
 * "Ciphers with arbitrary finite domains", CT-RSA 2002). Fewer than two walks on average.
 * Not for adversaries: the round function is a mixing hash.
 */
#ifndef TRAINYARD_DATA_PERMUTATION_H
#define TRAINYARD_DATA_PERMUTATION_H

#include <stddef.h>
#include <stdint.h>

enum { PERMUTATION_ROUNDS = 6 };
struct permutation {
    uint64_t n;
    unsigned low_bits, high_bits; /* low_bits + high_bits bits hold n - 1; high_bits <= low_bits */
    uint64_t round[PERMUTATION_ROUNDS];
};
struct permutation permutation_of(int64_t n, uint64_t key); /* n >= 1 */
int64_t permutation_at(const struct permutation *p, int64_t i);
/* permutation_at of first, first + 1, ...: faster than one by one. */
void permutation_range(const struct permutation *p, int64_t first, size_t count, int64_t *ret);
int64_t permutation_inverse(const struct permutation *p, int64_t i); /* permutation_inverse(permutation_at(i)) == i */

#endif
