/* One thread for each server cancels calls whose caller does not send the request or does not read the answer. It
 * holds a reference to a call while it cancels, because the call may end at the same moment. */
#include "rpc/call_timeout.h"

#include "base/clock.h"
#include "rpc/rpc_status.h"

enum { AT_ONCE = 64 };

void call_timeout_init(struct call_timeout *w)
{
    mutex_init(&w->lock);
    cond_init(&w->changed);
}

void call_timeout_add(struct call_timeout *w, struct timed_call *c, grpc_call *call)
{
    MUTEX_GUARD(&w->lock);
    c->call = call;
    c->previous = NULL;
    c->next = w->calls;
    if (c->next != NULL)
        c->next->previous = c;
    w->calls = c;
}

void call_timeout_remove(struct call_timeout *w, struct timed_call *c)
{
    if (c->call == NULL)
        return;
    MUTEX_GUARD(&w->lock);
    *(c->previous != NULL ? &c->previous->next : &w->calls) = c->next;
    if (c->next != NULL)
        c->next->previous = c->previous;
    c->call = NULL;
}

/* References to calls whose time is over; each is found once. Under the lock. */
static size_t find_late(const struct call_timeout *w, grpc_call *ret[AT_ONCE])
{
    size_t n = 0;
    int64_t now = clock_ms();
    for (struct timed_call *c = w->calls; c != NULL && n < AT_ONCE; c = c->next) {
        int64_t until = atomic_load_explicit(&c->until_ms, memory_order_relaxed);
        if (until == 0 || now < until)
            continue;
        call_timeout_until(c, 0);
        grpc_call_ref(c->call);
        ret[n++] = c->call;
    }
    return n;
}

/* Without the lock, because gRPC returns pieces of the answer from inside this call. */
static void cancel_all(grpc_call *const calls[], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        grpc_call_cancel_with_status(calls[i], GRPC_STATUS_DEADLINE_EXCEEDED, RPC_CALLER_TOO_SLOW, NULL);
        grpc_call_unref(calls[i]);
    }
}

static void call_timeout_loop(void *user)
{
    struct call_timeout *w = user;
    mutex_lock(&w->lock);
    while (!w->stopping) {
        grpc_call *late[AT_ONCE];
        size_t n = find_late(w, late);
        if (n > 0) {
            mutex_unlock(&w->lock);
            cancel_all(late, n);
            mutex_lock(&w->lock);
        }
        if (n < AT_ONCE && !w->stopping)
            cond_wait_until(&w->changed, &w->lock, clock_ms() + w->every_ms);
    }
    mutex_unlock(&w->lock);
}

int call_timeout_start(struct call_timeout *w, int64_t every_ms, struct err *e)
{
    w->every_ms = every_ms;
    return thread_start(&w->thread, "rpc timeouts", call_timeout_loop, w, e);
}

void call_timeout_fini(struct call_timeout *w)
{
    {
        MUTEX_GUARD(&w->lock);
        w->stopping = true;
        cond_broadcast(&w->changed);
    }
    thread_join(&w->thread);
    cond_fini(&w->changed);
    mutex_fini(&w->lock);
}
