/* status_writer - writes a job's status by patches, one at a time per job, and restores what other writers remove.
 *
 * While the API server is busy, a status that will change again waits in the client's queue. It is built when it is
 * sent, so that it contains everything decided meanwhile.
 */
#ifndef TRAINYARD_CONTROL_STATUS_WRITER_H
#define TRAINYARD_CONTROL_STATUS_WRITER_H

#include "control/controller_env.h"

/* Does nothing if the status is already written. progress_interval_ms: between two writes that change only progress. */
void status_writer_write(struct controller_env *env, struct cache_entry *entry, int64_t progress_interval_ms);
/* Handles the job's object as the watch reports it. If its status still lacks some of our fields after a delay, another
 * writer removed them, and they are written again. This happens once per observation, with delays that grow while they
 * are removed again. */
void status_writer_observe(struct controller_env *env, struct cache_entry *entry, const json_t *object);

/* Before a change of the status that is not the plan's: keeps what the server has, so that the change is written. */
struct job_status *status_writer_change(struct controller_env *env, struct cache_entry *entry);

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
/* differs: job_status_differs() of the server's status and the decided one. */
struct status_write_step status_writer_decide(const struct cache_entry *entry, unsigned differs,
                                              int64_t progress_interval_ms, int64_t now_ms);
/* How long the status must lack something before it is restored, after so many restores. */
int64_t status_writer_restore_delay_ms(int restores);
/* After so many failures in a row, from 1. refused: the server refused permanently and will probably refuse the same
 * patch again. */
int64_t status_writer_retry_delay_ms(int failures, bool refused);

#endif
