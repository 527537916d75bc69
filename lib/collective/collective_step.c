/* The steps of a view. The thread that trains gets the sums of a step in the answers to its last gradient, and makes
 * the update when it comes for the next step: then no other thread is woken. The member's own thread does what that one
 * leaves: it opens the first step, fetches sums that did not come with an answer, and makes the update if the thread
 * that trains does not come. */
#include "base/clock.h"
#include "collective/collective_fetch.h"

/* ---- the update ---- */

/* Under the lock: the update is made. r: its sums, also those that another member gave: if that one is lost, a third
 * that is still behind takes them from here. */
static void end_update(struct collective *c, struct reduction *r)
{
    c->at = groups_end(&c->groups, c->at);
    c->version++;
    c->ready = false;
    c->waits_for[0] = '\0';
    donations_keep(c, r, clock_ms());
    reduction_unref(c->last);
    c->last = reduction_ref(r);
    if (c->now == r)
        reduction_unref(TAKE(c->now));
}

/* Under the lock, with `applying`; releases the lock meanwhile. */
static int update(struct collective *c, struct reduction *r, struct err *e)
{
    int64_t at = c->at;
    mutex_unlock(&c->lock);
    int rc = shard_apply_sums(c->config.shard, at, reduction_sums(r), e);
    mutex_lock(&c->lock);
    if (rc == 0)
        end_update(c, r);
    return rc;
}

/* Under the lock: waits until no thread reads the values. False: the epoch is over. */
static bool begin_update(struct collective *c, uint64_t epoch)
{
    enum { LOOK_MS = 100 }; /* a newcomer may have been given up */
    while (!collective_over(c, epoch) && (c->entered || c->readers > 0 || donations_wait(c)))
        cond_wait_until(&c->changed, &c->lock, clock_ms() + LOOK_MS);
    c->applying = !collective_over(c, epoch);
    return c->applying;
}

int step_follow(struct collective *c, uint64_t epoch, struct reduction *r, struct err *e)
{
    MUTEX_GUARD(&c->lock);
    if (!begin_update(c, epoch))
        return 0;
    int rc = update(c, r, e);
    c->applying = false;
    collective_changed(c);
    return rc < 0 ? -1 : 1;
}

/* ---- in a view ---- */

/* Under the lock, with `applying`; releases the lock while gradients that came early are added. */
static int open_step(struct collective *c, uint64_t epoch, struct err *e)
{
    if (collective_over(c, epoch))
        return 0;
    if (c->next != NULL)
        c->now = TAKE(c->next);
    if (c->now == NULL && reduction_new(c->frame, c->at, &c->now, e) < 0)
        return -1;
    struct reduction *r = reduction_ref(c->now);
    mutex_unlock(&c->lock);
    reduction_open(r);
    mutex_lock(&c->lock);
    reduction_unref(r);
    c->ready = !collective_over(c, epoch);
    return 0;
}

static int begin_first_step(struct collective *c, struct err *e)
{
    c->applying = true;
    int rc = open_step(c, c->epoch, e);
    c->applying = false;
    collective_changed(c);
    return rc;
}

bool step_is_complete(const struct collective *c)
{
    return c->phase == PHASE_TRAINING && c->ready && !c->applying && !c->entered && c->readers == 0 &&
           reduction_complete(c->now) && !donations_wait(c);
}

int step_make(struct collective *c, struct err *e)
{
    uint64_t epoch = c->epoch;
    struct reduction *r = reduction_ref(c->now);
    c->applying = true;
    int rc = update(c, r, e);
    if (rc == 0)
        rc = open_step(c, epoch, e);
    c->applying = false;
    reduction_unref(r);
    collective_changed(c);
    return rc;
}

static int fetch_sums(struct collective *c, struct err *e)
{
    AUTO_FINI(fetch) f = { 0 };
    uint64_t epoch = c->epoch;
    struct reduction *r = reduction_ref(c->now);
    c->fetcher = FETCHER_OWN;
    fetch_init(&f, c, &FETCH_SUMS, c->frame->nchunks);
    f.to = r;
    mutex_unlock(&c->lock);
    bool there = fetch_patiently(&f, e);
    mutex_lock(&c->lock);
    if (!collective_over(c, epoch))
        c->fetcher = FETCHER_NONE;
    reduction_unref(r);
    collective_changed(c);
    return there || e->code == ERR_NONE ? 0 : -1;
}

/* ---- the member's own thread ---- */

enum step_task { TASK_WAIT, TASK_OPEN, TASK_FETCH, TASK_MAKE };

/* alone: the thread that trains is not expected. */
static enum step_task task_of(const struct collective *c, bool alone)
{
    if (c->applying)
        return TASK_WAIT;
    if (!c->ready)
        return TASK_OPEN;
    alone = alone || (!c->entered && !c->near);
    if ((alone || c->waiting) && c->fetcher == FETCHER_NONE && !reduction_fetched(c->now))
        return TASK_FETCH;
    return alone && !c->waiting && step_is_complete(c) ? TASK_MAKE : TASK_WAIT;
}

bool step_needs_thread(const struct collective *c)
{
    return task_of(c, false) != TASK_WAIT;
}

int step_tasks(struct collective *c, uint64_t epoch, struct err *e)
{
    static int (*const TASKS[])(struct collective * c, struct err * e) = {
        [TASK_OPEN] = begin_first_step, [TASK_FETCH] = fetch_sums, [TASK_MAKE] = step_make
    };
    enum { NEAR_MS = 20 }; /* the thread that trains is expected for so long */
    int64_t at = -1, since_ms = 0;
    MUTEX_GUARD(&c->lock);
    while (!collective_over(c, epoch) && c->phase == PHASE_TRAINING) {
        int64_t now_ms = clock_ms();
        if (c->at != at) {
            at = c->at;
            since_ms = now_ms;
        }
        enum step_task task = task_of(c, now_ms - since_ms >= NEAR_MS);
        if (task == TASK_WAIT)
            cond_wait_until(&c->due, &c->lock, now_ms + NEAR_MS);
        else if (TASKS[task](c, e) < 0)
            return -1;
    }
    return 0;
}
