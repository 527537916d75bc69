/* Two lists; a wake or the end of a wait moves requests from the first to the second. */
#include "rpc/again.h"

#include "base/mem.h"

enum again_answer again_add(struct again *a, struct again_item *item, uint64_t wakes, int64_t until_ms, int64_t now_ms)
{
    if (until_ms <= now_ms || a->stopping || a->nwaiting >= a->max)
        return AGAIN_NO;
    if (a->wakes != wakes)
        return AGAIN_NOW;
    item->until_ms = until_ms;
    item->next = a->waiting;
    a->waiting = item;
    a->nwaiting++;
    return AGAIN_WAIT;
}

/* Those that end at or before this time. */
static size_t move_to_due(struct again *a, int64_t until_ms)
{
    size_t moved = 0;
    for (struct again_item **at = &a->waiting; *at != NULL;) {
        struct again_item *item = *at;
        if (item->until_ms > until_ms) {
            at = &item->next;
            continue;
        }
        *at = item->next;
        item->next = a->due;
        a->due = item;
        moved++;
    }
    a->nwaiting -= moved;
    atomic_fetch_add(&a->ndue, moved);
    return moved;
}

size_t again_wake(struct again *a)
{
    a->wakes++;
    return move_to_due(a, INT64_MAX);
}

size_t again_stop(struct again *a)
{
    a->stopping = true;
    return again_wake(a);
}

size_t again_expire(struct again *a, int64_t now_ms)
{
    return move_to_due(a, now_ms);
}

struct again_item *again_take(struct again *a)
{
    struct again_item *item = a->due;
    if (item == NULL)
        return NULL;
    a->due = item->next;
    atomic_fetch_sub(&a->ndue, 1);
    return item;
}

int64_t again_first_end(const struct again *a)
{
    int64_t first = INT64_MAX;
    for (const struct again_item *item = a->waiting; item != NULL; item = item->next)
        first = MIN(first, item->until_ms);
    return first;
}
