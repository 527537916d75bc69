/* epoch_order - the record at each position of an epoch. Inside of lib/data.
 *
 * Not shuffled: position p is record p. Shuffled, with random access: one keyed permutation of all records. Shuffled,
 * without: records form blocks of ORDER_BLOCK; the blocks are permuted; ORDER_WINDOW blocks that are neighbours form a
 * window, and the records of a window are permuted among themselves. So an epoch reads the files in long runs, a window
 * at a time, and data of one window or less is permuted as a whole. The short last block is permuted like all others.
 *
 * The answer is a pure function of (n, random access, seed, epoch, position); the struct only caches computed keys. One
 * thread.
 */
#ifndef TRAINYARD_DATA_EPOCH_ORDER_H
#define TRAINYARD_DATA_EPOCH_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "data/permutation.h"

enum { ORDER_BLOCK = 1024, ORDER_WINDOW = 16 };

struct epoch_order {
    int64_t n;
    uint64_t seed;
    bool shuffle, random_access;
    int64_t epoch;           /* the one that `perm` is for; -1: none */
    struct permutation perm; /* of records, or of blocks */
    int64_t short_at;        /* position of the short last block among the permuted ones */
    int64_t window;          /* the one that `within` is for; -1: none */
    int64_t window_first;    /* position of its first record */
    struct permutation within;
};
struct epoch_order epoch_order_of(int64_t n, bool random_access, bool shuffle, uint64_t seed);
/* Records at positions [position, position + count) of the epoch; all of them below n. */
void epoch_order_records(struct epoch_order *o, int64_t epoch, int64_t position, size_t count, int64_t *ret);

#endif
