/* The thread of a member. Before the first step of a view it takes the sums that it lacks; then it takes part in the
 * steps (collective_step.c). A newcomer takes the state of a member, then its sums, step by step. */
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "collective/collective_fetch.h"

enum { PAUSE_MS = 5 };

/* ---- catching up with another member ---- */

/* Under the lock: the sums of the step of now. */
static int follow_init(struct fetch *f, struct collective *c, struct reduction **ret, struct err *e)
{
    if (reduction_new(c->frame, c->at, ret, e) < 0)
        return -1;
    fetch_init(f, c, &FETCH_KEPT, view_pieces(c->config.layout->vector));
    f->sums = reduction_sum_of(*ret, 0);
    return 0;
}

static int follow_fetch(struct fetch *f, struct reduction *r, struct err *e)
{
    if (fetch_all(f, e) < 0)
        return -1;
    for (size_t i = 0; i < reduction_frame(r)->nchunks; i++)
        reduction_set_sum(r, i);
    return 0;
}

/* The sums of one step from `other`, and the update. 1, 0: the epoch is over; -1. */
static int follow_step(struct collective *c, uint64_t epoch, int64_t *ret_found, struct err *e)
{
    AUTO_FINI(fetch) f = { 0 };
    struct reduction *r;
    {
        MUTEX_GUARD(&c->lock);
        if (collective_over(c, epoch))
            return 0;
        if (follow_init(&f, c, &r, e) < 0)
            return -1;
    }
    int made = follow_fetch(&f, r, e);
    *ret_found = f.found_at;
    if (made == 0)
        made = step_follow(c, epoch, r, e);
    reduction_unref(r);
    return made;
}

/* 1: this member has the state of the step at which the view began. */
static int catch_up(struct collective *c, uint64_t epoch, struct err *e)
{
    for (int64_t found;;) {
        {
            MUTEX_GUARD(&c->lock);
            if (collective_over(c, epoch))
                return 0;
            if (c->at >= c->view.at)
                return 1;
        }
        int made = follow_step(c, epoch, &found, e);
        if (made < 0 && peer_worth_retry(e) && !fetch_pause(c, epoch, e, PAUSE_MS))
            return 0;
        if (made < 0 && err_is(e, ERR_STALE)) /* STALE means to the thread that trains that its batch is done */
            e->code = ERR_LOST;
        if (made == 0 || (made < 0 && !peer_worth_retry(e)))
            return made;
        e->code = ERR_NONE;
    }
}

/* A newcomer trains only with the same state as the others. */
static int compare_state(struct collective *c, uint64_t epoch, struct err *e)
{
    AUTO_FINI(fetch) f = { 0 };
    uint64_t own;
    {
        MUTEX_GUARD(&c->lock);
        if (collective_over(c, epoch))
            return 0;
        fetch_init(&f, c, &FETCH_CHECK, 1);
    }
    if (!fetch_patiently(&f, e))
        return e->code == ERR_NONE ? 0 : -1;
    if (shard_state_hash(c->config.shard, &own, e) < 0)
        return -1;
    if (own != f.hash)
        return err_set(e, ERR_LOST, "the state that %s gave differs from its own at batch %lld: %016llx, not %016llx",
                       f.other.name, (long long)f.at, (unsigned long long)own, (unsigned long long)f.hash);
    return 1;
}

static int begin_training(struct collective *c, uint64_t epoch, struct err *e)
{
    bool check;
    int there = catch_up(c, epoch, e);
    if (there <= 0)
        return there;
    {
        MUTEX_GUARD(&c->lock);
        check = c->check && !collective_over(c, epoch);
    }
    return check ? compare_state(c, epoch, e) : 1;
}

static int exchange_train(struct collective *c, uint64_t epoch, struct err *e)
{
    int there = begin_training(c, epoch, e);
    return there > 0 ? step_tasks(c, epoch, e) : there;
}

/* ---- joining ---- */

static bool begin_join(struct collective *c, uint64_t epoch)
{
    MUTEX_GUARD(&c->lock);
    while (!collective_over(c, epoch) && (c->entered || c->readers > 0))
        cond_wait(&c->changed, &c->lock);
    return !collective_over(c, epoch);
}

static int take_all_state(struct collective *c, uint64_t epoch, struct err *e)
{
    AUTO_FINI(fetch) f = { 0 };
    AUTO_FINI(shard_info) info = { 0 };
    if (shard_load_again(c->config.shard, e) < 0)
        return -1;
    shard_brief(c->config.shard, &info);
    {
        MUTEX_GUARD(&c->lock);
        if (collective_over(c, epoch))
            return 0;
        fetch_init(&f, c, &FETCH_STATE, c->config.layout->n);
    }
    f.who = (struct shard_caller){
        .job_uid = info.job_uid, .sender = c->config.name, .generation = info.generation, .incarnation = info.chief
    };
    if (!fetch_patiently(&f, e))
        return e->code == ERR_NONE ? 0 : -1;
    if (shard_serve(c->config.shard, &f.who, e) < 0)
        return -1;
    MUTEX_GUARD(&c->lock);
    if (collective_over(c, epoch))
        return 0;
    c->at = f.found_at;
    c->version = f.version;
    c->joined = true;
    return 1;
}

static void note_behind(struct collective *c, int64_t found)
{
    MUTEX_GUARD(&c->lock);
    c->behind = MAX(groups_below(&c->groups, found) - groups_below(&c->groups, c->at), 0);
}

/* Until the chief starts a view. */
static int follow(struct collective *c, uint64_t epoch, struct err *e)
{
    for (;;) {
        int64_t found = 0;
        int made = follow_step(c, epoch, &found, e);
        if (made == 0)
            return 0;
        if (made < 0 && !err_is(e, ERR_PENDING))
            return -1;
        note_behind(c, made < 0 ? 0 : found); /* PENDING: there is no newer step */
        e->code = ERR_NONE;
    }
}

static int exchange_join(struct collective *c, uint64_t epoch, struct err *e)
{
    if (!begin_join(c, epoch))
        return 0;
    int there = take_all_state(c, epoch, e);
    return there > 0 ? follow(c, epoch, e) : there;
}

/* ---- the thread ---- */

/* It could not join: the chief may name another member. */
static void end_join(struct collective *c, uint64_t epoch, const struct err *e)
{
    MUTEX_GUARD(&c->lock);
    if (collective_over(c, epoch))
        return;
    str_fmt(c->trouble, sizeof(c->trouble), "%s", e->msg);
    c->phase = PHASE_IDLE;
    c->joined = false;
    collective_changed(c);
}

/* It cannot go on in this view. */
static void end_training(struct collective *c, uint64_t epoch, const struct err *e)
{
    MUTEX_GUARD(&c->lock);
    if (!collective_over(c, epoch))
        collective_give_up(c, e);
}

void collective_thread(void *user)
{
    struct collective *c = user;
    for (uint64_t done = 0;;) {
        struct err e = { 0 };
        enum member_phase phase;
        {
            MUTEX_GUARD(&c->lock);
            while (!c->quit && (c->phase == PHASE_IDLE || c->epoch == done))
                cond_wait(&c->due, &c->lock);
            if (c->quit)
                return;
            done = c->epoch;
            phase = c->phase;
        }
        int rc = phase == PHASE_JOINING ? exchange_join(c, done, &e) : exchange_train(c, done, &e);
        if (rc < 0)
            (phase == PHASE_JOINING ? end_join : end_training)(c, done, &e);
    }
}
