/* watch - inside of rpc.h: ends calls of a server that take too long.
 *
 * A caller may begin a call and never send its message, or never read its answer: each holds memory of the server, as
 * long as the caller likes. So the server names a time for each of the two, and a thread looks once in a while and
 * cancels calls whose time is over. Time that a handler takes is not limited.
 */
#ifndef TRAINYARD_RPC_WATCH_H
#define TRAINYARD_RPC_WATCH_H

#include <grpc/grpc.h>
#include <stdatomic.h>

#include "base/thread.h"

struct watched { /* a part of the call's own structure */
    struct watched *next, *previous;
    grpc_call *call;
    atomic_int_fast64_t until_ms; /* by clock_ms(); 0: no limit now */
};
struct watch {
    struct mutex lock;
    struct cond changed;
    struct watched *calls; /* under the lock */
    bool stopping;
    int64_t every_ms;
    struct thread thread;
};

void watch_init(struct watch *w);
void watch_fini(struct watch *w); /* ends the thread; no call is in it any more */
/* every_ms: how often it looks. */
MUST_USE int watch_start(struct watch *w, int64_t every_ms, struct err *e);
/* The call stays valid until watch_remove returns. */
void watch_add(struct watch *w, struct watched *c, grpc_call *call);
void watch_remove(struct watch *w, struct watched *c); /* also of one that was never added */
static inline void watch_until(struct watched *c, int64_t until_ms)
{
    atomic_store_explicit(&c->until_ms, until_ms, memory_order_relaxed);
}

#endif
