/* member - a worker's membership in the job: one thread that registers, keeps a small queue of lent batches filled
 * ahead of need, reports what was done, renews, and notices when the chief or the generation changed. The training
 * loop only takes ordinals and hands results back; it never waits for the chief while the queue holds work.
 *
 * Every wait is bounded by max_wait_ms and says what it waits for (log, and in heartbeats).
 */
#ifndef TRAINYARD_COORD_MEMBER_H
#define TRAINYARD_COORD_MEMBER_H

#include "coord/coord.h"

struct member_config {
    struct coord *coord;              /* borrowed */
    struct coord_request identity;    /* as for COORD_REGISTER; its strings are borrowed */
    size_t width;                     /* metrics_width */
    int64_t max_wait_ms;              /* without a chief (fit.maxWaitSeconds) */
    bool (*has_finished)(void *user); /* asked while the chief is away: has the job finished? NULL: nobody knows */
    void *user;
};

struct member;
MUST_USE int member_start(const struct member_config *config, struct member **ret, struct err *e);
/* Tells the chief (bounded, 1 s) that it leaves, with the last report, and joins the thread. */
void member_leave(struct member *m, const char *reason);
void member_free(struct member *m); /* member_leave when that was not called */
DEFINE_AUTO(member, member_free);

/* True when member_next would not wait. */
bool member_has_work(struct member *m);

enum member_next { MEMBER_ORDINAL, MEMBER_FINISHED, MEMBER_STOPPING };
/* Blocks until there is a batch to compute, the job has finished, the chief stops, or stop_count() is above zero
 * (MEMBER_STOPPING). Errors: the chief refused this worker, was replaced, or was away too long. */
MUST_USE int member_next(struct member *m, enum member_next *ret, int64_t *ret_ordinal, struct err *e);
/* The ordinal that member_next would give now, -1 without one. Does not block. */
int64_t member_peek(struct member *m);

/* What one batch took; sums: `width` doubles. */
struct member_step {
    int64_t ordinal;
    const double *sums;
    uint64_t compute_ns, network_ns, data_ns, wait_ns, staleness;
};
/* The batch is applied at every ps: it is reported with the next call and no longer held. */
void member_done(struct member *m, const struct member_step *step);
/* The batch's loss or gradient is not finite: the chief ends the job. */
void member_diverged(struct member *m, int64_t ordinal);

/* The generation to speak under. `stale` is one that a ps refused (0: none): blocks until the chief names another and
 * the job trains, or as member_next. */
MUST_USE int member_generation(struct member *m, uint64_t stale, uint64_t *ret, struct err *e);
/* Asks the chief now whether the generation changed (after a ps was lost), does not block. */
void member_resync(struct member *m);
/* The job's uid as the chief named it (for a worker that was started without one); valid as long as m. */
const char *member_job_uid(const struct member *m);
bool member_finished(struct member *m); /* the chief said so, or has_finished did */
/* Blocks until the chief stops or finishes the job, bounded by 5 s: after member_diverged, before leaving. */
void member_await_stop(struct member *m);
/* What the worker waits for, in the next heartbeat; NULL or "": nothing. */
void member_waiting(struct member *m, const char *text);

#endif
