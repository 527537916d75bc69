/* quota_waiters - the jobs of each namespace that wait for a quota. A job that waits, too, asks which one is older.
 *
 * All jobs are looked at once a second at most, and only when a job asks. So it costs little however many wait.
 */
#ifndef TRAINYARD_CONTROL_QUOTA_WAITERS_H
#define TRAINYARD_CONTROL_QUOTA_WAITERS_H

#include "base/map.h"
#include "plan/plan.h"

struct quota_waiters {
    struct map by_ns; /* of struct ns_waiters */
    int64_t read_ms;  /* by loop_now(); 0: never */
};
void quota_waiters_fini(struct quota_waiters *w);

struct controller_env;
struct cache_entry;
/* Sets quota_rival and rival_is_older if the job waits for a quota, or has given its pods back. The name is valid until
 * the next call. */
void quota_waiters_observe(struct controller_env *env, const struct cache_entry *entry, struct observed *ret);

#endif
