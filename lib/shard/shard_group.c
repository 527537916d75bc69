/* The group of a segment: which gradients it has, and the values of two steps. Memory for the sum and for the values of
 * the step before is made once; a gradient that comes before its turn is copied and waits. */
#include <string.h>

#include "shard/shard_internal.h"

static void group_drop_waiting(struct segment_group *p)
{
    for (int64_t i = 0; p->waiting != NULL && i < p->end - p->first; i++) {
        if (p->first + i != p->lent)
            free(p->waiting[i]);
        p->waiting[i] = NULL;
    }
    p->lent = -1;
    p->due = false;
}

void group_fini(struct segment *g)
{
    struct segment_group *p = &g->group;
    group_drop_waiting(p);
    free(p->has);
    free(p->waiting);
    free(p->sum);
    free(p->previous);
    *p = (struct segment_group){ .previous_at = -1, .lent = -1 };
    shard_snapshot_fini(&g->copy);
}

static int group_allocate(struct segment *g, const struct groups *groups, struct err *e)
{
    struct segment_group *p = &g->group;
    void *sum, *previous = NULL;
    if (p->has != NULL)
        return 0;
    if (g->spec.kind != VAR_CONST && !g->sums_elsewhere) {
        if (mem_alloc(segment_bytes(g), "the gradients of a group", &sum, e) < 0)
            return -1;
        p->sum = sum;
        if (!g->in_place && mem_alloc(segment_bytes(g), "the values of the step before", &previous, e) < 0)
            return -1;
        p->previous = previous;
    }
    p->has = xcalloc((size_t)groups->size, sizeof(*p->has));
    p->waiting = xcalloc((size_t)groups->size, sizeof(*p->waiting));
    return 0;
}

int group_begin(struct segment *g, const struct groups *groups, struct err *e)
{
    struct segment_group *p = &g->group;
    int64_t low = g->applied.low;
    if (g->applied.high > low || groups_first(groups, low) != low)
        return err_set(e, ERR_INPUT,
                       "segment %u: batch %lld is not the first of a group of %lld: the state is not of one step",
                       g->spec.id, (long long)low, (long long)groups->size);
    if (group_allocate(g, groups, e) < 0)
        return -1;
    group_drop_waiting(p);
    p->first = p->next = low;
    p->end = groups_end(groups, low);
    p->received = 0;
    memset(p->has, 0, (size_t)groups->size * sizeof(*p->has));
    return 0;
}

void group_describe_missing(const struct segment *g, struct buf *out)
{
    groups_describe_missing(g->group.first, g->group.has, g->group.end - g->group.first, out);
}

int group_values(const struct segment *g, int64_t at, const float **ret, struct err *e)
{
    const struct segment_group *p = &g->group;
    if (at == p->first) {
        *ret = g->values;
        return 0;
    }
    if (at == p->previous_at && !g->in_place) {
        *ret = g->spec.kind == VAR_CONST ? g->values : p->previous;
        return 0;
    }
    if (at < p->first)
        return err_set(e, ERR_STALE, "the step of batch %lld is over", (long long)at);
    AUTO_FINI(buf) text = BUF_INIT;
    group_describe_missing(g, &text);
    return err_set(e, ERR_PENDING, "%s", text.data);
}

void group_received(const struct segment *g, struct ordinal_set *ret)
{
    const struct segment_group *p = &g->group;
    struct err never;
    ordinal_set_copy(ret, &g->applied);
    for (int64_t i = 0; i < p->end - p->first; i++)
        if (p->has[i] && ordinal_set_add(ret, p->first + i, &never) < 0)
            return;
}
