/* Intersects the bounds that each answer gives for the difference of the two clocks. */
#include "kube/server_time.h"

#include "base/mem.h"

struct server_time server_time_of(int64_t wall_ms, int64_t clock_ms)
{
    return (struct server_time){ .offset_ms = wall_ms - clock_ms - 1 };
}

void server_time_observe(struct server_time *t, int64_t date_ms, int64_t sent_ms, int64_t got_ms)
{
    int64_t low = date_ms - got_ms - 1, high = date_ms + 999 - sent_ms;

    if (!t->heard || low > t->high_ms || high < t->low_ms) {
        t->low_ms = low;
        t->high_ms = high;
    } else {
        t->low_ms = MAX(t->low_ms, low);
        t->high_ms = MIN(t->high_ms, high);
    }
    t->heard = true;
    t->offset_ms =
        MIN(MAX(t->offset_ms, t->low_ms), t->high_ms); /* the offset changes no more than the bounds require */
}
