/* Thin wrappers of pthread. A lock that fails is a programming error and aborts; condition variables wait on the
 * monotonic clock. */
#include "base/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A lock that fails is a programming error (used after fini, or not initialised). */
static void abort_on_error(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "error: %s: %s\n", what, strerror(rc));
    abort();
}

void mutex_init(struct mutex *m)
{
    abort_on_error(pthread_mutex_init(&m->m, NULL), "mutex_init");
}

void mutex_fini(struct mutex *m)
{
    abort_on_error(pthread_mutex_destroy(&m->m), "mutex_fini");
}

void mutex_lock(struct mutex *m)
{
    abort_on_error(pthread_mutex_lock(&m->m), "mutex_lock");
}

void mutex_unlock(struct mutex *m)
{
    abort_on_error(pthread_mutex_unlock(&m->m), "mutex_unlock");
}

void cond_init(struct cond *c)
{
    pthread_condattr_t attr;
    abort_on_error(pthread_condattr_init(&attr), "cond_init");
    abort_on_error(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC), "cond_init");
    abort_on_error(pthread_cond_init(&c->c, &attr), "cond_init");
    pthread_condattr_destroy(&attr);
}

void cond_fini(struct cond *c)
{
    abort_on_error(pthread_cond_destroy(&c->c), "cond_fini");
}

void cond_signal(struct cond *c)
{
    abort_on_error(pthread_cond_signal(&c->c), "cond_signal");
}

void cond_broadcast(struct cond *c)
{
    abort_on_error(pthread_cond_broadcast(&c->c), "cond_broadcast");
}

void cond_wait(struct cond *c, struct mutex *m)
{
    abort_on_error(pthread_cond_wait(&c->c, &m->m), "cond_wait");
}

bool cond_wait_until(struct cond *c, struct mutex *m, int64_t deadline_ms)
{
    int64_t at = deadline_ms > 0 ? deadline_ms : 0;
    struct timespec t = { .tv_sec = at / 1000, .tv_nsec = at % 1000 * 1000000 };
    int rc = pthread_cond_timedwait(&c->c, &m->m, &t);
    if (rc == ETIMEDOUT)
        return false;
    abort_on_error(rc, "cond_wait_until");
    return true;
}

struct start {
    char name[16]; /* the kernel's limit, with the NUL */
    void (*fn)(void *user);
    void *user;
};

static void *thread_main(void *arg)
{
    auto_free struct start *start = arg;
    pthread_setname_np(pthread_self(), start->name);
    start->fn(start->user);
    return NULL;
}

int thread_start(struct thread *t, const char *name, void (*fn)(void *user), void *user, struct err *e)
{
    struct start *start = xcalloc(1, sizeof(*start));
    snprintf(start->name, sizeof(start->name), "%s", name);
    start->fn = fn;
    start->user = user;

    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited by the new thread */
    int rc = pthread_create(&t->id, NULL, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0) {
        free(start);
        errno = rc;
        return err_errno(e, ERR_NOMEM, "cannot start thread '%s'", name);
    }
    t->started = true;
    return 0;
}

void thread_join(struct thread *t)
{
    if (!t->started)
        return;
    abort_on_error(pthread_join(t->id, NULL), "thread_join");
    t->started = false;
}

size_t thread_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
}
