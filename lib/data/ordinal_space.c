/* Sizes in the space of ordinals. The ledger and every loader compute them from the same five numbers, so that an
 * ordinal means the same examples in each process. */
#include "data/ordinal_space.h"

#include "base/mem.h"

size_t ordinal_space_rows(const struct ordinal_space *s)
{
    return (size_t)MIN(s->batch_size, s->examples);
}

int64_t ordinal_space_batches(const struct ordinal_space *s)
{
    return s->examples / s->batch_size + (s->examples % s->batch_size != 0);
}
