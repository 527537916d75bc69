/* Exponential back-off after a refusal, then slow start, as ReplicaSet creates its pods. */
#include "control/create_backoff.h"

#include "base/mem.h"

enum { FIRST_MS = 1000, MOST_MS = 60000, DOUBLINGS = 10, UNLIMITED_FROM = 1024 };

int64_t create_backoff_delay_ms(int failures)
{
    return MIN((int64_t)FIRST_MS << MIN(MAX(failures - 1, 0), DOUBLINGS), (int64_t)MOST_MS);
}

bool create_backoff_allows(const struct create_backoff *b, int64_t now_ms)
{
    return now_ms >= b->until_ms && (b->max_in_flight == 0 || b->in_flight < b->max_in_flight);
}

void create_backoff_delay(struct create_backoff *b, int64_t now_ms, int64_t at_least_ms)
{
    if (now_ms >= b->until_ms) /* refusals during the delay count once */
        b->failures++;
    b->until_ms = MAX(b->until_ms, now_ms + MAX(create_backoff_delay_ms(b->failures), at_least_ms));
}

bool create_backoff_refused(struct create_backoff *b, int64_t sent_ms, int64_t now_ms)
{
    if (b->refused_ms != 0 && sent_ms <= b->refused_ms)
        return false;
    b->refused_ms = now_ms;
    b->max_in_flight = 1;
    create_backoff_delay(b, now_ms, 0);
    return true;
}

/* Each accepted create makes room for one more, so a whole round doubles the number. */
void create_backoff_accepted(struct create_backoff *b, int64_t sent_ms)
{
    if (b->refused_ms != 0 && sent_ms <= b->refused_ms)
        return;
    b->failures = 0;
    b->until_ms = 0;
    if (b->max_in_flight > 0 && ++b->max_in_flight > UNLIMITED_FROM)
        b->max_in_flight = 0;
}

void create_backoff_reset(struct create_backoff *b)
{
    *b = (struct create_backoff){ .in_flight = b->in_flight };
}
