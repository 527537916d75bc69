/* call_timeout - part of rpc.h: ends calls of a server that take too long.
 *
 * A caller may begin a call and never send its message, or never read its answer. Each holds memory of the server for
 * an unlimited time. So the server sets a time limit for each of the two, and a thread cancels calls whose time is
 * over. The time of a handler is not limited.
 */
#ifndef TRAINYARD_RPC_CALL_TIMEOUT_H
#define TRAINYARD_RPC_CALL_TIMEOUT_H

#include <grpc/grpc.h>
#include <stdatomic.h>

#include "base/thread.h"

struct timed_call { /* a part of the call's own structure */
    struct timed_call *next, *previous;
    grpc_call *call;
    atomic_int_fast64_t until_ms; /* by clock_ms(); 0: no limit now */
};
struct call_timeout {
    struct mutex lock;
    struct cond changed;
    struct timed_call *calls; /* under the lock */
    bool stopping;
    int64_t every_ms;
    struct thread thread;
};

void call_timeout_init(struct call_timeout *w);
void call_timeout_fini(struct call_timeout *w); /* ends the thread; no call is in it any more */
/* every_ms: how often it checks. */
MUST_USE int call_timeout_start(struct call_timeout *w, int64_t every_ms, struct err *e);
/* The call stays valid until call_timeout_remove returns. */
void call_timeout_add(struct call_timeout *w, struct timed_call *c, grpc_call *call);
void call_timeout_remove(struct call_timeout *w, struct timed_call *c); /* also of one that was never added */
static inline void call_timeout_until(struct timed_call *c, int64_t until_ms)
{
    atomic_store_explicit(&c->until_ms, until_ms, memory_order_relaxed);
}

#endif
