/* thread - POSIX threads with scope guards, a monotonic condition variable and a bounded queue.
 *
 *     struct mutex lock;
 *     { MUTEX_GUARD(&s->lock); s->count++; }        // unlocked at the end of the scope
 */
#ifndef TRAINYARD_BASE_THREAD_H
#define TRAINYARD_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

struct mutex {
    pthread_mutex_t m;
};
struct cond {
    pthread_cond_t c;
};

void mutex_init(struct mutex *m);
void mutex_fini(struct mutex *m);
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);
static inline void mutex_guard_(struct mutex **m)
{
    mutex_unlock(*m);
}
static inline struct mutex *mutex_locked_(struct mutex *m)
{
    mutex_lock(m);
    return m;
}
#define MUTEX_GUARD_CAT2_(a, b) a##b
#define MUTEX_GUARD_CAT_(a, b)  MUTEX_GUARD_CAT2_(a, b)
#define MUTEX_GUARD(m)                                                                                                 \
    __attribute__((cleanup(mutex_guard_), unused)) struct mutex *MUTEX_GUARD_CAT_(guard_, __LINE__) = mutex_locked_(m)

void cond_init(struct cond *c);
void cond_fini(struct cond *c);
void cond_signal(struct cond *c);
void cond_broadcast(struct cond *c);
void cond_wait(struct cond *c, struct mutex *m);
/* Waits until signalled or clock_ms() >= deadline_ms; false when the deadline passed. */
bool cond_wait_until(struct cond *c, struct mutex *m, int64_t deadline_ms);

/* A named joinable thread; all signals blocked in it (signals belong to main). */
struct thread {
    pthread_t id;
    bool started;
};
MUST_USE int thread_start(struct thread *t, const char *name, void (*fn)(void *user), void *user, struct err *e);
void thread_join(struct thread *t); /* no-op when not started */
size_t thread_cpus(void);           /* CPUs that this process may run on; at least 1 */

#endif
