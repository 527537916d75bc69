/* coordinator - the chief's coordinator: who is in the job, which batch is lent to whom, what was reported.
 *
 * Workers come in through coordinator_handle() (any thread: gRPC's, or the worker of the same process); the
 * chief's own loop looks and decides through the other calls. Everything is under one lock, held for
 * microseconds; nothing here does I/O. Time is a parameter.
 */
#ifndef TRAINYARD_COORD_COORDINATOR_H
#define TRAINYARD_COORD_COORDINATOR_H

#include "coord/coordinator_client.h"
#include "coord/epoch_metrics.h"

struct coordinator_config {
    const struct model *model; /* borrowed */
    const char *job_uid;       /* borrowed */
    uint64_t incarnation;      /* of the chief's process */
    struct ordinal_space space;
    uint64_t layout_hash;
    uint32_t ps_count;
    int64_t batches_per_epoch, total; /* ordinals */
    int64_t window;                   /* tally's */
    uint32_t lease_ms;                /* a worker not heard of for so long has lost its leases */
    uint32_t heartbeat_ms;
};

struct coordinator *coordinator_new(const struct coordinator_config *config);
void coordinator_free(struct coordinator *c);
DEFINE_AUTO(coordinator, coordinator_free);

MUST_USE int coordinator_handle(struct coordinator *c, const struct coord_request *q, int64_t now_ms,
                                struct coord_reply *ret, struct err *e);

/* ---- the chief's side ---- */

/* What workers are told from now on, with their next call. */
void coordinator_set(struct coordinator *c, enum job_state state, uint64_t generation, const char *message);
void coordinator_observe(struct coordinator *c, const struct ordinal_set *done, int64_t begun_ms);
/* Expires leases and members. */
void coordinator_tick(struct coordinator *c, int64_t now_ms);
/* Ordinals below the limit may be lent (0 at first). The chief is woken when all of them have been worked on. */
void coordinator_allow_below(struct coordinator *c, int64_t limit);
/* What workers are told that they wait for, once all that is open has been worked on. */
void coordinator_set_wait_reason(struct coordinator *c, const char *text);
/* Gives access to the epoch metrics under the lock, for a short time. */
void coordinator_metrics(struct coordinator *c, void (*use)(void *user, struct epoch_metrics *t), void *user);

enum { COORDINATOR_TEXT_MAX = 240, EVALUATION_MAX = 32 };
struct coordinator_view {
    int64_t done, total, done_low; /* ordinals */
    bool finished;                 /* all are done */
    bool drained;         /* all that may be lent has been worked on, and is not done yet: look at the segments now */
    bool working;         /* some worker holds a batch */
    int members, workers; /* alive; workers: those that train */
    int64_t poisoned;     /* ordinal that killed several workers, or -1 */
    bool diverged;
    int64_t diverged_ordinal;
    char diverged_by[64];
    char diverged_what[96]; /* "loss nan"; "": what the worker saw itself */
    bool stop_requested;
    char stop_reason[COORDINATOR_TEXT_MAX];
    uint64_t highest_generation; /* a worker knew of; above ours: somebody newer is chief */
    uint64_t steps, staleness_sum, compute_ns, network_ns, data_ns, wait_ns; /* sums of all reports */
    int64_t evaluating_step;                                                 /* announced by an evaluator, or -1 */
    int64_t evaluated_step; /* newest reported evaluation, or -1; values below */
    size_t nevaluation;
    char evaluation_names[EVALUATION_MAX][64];
    double evaluation[EVALUATION_MAX];
    char waiting[COORDINATOR_TEXT_MAX]; /* what some worker waits for, or "" */
};
void coordinator_view(struct coordinator *c, struct coordinator_view *ret);
/* Blocks until something happened that the chief should look at (drained, divergence, stop, a new member), or until
 * deadline_ms. */
void coordinator_wait(struct coordinator *c, int64_t deadline_ms);
void coordinator_wake(struct coordinator *c); /* from another thread of the chief's */

#endif
