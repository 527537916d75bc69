/* fair - in which order jobs send their requests, and how many at a time. Pure: time is passed in.
 *
 * A job that has requests to send waits in the line. Each time there is room, the job that sent the fewest of late is
 * chosen, and of those the one that has waited longest. So a small job beside large ones waits for what is under way,
 * and not for thousands of requests. What a job sent counts half after a second, so no job waits forever. A job that is
 * chosen may send a bounded number. The bodies of the requests under way of all jobs together are bounded as well: a
 * request that cannot go yet is not made up.
 */
#ifndef TRAINYARD_CONTROL_FAIR_H
#define TRAINYARD_CONTROL_FAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAIR_REQUESTS = 16,           /* of a job, each time it is chosen */
    FAIR_BYTES_EACH = 512 * 1024, /* their bodies, about: the last one may pass it */
    FAIR_BYTES = 4 * 1024 * 1024, /* bodies under way, of all jobs, about */
    FAIR_HALF_MS = 1000,
};

struct fair_job {
    struct fair_job *prev, *next;
    bool waits;
    int64_t since_ms; /* since when it waits */
    int recent;       /* requests it sent of late, at recent_ms */
    int64_t recent_ms;
};
struct fair {
    struct fair_job *first, *last; /* in the order in which they came */
    size_t bytes;                  /* bodies under way */
};

/* A job that waits keeps its place. */
void fair_wait(struct fair *f, struct fair_job *j, int64_t now_ms);
void fair_leave(struct fair *f, struct fair_job *j); /* nothing to do when it does not wait */
/* May any job send? */
bool fair_has_room(const struct fair *f);
/* The job whose turn it is, still in the line; NULL: none waits, or none may send. */
struct fair_job *fair_next(const struct fair *f, int64_t now_ms);
/* It sent one. */
void fair_count(struct fair_job *j, int64_t now_ms);
/* May a chosen job send one more? sent: since it was chosen; bytes_then: f->bytes when it was. */
bool fair_goes_on(const struct fair *f, int sent, size_t bytes_then);

#endif
