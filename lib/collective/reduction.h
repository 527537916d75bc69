/* reduction - the gradients of one step in one view on their way to sums: an owner adds those of its chunks, in the
 * order of their ordinals, and takes the sums of all other chunks from their owners.
 *
 * A gradient that comes before its turn waits, in a copy or in memory that is lent. Those of a reduction that is not
 * open wait all: the step before is not applied yet. Reference counted, because answers that are being sent read from
 * it. Thread-safe: each chunk has a lock of its own.
 */
#ifndef TRAINYARD_COLLECTIVE_REDUCTION_H
#define TRAINYARD_COLLECTIVE_REDUCTION_H

#include "collective/view.h"
#include "shard/groups.h"
#include "shard/layout.h"
#include "shard/ordinal_set.h"
#include "shard/shard.h"

/* What all steps of a view have in common; reference counted. */
struct reduction_frame {
    const struct layout *layout; /* borrowed */
    const float *values;         /* the vector, borrowed: of the step that is open */
    struct groups groups;
    uint64_t generation, view;
    size_t self; /* index of this member */
    struct chunk_range *chunks;
    size_t nchunks, own_first, own_end; /* chunks that this member adds: half-open */
    _Atomic int refs;
};
struct reduction_frame *reduction_frame_new(const struct layout *layout, const float *values,
                                            const struct groups *groups, size_t members, size_t self);
bool reduction_frame_owns(const struct reduction_frame *f, size_t chunk); /* this member adds it */
struct reduction_frame *reduction_frame_ref(struct reduction_frame *f);
void reduction_frame_unref(struct reduction_frame *f);

struct reduction;
/* at: the first ordinal of a group. ERR_NOMEM. */
MUST_USE int reduction_new(struct reduction_frame *f, int64_t at, struct reduction **ret, struct err *e);
struct reduction *reduction_ref(struct reduction *r);
void reduction_unref(struct reduction *r); /* NULL: nothing */

int64_t reduction_at(const struct reduction *r);
int64_t reduction_end(const struct reduction *r);
const struct reduction_frame *reduction_frame(const struct reduction *r);
/* The values are those of the step: from now on gradients are added. */
void reduction_open(struct reduction *r);
/* The gradient of an ordinal in a chunk of this member; bytes: of exactly the chunk's floats. A gradient that is there
 * already changes nothing. *ret_complete: with it the chunk has its sum. ERR_NOMEM, ERR_INPUT. */
MUST_USE int reduction_add(struct reduction *r, size_t chunk, int64_t ordinal, struct bytes_in *bytes,
                           bool *ret_complete, struct err *e);
/* The same from memory that stays as it is until reduction_keep, which adds or copies what is not in the sum by then:
 * one alone waits, since two are added with one pass over the sum. After ERR_NOMEM of reduction_keep the reduction must
 * not be used any more. */
MUST_USE int reduction_lend(struct reduction *r, size_t chunk, int64_t ordinal, struct one_range floats,
                            bool *ret_complete, struct err *e);
MUST_USE int reduction_keep(struct reduction *r, size_t chunk, int64_t ordinal, struct err *e);
/* With CHUNK_OF_ALL: the other member has the gradient of this ordinal, and has begun the step. Else nothing. */
void reduction_delivered(struct reduction *r, int64_t ordinal);
void reduction_delivered_all(struct reduction *r); /* of all ordinals: it has made the update */
/* The floats of a chunk of another member, to be written; then reduction_set_sum. One thread does this. */
float *reduction_sum_of(struct reduction *r, size_t chunk);
void reduction_set_sum(struct reduction *r, size_t chunk);
bool reduction_has_sum(struct reduction *r, size_t chunk);
bool reduction_fetched(const struct reduction *r); /* the sums of all chunks of other members */
/* The sums of all chunks; with CHUNK_OF_ALL the other member has all gradients, too: it is not left behind. */
bool reduction_complete(const struct reduction *r);
/* The sums of all chunks, once it is complete. */
const float *reduction_sums(const struct reduction *r);
/* The ordinals whose gradients all chunks of this member have. */
void reduction_received(struct reduction *r, struct ordinal_set *ret);
/* Adds "the gradients of batches 4, 6 and 3 more" to out: those that chunks of this member lack. */
void reduction_missing(struct reduction *r, struct buf *out);

#endif
