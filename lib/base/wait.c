/* Intervals between reports of a wait. At first every 5 s, so that people see at once what is missing. Later each is
 * a quarter of the wait so far, so that a wait of hours does not fill the log. */
#include "base/wait.h"

#include "base/mem.h"

void wait_begin(struct wait_state *w, int64_t now_ms, int64_t first_ms)
{
    if (!w->on)
        *w = (struct wait_state){ .on = true, .since_ms = now_ms, .due_ms = now_ms + first_ms };
}

int64_t wait_ms(const struct wait_state *w, int64_t now_ms)
{
    return w->on ? now_ms - w->since_ms : 0;
}

bool wait_due(struct wait_state *w, int64_t now_ms)
{
    if (!w->on || now_ms < w->due_ms)
        return false;
    w->explained = true;
    w->due_ms = now_ms + MIN(MAX(wait_ms(w, now_ms) / 4, WAIT_EXPLAIN_MS), WAIT_EXPLAIN_MAX_MS);
    return true;
}

void wait_report(struct wait_state *w, int64_t now_ms, const struct report *report, const char *what)
{
    if (wait_due(w, now_ms))
        report_info(report, "waiting %lld s for %s", (long long)wait_ms(w, now_ms) / 1000, what);
}

bool wait_end(struct wait_state *w, int64_t now_ms, int64_t *ret_ms)
{
    bool explained = w->explained;
    if (explained && ret_ms != NULL)
        *ret_ms = wait_ms(w, now_ms);
    *w = (struct wait_state){ 0 };
    return explained;
}
