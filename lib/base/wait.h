/* wait - decides when a wait is reported: after a while, then at growing intervals, and at its end if it was reported
 * before.
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
 * Pure except for wait_report: the time is a parameter. Zero-initialised: no wait is under way.
 */
#ifndef TRAINYARD_BASE_WAIT_H
#define TRAINYARD_BASE_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/report.h"

enum { WAIT_EXPLAIN_MS = 5000, WAIT_EXPLAIN_MAX_MS = 60000 };

struct wait_state {
    bool on;        /* a wait is under way */
    bool explained; /* at least once */
    int64_t since_ms, due_ms;
};

/* Does nothing when the wait has already begun. first_ms: the time from its beginning to the first report. */
void wait_begin(struct wait_state *w, int64_t now_ms, int64_t first_ms);
int64_t wait_ms(const struct wait_state *w, int64_t now_ms); /* duration until now; 0: no wait is under way */
/* Is a report of the wait due? True once per due time. The next one is WAIT_EXPLAIN_MS later, or a quarter of the
 * wait so far if that is longer, at most WAIT_EXPLAIN_MAX_MS. */
bool wait_due(struct wait_state *w, int64_t now_ms);
/* Reports "waiting 15 s for WHAT" when that is due. */
void wait_report(struct wait_state *w, int64_t now_ms, const struct report *report, const char *what);
/* True when the wait was reported, so that its end is reported too; *ret_ms is written then (NULL: not needed). */
bool wait_end(struct wait_state *w, int64_t now_ms, int64_t *ret_ms);

#endif
