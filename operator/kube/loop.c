/* epoll for descriptors, a binary heap for timers. A callback may clear any descriptor or timer of the same round,
 * whose callback is then not called. */
#include "kube/loop_internal.h"

#include <errno.h>
#include <sys/epoll.h>

#include "base/clock.h"

enum { WATCHED_MAX = 4, READY_MAX = 64, WAIT_MAX_MS = 3600 * 1000 };

struct watched_fd {
    struct loop_fd on;
    void (*fn)(void *user);
    void *user;
};

struct loop {
    int epoll;
    bool stopped, failed;
    struct err failure;
    struct loop_clock clock;
    struct timer **heap; /* from 1 */
    size_t ntimers, cap;
    int64_t round_ms; /* while timers run: the time at which they are due; else INT64_MIN */
    struct watched_fd watched[WATCHED_MAX];
    /* The round's descriptors; one that a callback clears is removed */
    struct epoll_event ready[READY_MAX];
    int nready;
};

struct loop *loop_new(void)
{
    struct loop *l = xcalloc(1, sizeof(*l));

    l->round_ms = INT64_MIN;
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll < 0)
        err_put_errno(&l->failure, ERR_INTERNAL, "epoll");
    l->failed = l->epoll < 0;
    return l;
}

void loop_free(struct loop *l)
{
    if (l == NULL)
        return;
    fd_close(l->epoll);
    free(l->heap);
    free(l);
}

/* ---- time ---- */

int64_t loop_now(const struct loop *l)
{
    return l->clock.is_virtual ? l->clock.now_ms : clock_ms();
}

struct loop_clock *loop_clock(struct loop *l)
{
    return &l->clock;
}

/* ---- timers ---- */

int64_t loop_next_due(const struct loop *l)
{
    return l->ntimers > 0 ? l->heap[1]->due_ms : INT64_MAX;
}

static void heap_place(struct loop *l, struct timer *t, size_t at)
{
    l->heap[at] = t;
    t->place = at;
}

static void sift_up(struct loop *l, struct timer *t, size_t at)
{
    for (; at > 1 && l->heap[at / 2]->due_ms > t->due_ms; at /= 2)
        heap_place(l, l->heap[at / 2], at);
    heap_place(l, t, at);
}

static void sift_down(struct loop *l, struct timer *t, size_t at)
{
    for (size_t child; (child = 2 * at) <= l->ntimers; at = child) {
        if (child < l->ntimers && l->heap[child + 1]->due_ms < l->heap[child]->due_ms)
            child++;
        if (l->heap[child]->due_ms >= t->due_ms)
            break;
        heap_place(l, l->heap[child], at);
    }
    heap_place(l, t, at);
}

static void sift(struct loop *l, struct timer *t, size_t at)
{
    if (at > 1 && l->heap[at / 2]->due_ms > t->due_ms)
        sift_up(l, t, at);
    else
        sift_down(l, t, at);
}

void timer_set(struct loop *l, struct timer *t, int64_t due_ms, void (*fn)(void *user), void *user)
{
    t->due_ms = MAX(due_ms, l->round_ms); /* after the timers that are due now */
    t->fn = fn;
    t->user = user;
    if (t->place != 0) {
        sift(l, t, t->place);
        return;
    }
    if (l->ntimers + 1 >= l->cap) {
        l->cap = MAX(l->cap * 2, (size_t)64);
        l->heap = xrealloc(l->heap, l->cap * sizeof(struct timer *));
    }
    sift_up(l, t, ++l->ntimers);
}

void timer_clear(struct loop *l, struct timer *t)
{
    size_t at = t->place;

    if (at == 0)
        return;
    t->place = 0;
    struct timer *last = l->heap[l->ntimers--];
    if (last != t)
        sift(l, last, at);
}

/* Runs at most as many timers as were set at the start, because timers that set themselves again must not starve I/O.
 */
static void run_timers(struct loop *l, int64_t now_ms)
{
    l->round_ms = now_ms;
    for (size_t n = l->ntimers; n > 0 && l->ntimers > 0 && l->heap[1]->due_ms <= now_ms; n--) {
        struct timer *t = l->heap[1];
        timer_clear(l, t);
        l->clock.callbacks++;
        t->fn(t->user);
    }
    l->round_ms = INT64_MIN;
}

/* ---- descriptors ---- */

