/* float_reader - walks bulk bytes as floats, wherever the ranges are cut. */
#ifndef TRAINYARD_SHARD_FLOAT_READER_H
#define TRAINYARD_SHARD_FLOAT_READER_H

#include "shard/shard.h"

struct float_reader {
    struct bytes_in *in;
    const unsigned char *p;
    size_t left;
    unsigned char stash[sizeof(float)]; /* a float cut by the end of a range */
};
/* The next contiguous floats, at most want (> 0): their number and address (any alignment; valid until the next
 * call). 0: the bytes ended too soon. */
size_t floats_next(struct float_reader *r, size_t want, const void **ret);
MUST_USE bool floats_skip(struct float_reader *r, size_t n);
MUST_USE bool floats_copy(struct float_reader *r, float *out, size_t n);

#endif
