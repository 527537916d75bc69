/* Ranges in ascending order in an array: there are few of them. */
#include "coord/lease_queue.h"

#include <string.h>

_Static_assert((int)LEASE_QUEUE_HELD <= (int)COORDINATOR_HELD_MAX, "the coordinator takes what a worker holds");

bool lease_queue_has_room(const struct lease_queue *q)
{
    return q->n + 2 * (size_t)LEASE_QUEUE_LEASE + 1 <= LEASE_QUEUE_MAX;
}

void lease_queue_add(struct lease_queue *q, int64_t first, int64_t end)
{
    size_t at = q->n;
    for (; at > 0 && q->range[2 * at - 2] > first; at--)
        memcpy(q->range + 2 * at, q->range + 2 * at - 2, 2 * sizeof(q->range[0]));
    q->range[2 * at] = first;
    q->range[2 * at + 1] = end;
    q->n++;
}

int64_t lease_queue_left(const struct lease_queue *q)
{
    int64_t n = 0;
    for (size_t i = 0; i < q->n; i++)
        n += q->range[2 * i + 1] - q->range[2 * i];
    return n;
}

int64_t lease_queue_first(const struct lease_queue *q)
{
    return q->n > 0 ? q->range[0] : -1;
}

bool lease_queue_has_work(const struct lease_queue *q)
{
    return q->n > 0 && q->ntaken < LEASE_QUEUE_TAKEN;
}

int64_t lease_queue_take(struct lease_queue *q)
{
    int64_t ordinal = q->range[0]++;
    if (q->range[0] == q->range[1])
        memmove(q->range, q->range + 2, 2 * --q->n * sizeof(q->range[0]));
    q->taken[q->ntaken++] = ordinal;
    return ordinal;
}

static bool end_taken(struct lease_queue *q, int64_t ordinal)
{
    for (size_t i = 0; i < q->ntaken; i++)
        if (q->taken[i] == ordinal) {
            q->taken[i] = q->taken[--q->ntaken];
            return true;
        }
    return false;
}

void lease_queue_end(struct lease_queue *q, int64_t ordinal)
{
    (void)end_taken(q, ordinal);
}

void lease_queue_put_back(struct lease_queue *q, int64_t ordinal)
{
    if (!end_taken(q, ordinal))
        return; /* it was put back before, or is not held any more */
    if (q->n > 0 && q->range[0] == ordinal + 1)
        q->range[0] = ordinal;
    else
        lease_queue_add(q, ordinal, ordinal + 1);
    q->n = MIN(q->n, (size_t)(LEASE_QUEUE_MAX - LEASE_QUEUE_LEASE - 1));
}

void lease_queue_clear(struct lease_queue *q)
{
    q->n = 0;
}

static size_t range_insert(int64_t out[LEASE_QUEUE_HELD], size_t n, int64_t first, int64_t end)
{
    size_t at = n;
    for (; at > 0 && out[at - 2] > first; at -= 2) {
        out[at] = out[at - 2];
        out[at + 1] = out[at - 1];
    }
    out[at] = first;
    out[at + 1] = end;
    return n + 2;
}

/* Joins neighbours and, if a batch was leased twice, what overlaps. */
static size_t ranges_merge(int64_t out[LEASE_QUEUE_HELD], size_t n)
{
    size_t to = 0;
    for (size_t at = 0; at < n; at += 2) {
        if (to > 0 && out[at] <= out[to - 1]) {
            out[to - 1] = MAX(out[to - 1], out[at + 1]);
            continue;
        }
        out[to] = out[at];
        out[to + 1] = out[at + 1];
        to += 2;
    }
    return to;
}

size_t lease_queue_held(const struct lease_queue *q, int64_t out[LEASE_QUEUE_HELD])
{
    size_t n = 0;
    for (size_t i = 0; i < q->ntaken; i++)
        n = range_insert(out, n, q->taken[i], q->taken[i] + 1);
    for (size_t i = 0; i < q->n; i++)
        n = range_insert(out, n, q->range[2 * i], q->range[2 * i + 1]);
    return ranges_merge(out, n);
}
