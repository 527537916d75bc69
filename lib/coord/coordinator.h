/* coordinator - the state of a job that the chief coordinates: its members, the leases of batches, the reports.
 *
 * Workers and evaluators call it from any thread: one of gRPC's, or that of a worker in the same process. The chief's
 * loop polls it and makes the decisions. Everything is under one lock, held for microseconds; nothing here does I/O.
 * Time is a parameter.
 */
#ifndef TRAINYARD_COORD_COORDINATOR_H
#define TRAINYARD_COORD_COORDINATOR_H

#include "collective/view.h"
#include "coord/coordinator_client.h"
#include "coord/epoch_metrics.h"
#include "shard/groups.h"
#include "tensor/arithmetic.h"

struct coordinator_config {
    const struct model *model; /* borrowed */
    const char *job_uid;       /* borrowed */
    uint64_t incarnation;      /* of the chief's process */
    struct ordinal_space space;
    uint64_t layout_hash;
    uint32_t ps_count;
    uint64_t placement_hash;
    int64_t batches_per_epoch, total; /* ordinals */
    int64_t window;                   /* of the epoch metrics */
    uint32_t lease_ms;                /* a worker without a call for this long loses its leases */
    uint32_t heartbeat_ms;
    size_t members_max; /* 0: COORDINATOR_MEMBERS_MAX */
    /* Synchronous training; size 0: asynchronous. Each worker gets its share of every group, some groups ahead. The
     * batches of a worker that was not heard for silence_ms are given to others, because all wait for them. With groups
     * these two times are longer where there are many members. */
    struct groups groups;
    int64_t sharers; /* threads of this process that will share each group, also before all have registered */
    uint32_t silence_ms;
    bool views;          /* MultiWorkerMirrored: members of a view get batches, and no others (coordinator_set_view) */
    bool one_arithmetic; /* a worker with another one than the first is refused (tensor/arithmetic.h) */
};

struct coordinator *coordinator_new(const struct coordinator_config *config);
void coordinator_free(struct coordinator *c);
DEFINE_AUTO(coordinator, coordinator_free);

/* ---- the calls of workers and evaluators, from any thread (coord/coordinator_client.h) ---- */

MUST_USE int coordinator_register(struct coordinator *c, const struct register_request *q, int64_t now_ms,
                                  struct coordinator_reply *ret, struct err *e);
MUST_USE int coordinator_heartbeat(struct coordinator *c, const struct heartbeat_request *q, int64_t now_ms,
                                   struct coordinator_reply *ret, struct err *e);
MUST_USE int coordinator_lease(struct coordinator *c, const struct lease_request *q, int64_t now_ms,
                               struct coordinator_reply *ret, struct err *e);
MUST_USE int coordinator_leave(struct coordinator *c, const struct leave_request *q, int64_t now_ms,
                               struct coordinator_reply *ret, struct err *e);
MUST_USE int coordinator_report_evaluation(struct coordinator *c, const struct evaluation_request *q, int64_t now_ms,
                                           struct coordinator_reply *ret, struct err *e);
MUST_USE int coordinator_request_stop(struct coordinator *c, const struct stop_job_request *q, int64_t now_ms,
                                      struct coordinator_reply *ret, struct err *e);

/* ---- the chief's side ---- */

/* What workers receive from now on, with their next call. */
void coordinator_set(struct coordinator *c, enum job_state state, uint64_t generation, const char *message);
/* The chief ends: those that train in its process must end, too. */
void coordinator_stop(struct coordinator *c, const char *message);
void coordinator_observe(struct coordinator *c, const struct ordinal_set *done, int64_t begun_ms);
/* Members that did not call for too long are lost, and their leases free. */
void coordinator_tick(struct coordinator *c, int64_t now_ms);
/* Ordinals below the limit may be leased (0 at first). The chief is woken when workers have completed all of them. */
void coordinator_allow_below(struct coordinator *c, int64_t limit);
/* Synchronous training: no ordinal at or above the returned one was leased, and none is until the next
 * coordinator_allow_below(). It begins a group, or is the total. */
int64_t coordinator_hold(struct coordinator *c);
/* With views: the one that runs now. What others hold goes to its members. n 0: none runs, and the batches stay where
 * they are. */
void coordinator_set_view(struct coordinator *c, const struct view *v);
/* What workers wait for once all ordinals below the limit are completed. */
void coordinator_set_wait_reason(struct coordinator *c, const char *text);
/* With one_arithmetic: that of an earlier run, in place of the first worker's. "": none. */
void coordinator_set_arithmetic(struct coordinator *c, const char *text);
/* "": no worker has registered yet. */
void coordinator_arithmetic(struct coordinator *c, char ret[ARITHMETIC_MAX]);
/* Gives access to the epoch metrics under the lock, for a short time. */
void coordinator_metrics(struct coordinator *c, void (*use)(void *user, struct epoch_metrics *t), void *user);

enum { COORDINATOR_TEXT_MAX = 240, EVALUATION_MAX = 32 };
struct coordinator_view {
    int64_t done, total, done_low; /* ordinals */
    bool finished;                 /* all are done */
    bool drained; /* all batches that may be leased are completed, but not applied everywhere yet: poll the ps now */
    bool working; /* some worker holds a batch */
    int members, workers; /* live members; workers: without evaluators */
    int training;         /* workers of the view that runs; without one, or without views: all */
    int64_t poisoned;     /* ordinal on which several workers died, or -1 */
    bool diverged;
    int64_t diverged_ordinal;
    char diverged_by[64];
    char diverged_what[96]; /* "loss nan"; "": the worker detected it itself */
    bool stop_requested;
    char stop_reason[COORDINATOR_TEXT_MAX];
    /* Above that of this chief: a worker says that there is a newer chief. A worker's word raises it by one at most. */
    uint64_t highest_generation;
    uint64_t steps, staleness_sum, compute_ns, network_ns, data_ns, wait_ns; /* sums of all reports */
    int64_t evaluating_step;                                                 /* announced by an evaluator, or -1 */
    int64_t evaluated_step; /* newest reported evaluation, or -1; values below */
    size_t nevaluation;
    char evaluation_names[EVALUATION_MAX][64];
    double evaluation[EVALUATION_MAX];
    char waiting[COORDINATOR_TEXT_MAX]; /* what one of the workers waits for, or "" */
    uint64_t stalls;                    /* how often batches were given to others, because their worker stalled */
    char stalled[COORDINATOR_TEXT_MAX]; /* the last time: "worker-3 has not computed batches 120 to 127 for 30 s" */
};
void coordinator_view(struct coordinator *c, struct coordinator_view *ret);
/* The workers of the job, also those that have left or are not heard: in the order in which they came. Returns their
 * number; *ret: free(). alive: a worker was heard within silence_ms, if this process was not stopped meanwhile. */
size_t coordinator_workers(struct coordinator *c, int64_t now_ms, struct known_member **ret);
/* Blocks until the chief has something to decide (drained, divergence, stop, a new member), or until
 * deadline_ms. */
void coordinator_wait(struct coordinator *c, int64_t deadline_ms);
void coordinator_wake(struct coordinator *c); /* from another thread of the chief */

#endif
