/* Arithmetic of ordinals within an epoch. */
#include "shard/groups.h"

#include "base/mem.h"

static const int64_t ORDINAL_LIMIT = INT64_MAX / 4; /* far below overflow */

struct groups groups_of(const struct ordinal_space *space, int64_t size)
{
    int64_t batches = ordinal_space_batches(space);
    return (struct groups){ .size = size,
                            .batches = batches,
                            .examples = space->batch_size,
                            .rest = space->examples - (batches - 1) * space->batch_size };
}

int groups_check(const struct groups *g, struct err *e)
{
    if (g->size < 1 || g->size > GROUP_MAX)
        return err_set(e, ERR_INPUT, "a group of %lld batches, must be 1 to %d", (long long)g->size, GROUP_MAX);
    if (g->batches < 1 || g->batches > ORDINAL_LIMIT || g->examples < 1 || g->examples > ORDINAL_LIMIT / GROUP_MAX ||
        g->rest < 1 || g->rest > g->examples)
        return err_set(e, ERR_INPUT, "an epoch of %lld batches of %lld examples, the last one of %lld",
                       (long long)g->batches, (long long)g->examples, (long long)g->rest);
    return 0;
}

bool groups_same(const struct groups *a, const struct groups *b)
{
    return a->size == b->size && a->batches == b->batches && a->examples == b->examples && a->rest == b->rest;
}

int64_t groups_first(const struct groups *g, int64_t ordinal)
{
    return ordinal - ordinal % g->batches % g->size;
}

int64_t groups_end(const struct groups *g, int64_t ordinal)
{
    int64_t epoch_end = ordinal - ordinal % g->batches + g->batches;
    return MIN(groups_first(g, ordinal) + g->size, epoch_end);
}

static int64_t groups_of_epoch(const struct groups *g)
{
    return (g->batches + g->size - 1) / g->size;
}

int64_t groups_below(const struct groups *g, int64_t ordinal)
{
    return ordinal / g->batches * groups_of_epoch(g) + ordinal % g->batches / g->size;
}

int64_t groups_ordinal(const struct groups *g, int64_t step)
{
    int64_t epoch = step / groups_of_epoch(g), index = step % groups_of_epoch(g);
    return epoch > ORDINAL_LIMIT / g->batches ? ORDINAL_LIMIT : epoch * g->batches + index * g->size;
}

float groups_weight(const struct groups *g, int64_t ordinal)
{
    int64_t first = groups_first(g, ordinal), end = groups_end(g, ordinal), n = end - first;
    bool last = end % g->batches == 0; /* the group has the last batch of the epoch */
    int64_t examples = n * g->examples - (last ? g->examples - g->rest : 0);
    int64_t own = last && ordinal == end - 1 ? g->rest : g->examples;
    return (float)((double)own * (double)n / (double)examples);
}

static int64_t count_missing(const bool *has, int64_t n)
{
    int64_t missing = 0;
    for (int64_t i = 0; i < n; i++)
        missing += !has[i];
    return missing;
}

static void groups_list_missing(int64_t first, const bool *has, int64_t n, struct buf *out)
{
    enum { TOLD_MAX = 4 };
    int64_t missing = count_missing(has, n), told = 0;
    buf_printf(out, missing == 1 ? " of batch" : " of batches");
    for (int64_t i = 0; i < n && told < TOLD_MAX; i++)
        if (!has[i])
            buf_printf(out, "%s %lld", told++ > 0 ? "," : "", (long long)(first + i));
    if (missing > told)
        buf_printf(out, " and %lld more", (long long)(missing - told));
}

void groups_describe_missing(int64_t first, const bool *has, int64_t n, struct buf *out)
{
    buf_printf(out, count_missing(has, n) == 1 ? "the gradient" : "the gradients");
    groups_list_missing(first, has, n, out);
}

void groups_describe_missing_sums(int64_t first, const bool *has, int64_t n, struct buf *out)
{
    buf_printf(out, "the batch statistics");
    groups_list_missing(first, has, n, out);
}
