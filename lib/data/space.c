#include "data/dataset.h"

size_t ordinal_space_rows(const struct ordinal_space *s)
{
    return (size_t)MIN(s->batch_size, s->examples);
}

int64_t ordinal_space_batches(const struct ordinal_space *s)
{
    return s->examples / s->batch_size + (s->examples % s->batch_size != 0);
}
