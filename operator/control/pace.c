#include "control/pace.h"

#include "base/mem.h"

enum { FIRST_MS = 1000, MOST_MS = 60000, DOUBLINGS = 10, ENOUGH = 1024 };

int64_t pace_pause_ms(int failures)
{
    return MIN((int64_t)FIRST_MS << MIN(MAX(failures - 1, 0), DOUBLINGS), (int64_t)MOST_MS);
}

bool pace_allows(const struct pace *p, int64_t now_ms)
{
    return now_ms >= p->until_ms && (p->at_once == 0 || p->under_way < p->at_once);
}

void pace_pause(struct pace *p, int64_t now_ms, int64_t at_least_ms)
{
    if (now_ms >= p->until_ms) /* those that come during a pause count once */
        p->failures++;
    p->until_ms = MAX(p->until_ms, now_ms + MAX(pace_pause_ms(p->failures), at_least_ms));
}

bool pace_refuse(struct pace *p, int64_t sent_ms, int64_t now_ms)
{
    if (p->refused_ms != 0 && sent_ms <= p->refused_ms)
        return false;
    p->refused_ms = now_ms;
    p->at_once = 1;
    pace_pause(p, now_ms, 0);
    return true;
}

/* Each one that is accepted makes room for one more, so that a whole round doubles the number. */
void pace_accept(struct pace *p, int64_t sent_ms)
{
    if (p->refused_ms != 0 && sent_ms <= p->refused_ms)
        return;
    p->failures = 0;
    p->until_ms = 0;
    if (p->at_once > 0 && ++p->at_once > ENOUGH)
        p->at_once = 0;
}

void pace_reset(struct pace *p)
{
    *p = (struct pace){ .under_way = p->under_way };
}
