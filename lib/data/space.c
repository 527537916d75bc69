#include "data/dataset.h"

int64_t ordinal_space_batches(const struct ordinal_space *s)
{
    return s->examples / s->batch_size + (s->examples % s->batch_size != 0);
}
