/* fair_queue - the order in which jobs send their requests, and how many at a time. Pure: time is passed in.
 *
 * A job that has requests to send waits in the queue. Each time there is room, the job with the fewest recent requests
 * is chosen, and of several such jobs the one that has waited longest. So a small job beside large ones waits for the
 * requests in flight, not for thousands of others. The count of recent requests is halved each second, so no job
 * starves. The chosen job may send a bounded number. The bodies in flight of all jobs together are bounded as well: a
 * request that cannot be sent yet is not built.
 */
#ifndef TRAINYARD_CONTROL_FAIR_QUEUE_H
#define TRAINYARD_CONTROL_FAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAIR_QUEUE_REQUESTS = 16,              /* of a job, each time it is chosen */
    FAIR_QUEUE_BYTES_PER_JOB = 512 * 1024, /* about: the last body may exceed it */
    FAIR_QUEUE_BYTES = 4 * 1024 * 1024,    /* bodies in flight of all jobs, about */
    FAIR_QUEUE_HALF_LIFE_MS = 1000,
};

struct fair_ticket { /* a job's place in the queue */
    struct fair_ticket *prev, *next;
    bool waits;
    int64_t since_ms; /* since when it waits */
    int recent;       /* its recent requests, as of recent_ms */
    int64_t recent_ms;
};
struct fair_queue {
    struct fair_ticket *first, *last; /* in order of arrival */
    size_t bytes;                     /* bodies in flight */
};

/* A ticket that waits keeps its place. */
void fair_queue_add(struct fair_queue *q, struct fair_ticket *t, int64_t now_ms);
void fair_queue_remove(struct fair_queue *q, struct fair_ticket *t); /* no effect when it does not wait */
/* May any job send? */
bool fair_queue_has_room(const struct fair_queue *q);
/* The ticket that is next; it stays in the queue. NULL: none waits, or none may send. */
struct fair_ticket *fair_queue_next(const struct fair_queue *q, int64_t now_ms);
/* Its job sent a request. */
void fair_queue_count(struct fair_ticket *t, int64_t now_ms);
/* May a chosen job send one more? sent: since it was chosen; bytes_then: q->bytes when it was. */
bool fair_queue_may_send(const struct fair_queue *q, int sent, size_t bytes_then);

#endif
