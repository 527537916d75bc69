/* server_time - what time it is for the API server, from the Date of its answers and a clock that nobody sets. Pure.
 *
 * Objects bear the server's times, so what is due is reckoned by its clock: the operator's own may be wrong by minutes.
 * A Date has whole seconds, and was written somewhere between request and answer: each answer says between which bounds
 * the difference lies, and all of them together are exact to some milliseconds. Another clock's Date (another server
 * behind the same name, or one that was set) begins anew.
 */
#ifndef TRAINYARD_KUBE_SERVER_TIME_H
#define TRAINYARD_KUBE_SERVER_TIME_H

#include <stdbool.h>
#include <stdint.h>

struct server_time {
    int64_t offset_ms;       /* of its time from clock_ms() */
    int64_t low_ms, high_ms; /* its bounds */
    bool heard;
};
/* Until it is heard of: the time that this machine believes in. */
struct server_time server_time_of(int64_t wall_ms, int64_t clock_ms);
void server_time_hear(struct server_time *t, int64_t date_ms, int64_t sent_ms, int64_t got_ms);
static inline int64_t server_time_at(const struct server_time *t, int64_t clock_ms)
{
    return clock_ms + t->offset_ms;
}

#endif
