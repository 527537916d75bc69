/* Fair queuing of jobs by their recent requests (a decaying count), as in API priority and fairness for flows. */
#include "control/fair_queue.h"

void fair_queue_add(struct fair_queue *q, struct fair_ticket *t, int64_t now_ms)
{
    if (t->waits)
        return;
    t->waits = true;
    t->since_ms = now_ms;
    t->next = NULL;
    t->prev = q->last;
    *(q->last != NULL ? &q->last->next : &q->first) = t;
    q->last = t;
}

void fair_queue_remove(struct fair_queue *q, struct fair_ticket *t)
{
    if (!t->waits)
        return;
    *(t->prev != NULL ? &t->prev->next : &q->first) = t->next;
    *(t->next != NULL ? &t->next->prev : &q->last) = t->prev;
    t->prev = t->next = NULL;
    t->waits = false;
}

bool fair_queue_has_room(const struct fair_queue *q)
{
    return q->bytes < FAIR_QUEUE_BYTES;
}

static int recent(const struct fair_ticket *t, int64_t now_ms)
{
    int64_t halvings = (now_ms - t->recent_ms) / FAIR_QUEUE_HALF_LIFE_MS;
    return halvings > 30 ? 0 : t->recent >> (halvings > 0 ? halvings : 0);
}

/* The first job without recent requests is the best choice, so the rest of a long queue is not searched. */
struct fair_ticket *fair_queue_next(const struct fair_queue *q, int64_t now_ms)
{
    struct fair_ticket *best = NULL;
    int fewest = 1;

    if (!fair_queue_has_room(q))
        return NULL;
    for (struct fair_ticket *t = q->first; t != NULL && fewest > 0; t = t->next) {
        int n = recent(t, now_ms);
        if (best != NULL && (n > fewest || (n == fewest && t->since_ms >= best->since_ms)))
            continue;
        best = t;
        fewest = n;
    }
    return best;
}

/* recent_ms is the time of the last halving, so that many short intervals add up. */
void fair_queue_count(struct fair_ticket *t, int64_t now_ms)
{
    int n = recent(t, now_ms);
    if (n != t->recent || t->recent == 0)
        t->recent_ms = now_ms;
    t->recent = n + 1;
}

bool fair_queue_may_send(const struct fair_queue *q, int sent, size_t bytes_then)
{
    size_t own = q->bytes > bytes_then ? q->bytes - bytes_then : 0;
    return fair_queue_has_room(q) && sent < FAIR_QUEUE_REQUESTS && own < FAIR_QUEUE_BYTES_PER_JOB;
}
