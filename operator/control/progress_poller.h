/* progress_poller - polls the chiefs' /progress over HTTP and puts the answers into the cache. */
#ifndef TRAINYARD_CONTROL_PROGRESS_POLLER_H
#define TRAINYARD_CONTROL_PROGRESS_POLLER_H

#include "control/controller_env.h"

struct progress_poller;
struct progress_poller *progress_poller_new(struct controller_env *env);
void progress_poller_free(struct progress_poller *p);
DEFINE_AUTO(progress_poller, progress_poller_free);

/* Starts or stops polling the job's chief. */
void progress_poller_set(struct progress_poller *p, struct cache_entry *entry, bool wanted);
/* The longest interval between two polls of a job: it grows with the number of jobs that are polled. */
int64_t progress_poller_interval_ms(const struct progress_poller *p);

#endif
