/* The order of records in an epoch, as a pure function of seed, epoch and position. Checkpoints depend on it: a change
 * needs a new SHUFFLE_VERSION. */
#include "data/epoch_order.h"

#include "base/mem.h"
#include "base/rng.h"

struct epoch_order epoch_order_of(int64_t n, bool random_access, bool shuffle, uint64_t seed)
{
    return (struct epoch_order){
        .n = n, .seed = seed, .shuffle = shuffle, .random_access = random_access, .epoch = -1, .window = -1
    };
}

static int64_t block_count(const struct epoch_order *o)
{
    return (o->n + ORDER_BLOCK - 1) / ORDER_BLOCK;
}

static uint64_t epoch_key(const struct epoch_order *o, int64_t epoch)
{
    return hash64_mix(hash64_mix(o->seed, RNG_SHUFFLE), (uint64_t)epoch);
}

static void enter_epoch(struct epoch_order *o, int64_t epoch)
{
    if (o->epoch == epoch)
        return;
    o->epoch = epoch;
    o->window = -1;
    if (o->random_access) {
        o->perm = permutation_of(o->n, epoch_key(o, epoch));
        return;
    }
    o->perm = permutation_of(block_count(o), epoch_key(o, epoch));
    o->short_at = permutation_inverse(&o->perm, block_count(o) - 1);
}

/* Position of the first record of the j-th permuted block. */
static int64_t block_first(const struct epoch_order *o, int64_t j)
{
    int64_t missing = block_count(o) * ORDER_BLOCK - o->n; /* what the last block is short of */
    return j * ORDER_BLOCK - (j > o->short_at ? missing : 0);
}

static int64_t block_at(const struct epoch_order *o, int64_t position)
{
    int64_t j = position / ORDER_BLOCK;
    /* After the short block every record is earlier, by less than one block. */
    return j + 1 < block_count(o) && block_first(o, j + 1) <= position ? j + 1 : j;
}

static void enter_window(struct epoch_order *o, int64_t window)
{
    if (o->window == window)
        return;
    int64_t end = MIN((window + 1) * ORDER_WINDOW, block_count(o));
    o->window = window;
    o->window_first = block_first(o, window * ORDER_WINDOW);
    o->within =
        permutation_of(block_first(o, end) - o->window_first, hash64_mix(epoch_key(o, o->epoch), (uint64_t)window + 1));
}

static int64_t windowed(struct epoch_order *o, int64_t position)
{
    enter_window(o, block_at(o, position) / ORDER_WINDOW);
    int64_t moved = o->window_first + permutation_at(&o->within, position - o->window_first);
    int64_t block = block_at(o, moved);
    return permutation_at(&o->perm, block) * ORDER_BLOCK + (moved - block_first(o, block));
}

void epoch_order_records(struct epoch_order *o, int64_t epoch, int64_t position, size_t count, int64_t *ret)
{
    if (!o->shuffle) {
        for (size_t i = 0; i < count; i++)
            ret[i] = position + (int64_t)i;
        return;
    }
    enter_epoch(o, epoch);
    if (o->random_access) {
        permutation_range(&o->perm, position, count, ret);
        return;
    }
    for (size_t i = 0; i < count; i++)
        ret[i] = windowed(o, position + (int64_t)i);
}
