#include "control/fair.h"

void fair_wait(struct fair *f, struct fair_job *j, int64_t now_ms)
{
    if (j->waits)
        return;
    j->waits = true;
    j->since_ms = now_ms;
    j->next = NULL;
    j->prev = f->last;
    *(f->last != NULL ? &f->last->next : &f->first) = j;
    f->last = j;
}

void fair_leave(struct fair *f, struct fair_job *j)
{
    if (!j->waits)
        return;
    *(j->prev != NULL ? &j->prev->next : &f->first) = j->next;
    *(j->next != NULL ? &j->next->prev : &f->last) = j->prev;
    j->prev = j->next = NULL;
    j->waits = false;
}

bool fair_has_room(const struct fair *f)
{
    return f->bytes < FAIR_BYTES;
}

static int recent(const struct fair_job *j, int64_t now_ms)
{
    int64_t halvings = (now_ms - j->recent_ms) / FAIR_HALF_MS;
    return halvings > 30 ? 0 : j->recent >> (halvings > 0 ? halvings : 0);
}

/* Whoever sent nothing of late and came first cannot be beaten: the rest of the line, which may be long, is not looked
 * at. */
struct fair_job *fair_next(const struct fair *f, int64_t now_ms)
{
    struct fair_job *best = NULL;
    int fewest = 1;

    if (!fair_has_room(f))
        return NULL;
    for (struct fair_job *j = f->first; j != NULL && fewest > 0; j = j->next) {
        int n = recent(j, now_ms);
        if (best != NULL && (n > fewest || (n == fewest && j->since_ms >= best->since_ms)))
            continue;
        best = j;
        fewest = n;
    }
    return best;
}

/* The count is kept as of the last halving, so that many small steps of time are not lost. */
void fair_count(struct fair_job *j, int64_t now_ms)
{
    int n = recent(j, now_ms);
    if (n != j->recent || j->recent == 0)
        j->recent_ms = now_ms;
    j->recent = n + 1;
}

bool fair_goes_on(const struct fair *f, int sent, size_t bytes_then)
{
    size_t own = f->bytes > bytes_then ? f->bytes - bytes_then : 0;
    return fair_has_room(f) && sent < FAIR_REQUESTS && own < FAIR_BYTES_EACH;
}
