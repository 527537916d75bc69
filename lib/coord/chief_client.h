/* chief_client - a worker's side of the job: one thread that registers, keeps a small queue of leased batches filled
 * ahead of need, reports completed batches, renews leases, and detects a change of the chief or the generation. The
 * training loop only takes ordinals and returns results. It never waits for the chief while the queue holds work.
 *
 * Every wait is bounded by max_wait_ms, and its reason is reported (in the log and in heartbeats).
 */
#ifndef TRAINYARD_COORD_CHIEF_CLIENT_H
#define TRAINYARD_COORD_CHIEF_CLIENT_H

#include "base/report.h"
#include "coord/coordinator_client.h"

struct chief_client_config {
    struct coordinator_client *coordinator; /* borrowed */
    struct register_request identity;       /* without `held` and `generation`; its strings are borrowed */
    bool ignores_signals;                   /* the chief is in this process, and ends the training at a signal */
    const struct report *report;            /* where waits for the chief are explained; NULL: nowhere */
    size_t width;                           /* metrics_width */
    int64_t max_wait_ms;                    /* without a chief (fit.maxWaitSeconds) */
    /* Called while the chief is away: has the job finished, and at which step? job_uid "": not known yet. NULL: the
     * chief is in this process, and says so itself. */
    bool (*has_finished)(void *user, const char *job_uid, int64_t *ret_step);
    void *user;
};

struct chief_client;
MUST_USE int chief_client_start(const struct chief_client_config *config, struct chief_client **ret, struct err *e);
/* Notifies the chief (bounded, 1 s) that this worker leaves, with the last report, and joins the thread. */
void chief_client_leave(struct chief_client *m, const char *reason);
void chief_client_free(struct chief_client *m); /* chief_client_leave when that was not called */
DEFINE_AUTO(chief_client, chief_client_free);

/* True when chief_client_next would not wait. */
bool chief_client_has_work(struct chief_client *m);

enum chief_client_next { CHIEF_CLIENT_ORDINAL, CHIEF_CLIENT_FINISHED, CHIEF_CLIENT_STOPPING };
/* Blocks until there is a batch to compute, the job has finished, the chief stops, or stop_count() is above zero
 * (CHIEF_CLIENT_STOPPING). Errors: the chief refused this worker, was replaced, or was away too long. */
MUST_USE int chief_client_next(struct chief_client *m, enum chief_client_next *ret, int64_t *ret_ordinal,
                               struct err *e);
/* The ordinal that chief_client_next() would return now, -1 when there is none. Does not block. */
int64_t chief_client_peek(struct chief_client *m);

/* The duration of one batch; sums: `width` doubles. */
struct chief_client_step {
    int64_t ordinal;
    const double *sums;
    uint64_t compute_ns, network_ns, data_ns, wait_ns, staleness;
};
/* The batch is applied at every ps: it is reported with the next call and no longer held. */
void chief_client_done(struct chief_client *m, const struct chief_client_step *step);
/* Synchronous training. The batch cannot be computed yet, because something of batches below `below` is missing: it is
 * held, and chief_client_next() asks the chief for such batches first, and returns the lowest that is held. */
void chief_client_defer(struct chief_client *m, int64_t ordinal, int64_t below);
/* The batch is applied already, from another worker: it is no longer held, and not reported. */
void chief_client_drop(struct chief_client *m, int64_t ordinal);
/* Ordinals of a group; 0: updates are asynchronous. Valid once chief_client_generation() has returned. */
int64_t chief_client_group_size(struct chief_client *m);
/* The batch's loss or gradient is not finite: the chief ends the job. */
void chief_client_diverged(struct chief_client *m, int64_t ordinal);

/* The generation to use in calls. `stale` is one that a ps refused (0: none): blocks until the chief names another
 * and the job trains, or ends as chief_client_next() does. */
MUST_USE int chief_client_generation(struct chief_client *m, uint64_t stale, uint64_t *ret, struct err *e);
/* Checks with the chief now whether the generation changed (after a ps was lost); does not block. */
void chief_client_resync(struct chief_client *m);
/* The job's uid that the chief sent (for a worker that was started without one); valid as long as m. */
const char *chief_client_job_uid(const struct chief_client *m);
bool chief_client_finished(struct chief_client *m); /* reported by the chief, or by has_finished */
/* Blocks until the chief stops or finishes the job, bounded by 5 s: after chief_client_diverged, before leaving. False:
 * it has not. */
bool chief_client_await_stop(struct chief_client *m);
/* What the worker waits for, in the next heartbeat; NULL or "": nothing. */
void chief_client_waiting(struct chief_client *m, const char *text);

#endif
