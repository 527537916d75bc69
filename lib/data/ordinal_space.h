/* ordinal_space - which batches a data set has: ordinal = epoch * batches per epoch + index. Pure. */
#ifndef TRAINYARD_DATA_ORDINAL_SPACE_H
#define TRAINYARD_DATA_ORDINAL_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The space of ordinals: everything that determines which examples an ordinal holds. */
struct ordinal_space {
    uint64_t fingerprint, seed;
    int64_t examples, batch_size;
    bool shuffle;
};
enum { SHUFFLE_VERSION = 1 };
size_t ordinal_space_rows(const struct ordinal_space *s);     /* examples of the largest batch */
int64_t ordinal_space_batches(const struct ordinal_space *s); /* per epoch: ceil(examples / batch_size) */

#endif
