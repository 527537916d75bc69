/* lease_queue - the batches that a worker holds: ranges that are leased and not begun, and batches that its training
 * loop has taken. Pure; the caller has a lock. */
#ifndef TRAINYARD_COORD_LEASE_QUEUE_H
#define TRAINYARD_COORD_LEASE_QUEUE_H

#include "coord/coordinator_client.h"

enum {
    LEASE_QUEUE_TAKEN = 64, /* batches that the training loop may have taken and not finished */
    LEASE_QUEUE_MAX = 56,   /* ranges that are not begun */
    LEASE_QUEUE_HELD = 2 * (LEASE_QUEUE_TAKEN + LEASE_QUEUE_MAX),
    LEASE_QUEUE_LEASE = COORDINATOR_LEASE_RANGES + 1, /* ranges that a lease may bring */
};

struct lease_queue {
    int64_t range[2 * LEASE_QUEUE_MAX]; /* half-open, ascending */
    size_t n;                           /* ranges */
    int64_t taken[LEASE_QUEUE_TAKEN];
    size_t ntaken;
};

/* Whether there is room for a lease, and beyond it for one of lower batches (lease_queue_put_back). */
bool lease_queue_has_room(const struct lease_queue *q);
void lease_queue_add(struct lease_queue *q, int64_t first, int64_t end);
int64_t lease_queue_left(const struct lease_queue *q);  /* batches that are not begun */
int64_t lease_queue_first(const struct lease_queue *q); /* the lowest of them, or -1 */
/* Whether another batch may be taken. */
bool lease_queue_has_work(const struct lease_queue *q);
/* The lowest batch; it has work. */
int64_t lease_queue_take(struct lease_queue *q);
/* A batch that was taken is done, or given up. */
void lease_queue_end(struct lease_queue *q, int64_t ordinal);
/* A batch that was taken is not begun. If there is no room for a lease then, the highest ranges are given up. */
void lease_queue_put_back(struct lease_queue *q, int64_t ordinal);
/* Gives up what is not begun. */
void lease_queue_clear(struct lease_queue *q);
/* All that is held, as ascending half-open ranges without overlap; returns the number of values. */
size_t lease_queue_held(const struct lease_queue *q, int64_t out[LEASE_QUEUE_HELD]);

#endif