static uint32_t to_epoll(int wanted)
{
    return ((wanted & LOOP_READ) != 0 ? (uint32_t)EPOLLIN : 0U) |
           ((wanted & LOOP_WRITE) != 0 ? (uint32_t)EPOLLOUT : 0U);
}

static int from_epoll(uint32_t events)
{
    int ready =
        ((events & (uint32_t)EPOLLIN) != 0 ? LOOP_READ : 0) | ((events & (uint32_t)EPOLLOUT) != 0 ? LOOP_WRITE : 0);
    return (events & (uint32_t)(EPOLLERR | EPOLLHUP)) != 0 ? LOOP_READ | LOOP_WRITE : ready;
}

int loop_fd_set(struct loop *l, struct loop_fd *w, struct err *e)
{
    struct epoll_event event = { .events = to_epoll(w->wanted), .data = { .ptr = w } };

    if (epoll_ctl(l->epoll, w->set ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, w->fd, &event) < 0)
        return err_errno(e, ERR_INTERNAL, "descriptor %d in epoll", w->fd);
    w->set = true;
    return 0;
}

void loop_fd_clear(struct loop *l, struct loop_fd *w)
{
    struct epoll_event event = { .events = 0 };

    if (!w->set)
        return;
    (void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, &event);
    w->set = false;
    for (int i = 0; i < l->nready; i++)
        if (l->ready[i].data.ptr == w)
            l->ready[i].data.ptr = NULL;
}

void loop_fail(struct loop *l, const struct err *e)
{
    if (!l->failed)
        l->failure = *e;
    l->failed = true;
}

static void watched_ready(void *user, int fd, int ready)
{
    struct watched_fd *w = user;
    (void)fd;
    (void)ready;
    w->fn(w->user);
}

static struct watched_fd *find_watched(struct loop *l, int fd)
{
    for (size_t i = 0; i < WATCHED_MAX; i++)
        if (fd < 0 ? !l->watched[i].on.set : l->watched[i].on.set && l->watched[i].on.fd == fd)
            return &l->watched[i];
    return NULL;
}

void loop_watch_fd(struct loop *l, int fd, void (*fn)(void *user), void *user)
{
    struct watched_fd *w = find_watched(l, fd);
    struct err e;

    if (fn == NULL) {
        if (w != NULL)
            loop_fd_clear(l, &w->on);
        return;
    }
    if (w == NULL)
        w = find_watched(l, -1);
    if (w == NULL) {
        err_put(&e, ERR_INTERNAL, "more than %d descriptors are watched", WATCHED_MAX);
        loop_fail(l, &e);
        return;
    }
    bool set = w->on.set;
    *w = (struct watched_fd){ { .fd = fd, .wanted = LOOP_READ, .fn = watched_ready, .user = w, .set = set }, fn, user };
    if (loop_fd_set(l, &w->on, &e) < 0)
        loop_fail(l, &e);
}

/* ---- rounds ---- */

static int wait_for(const struct loop *l, int64_t max_wait_ms)
{
    int64_t wait = MIN(max_wait_ms, (int64_t)WAIT_MAX_MS), now_ms = loop_now(l);

    if (l->clock.is_virtual) /* it does not move while the loop waits */
        wait = loop_next_due(l) <= now_ms ? 0 : wait;
    else if (l->ntimers > 0)
        wait = MIN(wait, loop_next_due(l) - now_ms);
    return (int)MAX(wait, 0);
}

int loop_turn(struct loop *l, int64_t max_wait_ms, struct err *e)
{
    if (!l->failed) {
        l->nready = epoll_wait(l->epoll, l->ready, READY_MAX, wait_for(l, max_wait_ms));
        if (l->nready < 0 && errno != EINTR)
            return err_errno(e, ERR_INTERNAL, "epoll");
        for (int i = 0; i < l->nready; i++) {
            struct loop_fd *w = l->ready[i].data.ptr;
            if (w == NULL)
                continue;
            l->clock.callbacks++;
            w->fn(w->user, w->fd, from_epoll(l->ready[i].events));
        }
        l->nready = 0;
        run_timers(l, loop_now(l));
    }
    if (l->failed)
        return err_set(e, l->failure.code, "%s", l->failure.msg);
    return 0;
}

int loop_run(struct loop *l, struct err *e)
{
    while (!l->stopped)
        if (loop_turn(l, WAIT_MAX_MS, e) < 0)
            return -1;
    l->stopped = false;
    return 0;
}

void loop_stop(struct loop *l)
{
    l->stopped = true;
}
