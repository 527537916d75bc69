/* loop - the event loop of the operator's only thread: timers, HTTP transfers and a wake-up for signals. Nothing
 * blocks.
 *
 * All users of a loop (clients, reflectors, queues, leases, events) are called back from loop_run() and belong to that
 * thread, so nothing in the operator needs a lock. A callback may add and remove anything, including itself. Times are
 * loop_now(): clock_ms(), or in tests a virtual clock.
 */
#ifndef TRAINYARD_KUBE_LOOP_H
#define TRAINYARD_KUBE_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

struct loop;
struct loop *loop_new(void);
void loop_free(struct loop *l); /* after all its users */
DEFINE_AUTO(loop, loop_free);

/* Runs until loop_stop(). ERR_INTERNAL when the HTTP library fails. */
MUST_USE int loop_run(struct loop *l, struct err *e);
void loop_stop(struct loop *l);
/* One round: waits at most `max_wait_ms` for something to happen and handles it. For tests. */
MUST_USE int loop_turn(struct loop *l, int64_t max_wait_ms, struct err *e);
int64_t loop_now(const struct loop *l);
/* Calls fn when fd is readable (base/stop.h's stop_fd()); at most four descriptors. fn NULL: removes the callback. */
void loop_watch_fd(struct loop *l, int fd, void (*fn)(void *user), void *user);

/* A timer is part of its owner's structure and is zero before its first use. Setting a timer that is already set moves
 * it. Cost O(log timers). */
struct timer {
    int64_t due_ms;
    void (*fn)(void *user);
    void *user;
    size_t place; /* in the loop's heap, from 1; 0: not set */
};
void timer_set(struct loop *l, struct timer *t, int64_t due_ms, void (*fn)(void *user), void *user);
void timer_clear(struct loop *l, struct timer *t);
static inline bool timer_is_set(const struct timer *t)
{
    return t->place != 0;
}

int64_t loop_next_due(const struct loop *l); /* of the next timer; INT64_MAX: none is set */

/* For tests (test/fake/api_server.h): a clock that only its owner moves, and what tells that nothing more happens
 * before it is moved. */
struct loop_clock {
    bool is_virtual; /* the time is now_ms */
    int64_t now_ms;
    uint64_t callbacks; /* of descriptors and timers that have run */
    int transfers;      /* HTTP requests under way */
};
struct loop_clock *loop_clock(struct loop *l);

#endif
