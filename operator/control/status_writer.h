/* status_writer - writes a job's status by patches, one at a time per job, and restores what other writers remove.
 *
 * While the API server is busy, a status that others will follow waits in the client's queue and is built when its turn
 * comes, so that it contains everything decided meanwhile.
 */
#ifndef TRAINYARD_CONTROL_STATUS_WRITER_H
#define TRAINYARD_CONTROL_STATUS_WRITER_H

#include "control/controller_env.h"

/* Does nothing when there is nothing to write. progress_interval_ms: between two writes that change only progress. */
void status_writer_write(struct controller_env *env, struct cache_entry *entry, int64_t progress_interval_ms);
/* The job's object as the watch reports it. If its status still lacks something of ours after a delay, another writer
 * removed it, and it is written again: once per observation, with delays that grow while it is removed again. */
void status_writer_observe(struct controller_env *env, struct cache_entry *entry, const json_t *object);

/* ---- pure ---- */

struct status_write_step {
    enum {
        STATUS_WRITE_NOTHING,
        STATUS_WRITE_LATER, /* decide again at at_ms */
        STATUS_WRITE_QUEUED,
        STATUS_WRITE_NOW
    } act;
    int64_t at_ms;
};
/* differs: job_status_differs() of what the server has and of what was decided. */
struct status_write_step status_writer_decide(const struct cache_entry *entry, unsigned differs,
                                              int64_t progress_interval_ms, int64_t now_ms);
/* How long the status must lack something before it is restored, after so many restores. */
int64_t status_writer_restore_delay_ms(int restores);
/* After so many failures in a row, from 1. refused: by the server, for good; it will hardly accept the same again. */
int64_t status_writer_retry_delay_ms(int failures, bool refused);

#endif
