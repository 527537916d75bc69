/* coordinator_internal - what the files of the coordinator share: coordinator.c (members, reports, the chief's side)
 * and coordinator_lease.c (which batches a worker gets). All functions need the lock. */
#ifndef TRAINYARD_COORD_COORDINATOR_INTERNAL_H
#define TRAINYARD_COORD_COORDINATOR_INTERNAL_H

#include "base/thread.h"
#include "coord/coordinator.h"
#include "coord/members.h"

struct coordinator {
    struct coordinator_config config;
    struct mutex lock;
    struct cond changed;
    bool woken;
    struct ledger *ledger;
    struct epoch_metrics *metrics;
    struct members members;
    int next_number;
    struct view running; /* of those that train; n 0: none */
    enum job_state state;
    uint64_t generation;
    char message[COORDINATOR_TEXT_MAX], waits_for[COORDINATOR_TEXT_MAX];
    int64_t looked_ms,
        trust_until_ms;              /* of coordinator_workers: its last call; workers are alive until then; 0: none */
    int64_t limit;                   /* ordinals below may be leased */
    char arithmetic[ARITHMETIC_MAX]; /* of all that train, with config.one_arithmetic; "": not known yet */
    struct coordinator_view view;
};

/* Heartbeats of synchronous training are frequent. Of many members they are rarer, so that the chief gets a few hundred
 * a second at most. */
int64_t coordinator_pace(const struct coordinator *c, int64_t ms);
/* The chief looks at the job now (coordinator_wait). */
void coordinator_changed(struct coordinator *c);

/* The member may compute batches now. */
bool coordinator_trains(const struct coordinator *c, const struct member *m);
/* It is not in the view that runs: it holds no batches. */
bool coordinator_left_out(const struct coordinator *c, const struct member *m);
/* Its batches are free. If it is dead, it died on m->suspect, the lowest that was taken from it. */
void coordinator_take_from(struct coordinator *c, struct member *m);
/* The member gets batches: *ret has no range when there are none for it. */
void coordinator_give_leases(struct coordinator *c, struct member *m, const struct lease_request *q, int64_t now_ms,
                             struct coordinator_reply *ret);
/* What a member without batches waits for. */
void coordinator_wait_reason(const struct coordinator *c, const struct member *m, char *out, size_t n);
/* The ordinals below may be leased in answer to this request. */
int64_t coordinator_lease_limit(const struct coordinator *c, const struct lease_request *q);
/* This worker has nothing to do before batches below the limit are done. If another one holds batches on which it does
 * not work, they are given back. No death is counted: the other one may be slow, and what it still computes counts. */
void coordinator_take_back(struct coordinator *c, const struct member *asking, int64_t limit, int64_t now_ms);
/* Synchronous training: the others wait for the batches of a worker that does not answer. A death is counted when it is
 * gone (coordinator_tick). */
void coordinator_take_back_of_silent(struct coordinator *c, struct member *m, int64_t now_ms);

#endif
