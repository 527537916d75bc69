/* wait - when a wait is explained: after a while, then again at growing intervals, and at its end if it was explained.
 *
 *     struct wait_state w = { 0 };
 *     while (!ready()) {
 *         wait_begin(&w, clock_ms(), WAIT_EXPLAIN_MS);
 *         wait_report(&w, clock_ms(), report, "ps-1");            "waiting 5 s for ps-1"
 *         ...
 *     }
 *     if (wait_end(&w, clock_ms(), &waited_ms))
 *         report_info(report, "ps-1 answers again after %lld s", ...);
 *
 * Pure but for wait_report: the time is a parameter. Zero-initialised: nothing is waited for.
 */
#ifndef TRAINYARD_BASE_WAIT_H
#define TRAINYARD_BASE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/report.h"

enum { WAIT_EXPLAIN_MS = 5000, WAIT_EXPLAIN_MAX_MS = 60000 };

struct wait_state {
    bool on;        /* something is waited for */
    bool explained; /* at least once */
    int64_t since_ms, due_ms;
};

/* Nothing when it has begun already. first_ms: how long after its beginning it is explained first. */
void wait_begin(struct wait_state *w, int64_t now_ms, int64_t first_ms);
int64_t wait_ms(const struct wait_state *w, int64_t now_ms); /* how long until now; 0: nothing is waited for */
/* Is it time to explain the wait? Once for each time: the next one is WAIT_EXPLAIN_MS later, or a quarter of the wait
 * so far if that is longer, at most WAIT_EXPLAIN_MAX_MS. */
bool wait_due(struct wait_state *w, int64_t now_ms);
/* When it is due: "waiting 15 s for WHAT". */
void wait_report(struct wait_state *w, int64_t now_ms, const struct report *report, const char *what);
/* True when the wait was explained, so that its end is worth a line; *ret_ms is written then (NULL: not wanted). */
bool wait_end(struct wait_state *w, int64_t now_ms, int64_t *ret_ms);

#endif
