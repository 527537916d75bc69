/* training_state - the JSON inside a checkpoint (tensor `_trainyard/state`) that holds everything for which
 * TensorFlow has no tensor: versions and applied sets of the segments, the ordinal space, metric sums.
 * docs/formats.md lists the keys. Pure. Unsigned 64-bit values are hexadecimal strings, because JSON integers are
 * signed. */
#ifndef TRAINYARD_CHIEF_TRAINING_STATE_H
#define TRAINYARD_CHIEF_TRAINING_STATE_H

#include "data/dataset.h"
#include "shard/layout.h"
#include "shard/ordinal_set.h"
#include "tensor/arithmetic.h"

#define TRAINING_STATE_TENSOR "_trainyard/state"

/* New references. */
json_t *training_state_new(const struct ordinal_space *space, const struct layout *l, const char *job_uid,
                           uint64_t generation);
json_t *training_state_segment(int64_t version, const struct ordinal_set *applied);

MUST_USE int training_state_read_segment(const struct node *state, size_t i, int64_t *ret_version,
                                         struct ordinal_set *ret_applied, struct err *e);
uint64_t training_state_generation(const struct node *state); /* 0 when it has none */
/* The space it was made in; false when it names none that this release has. */
bool training_state_space(const struct node *state, struct ordinal_space *ret);
/* tensor/arithmetic.h; borrowed. "": it has none, as in asynchronous training. ERR_INPUT: not of this release. */
MUST_USE int training_state_arithmetic(const struct node *state, const char **ret, struct err *e);
/* ERR_INPUT naming the field that changed since, with both values. */
MUST_USE int training_state_check_space(const struct node *state, const struct ordinal_space *space,
                                        const char *checkpoint, struct err *e);
MUST_USE int training_state_check_layout(const struct node *state, const struct layout *l, const char *checkpoint,
                                         struct err *e);

#endif
