/* server_time - estimates the API server's time from the Date header of its answers and the monotonic clock. Pure.
 *
 * Objects have timestamps of the server, so deadlines follow its clock: the operator's own clock may be wrong by
 * minutes. A Date has whole seconds and was written between request and answer, so each answer bounds the difference of
 * the two clocks. Many answers together are exact to some milliseconds. A Date outside the bounds (another server
 * behind the same name, or a clock that was set) restarts the estimate. All times are rounded down to milliseconds, and
 * where that leaves a choice the estimate is the earlier one: nothing is done before the server's clock says so.
 */
#ifndef TRAINYARD_KUBE_SERVER_TIME_H
#define TRAINYARD_KUBE_SERVER_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct server_time {
    int64_t offset_ms;       /* of its time from loop_now() */
    int64_t low_ms, high_ms; /* its bounds */
    bool heard;
};
/* Before the first answer: the time of this host, one millisecond late at most. */
struct server_time server_time_of(int64_t wall_ms, int64_t clock_ms);
void server_time_observe(struct server_time *t, int64_t date_ms, int64_t sent_ms, int64_t got_ms);
static inline int64_t server_time_at(const struct server_time *t, int64_t clock_ms)
{
    return clock_ms + t->offset_ms;
}

#endif
