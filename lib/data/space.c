#include "base/rng.h"
#include "data/dataset.h"

uint64_t ordinal_space_hash(const struct ordinal_space *s)
{
    uint64_t h = hash64_mix(SHUFFLE_VERSION, s->fingerprint);
    h = hash64_mix(h, s->seed);
    h = hash64_mix(h, (uint64_t)s->examples);
    h = hash64_mix(h, (uint64_t)s->batch_size);
    return hash64_mix(h, s->shuffle ? 1 : 0);
}

int64_t ordinal_space_batches(const struct ordinal_space *s)
{
    return s->examples / s->batch_size + (s->examples % s->batch_size != 0);
}
