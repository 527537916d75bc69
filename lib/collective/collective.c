/* The state of a member under one lock, and the calls of the thread that trains. That thread reads the values between
 * enter and leave; an update waits for it. */
#include "collective/collective.h"

#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "collective/collective_share.h"

/* ---- under the lock ---- */

static void wake_own_thread(struct collective *c)
{
    if (c->phase != PHASE_TRAINING || step_needs_thread(c))
        cond_signal(&c->due);
}

void collective_changed_here(struct collective *c)
{
    cond_broadcast(&c->changed);
    wake_own_thread(c);
}

void collective_changed(struct collective *c)
{
    collective_changed_here(c);
    if (c->server != NULL)
        rpc_server_wake(c->server);
}

bool collective_new_epoch(struct collective *c)
{
    uint64_t epoch = ++c->epoch;
    c->phase = PHASE_IDLE;
    c->ready = c->joined = c->check = c->near = false;
    c->fetcher = FETCHER_NONE;
    c->waits_for[0] = '\0';
    peer_cancel_all(c, c->epoch);
    collective_changed(c);
    while (c->applying || c->adders > 0)
        cond_wait(&c->changed, &c->lock);
    return c->epoch == epoch;
}

bool collective_locate(struct collective *c, struct shard_info *ret)
{
    (c->phase == PHASE_IDLE ? shard_describe : shard_brief)(c->config.shard, ret);
    if (ret->state != SHARD_SERVING && ret->state != SHARD_TERMINATING)
        return false;
    if (c->phase == PHASE_IDLE) {
        c->at = ret->applied.low;
        c->version = ret->version_min;
    }
    return true;
}

void collective_fail(struct collective *c, const struct err *e)
{
    if (c->fatal.code == ERR_NONE)
        c->fatal = *e;
    collective_changed(c);
}

void collective_give_up(struct collective *c, const struct err *e)
{
    c->phase = PHASE_IDLE;
    c->ready = false;
    if (!err_is(e, ERR_NOT_READY)) /* the chief fills the state again */
        collective_fail(c, e);
}

bool collective_over(const struct collective *c, uint64_t epoch)
{
    return c->quit || c->epoch != epoch;
}

/* ---- life ---- */

int collective_new(const struct collective_config *config, struct collective **ret, struct err *e)
{
    struct collective *c = xcalloc(1, sizeof(*c));
    c->config = *config;
    mutex_init(&c->calls_lock);
    mutex_init(&c->lock);
    cond_init(&c->changed);
    cond_init(&c->due);
    c->behind = c->saved_at = -1;
    c->service = shard_service_new(config->shard);
    shard_service_share(c->service, false);
    shard_service_methods(c->service, c->methods);
    if (config->share)
        c->share = share_new(config->layout->vector);
    c->sharers = slot_server_new(share_serve, c);
    if (thread_start(&c->thread, "collective", collective_thread, c, e) < 0) {
        collective_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void collective_free(struct collective *c)
{
    if (c == NULL)
        return;
    {
        MUTEX_GUARD(&c->lock);
        c->quit = true;
        c->epoch++;
        peer_cancel_all(c, c->epoch);
        cond_broadcast(&c->changed);
        cond_signal(&c->due);
    }
    thread_join(&c->thread);
    slot_server_free(c->sharers);
    share_free(c->share);
    donations_free(c);
    reduction_unref(c->now);
    reduction_unref(c->next);
    reduction_unref(c->last);
    reduction_unref(c->lent.to);
    reduction_frame_unref(c->frame);
    giving_fini(&c->giving);
    view_fini(&c->view);
    free(c->owners);
    collective_peers_free(c);
    shard_service_free(c->service);
    cond_fini(&c->due);
    cond_fini(&c->changed);
    mutex_fini(&c->lock);
    mutex_fini(&c->calls_lock);
    free(c);
}

void collective_serve(struct collective *c, struct rpc_server *server)
{
    shard_service_serve(c->service, server);
    MUTEX_GUARD(&c->lock);
    c->server = server;
}

/* ---- leaving ---- */

void collective_terminating(struct collective *c)
{
    MUTEX_GUARD(&c->lock);
    c->terminating = true;
    shard_terminating(c->config.shard);
}

bool collective_may_leave(struct collective *c, int64_t now_ms)
{
    enum { SILENT_MS = 3000 };
    AUTO_FINI(shard_info) info = { 0 };
    MUTEX_GUARD(&c->lock);
    bool left_out = c->phase == PHASE_IDLE && c->led_view > c->view.number;
    return !collective_locate(c, &info) || c->saved_at == c->at || left_out ||
           now_ms - shard_service_heard_ms(c->service) > SILENT_MS;
}

/* ---- the thread that trains ---- */

/* 1: the values are there; 0: not yet. */
static int try_enter(struct collective *c, int64_t at, struct err *e)
{
    if (c->fatal.code != ERR_NONE)
        return err_set(e, c->fatal.code, "%s", c->fatal.msg);
    if (c->phase != PHASE_TRAINING || !c->ready || c->at < at || c->applying)
        return 0;
    if (c->at > at)
        return err_set(e, ERR_STALE, "the step of batch %lld is over", (long long)at);
    return 1;
}

static int explain_wait(const struct collective *c, struct err *e)
{
    if (c->waits_for[0] != '\0')
        return err_set(e, ERR_PENDING, "%s", c->waits_for);
    if (c->phase == PHASE_TRAINING && donations_wait(c))
        return err_set(e, ERR_PENDING, "a worker that joins and is not as far yet");
    if (c->phase == PHASE_TRAINING && c->ready && c->now != NULL) {
        AUTO_FINI(buf) text = BUF_INIT;
        reduction_missing(c->now, &text);
        return err_set(e, ERR_PENDING, "%s", text.data);
    }
    return err_set(e, ERR_PENDING, "%s",
                   c->phase == PHASE_JOINING ? "the state of another worker"
                                             : "the chief to name the workers that train");
}

/* The values of the step that begins with `at`. Makes the update of the one before if its sums are there. 1, or 0: the
 * time is over. */
static int await_step(struct collective *c, int64_t at, int64_t deadline_ms, struct err *e)
{
    for (bool late = false;; c->waiting = false) {
        int there = try_enter(c, at, e);
        if (there != 0)
            return there;
        if (c->at < at && step_is_complete(c)) {
            struct err cause = { 0 };
            uint64_t epoch = c->epoch;
            if (step_make(c, &cause) < 0 && !collective_over(c, epoch))
                collective_give_up(c, &cause);
            continue;
        }
        if (late)
            return 0;
        c->waiting = true;
        wake_own_thread(c);
        late = !cond_wait_until(&c->changed, &c->lock, deadline_ms);
    }
}

static int enter_step(struct collective *c, int64_t at, int64_t next_at, int64_t wait_ms, struct err *e)
{
    MUTEX_GUARD(&c->lock);
    c->near = true;
    int there = await_step(c, at, clock_ms() + wait_ms, e);
    c->near = false;
    c->entered = there > 0;
    if (there > 0)
        giving_begin(c, next_at);
    else
        wake_own_thread(c); /* this one does not come for some time */
    return there == 0 ? explain_wait(c, e) : MIN(there, 0);
}

int collective_enter(struct collective *c, int64_t at, int64_t next_at, int64_t wait_ms, struct err *e)
{
    if (enter_step(c, at, next_at, wait_ms, e) < 0)
        return -1;
    if (lent_take_back(&c->lent, e) < 0) {
        collective_leave(c);
        return -1;
    }
    share_prepare(c);
    return 0;
}

int collective_take_back(struct collective *c, struct err *e)
{
    return lent_take_back(&c->lent, e);
}

uint64_t collective_view_number(const struct collective *c)
{
    return c->giving.epoch;
}

float *collective_gradient(const struct collective *c)
{
    return c->share != NULL ? share_gradient(c->share) : NULL;
}

size_t collective_shared(struct collective *c)
{
    return slot_server_clients(c->sharers);
}

void collective_leave(struct collective *c)
{
    struct given_gradient *g = &c->giving;
    if (g->to == NULL)
        return;
    giving_end(c);
    MUTEX_GUARD(&c->lock);
    c->entered = false;
    if (!collective_over(c, g->epoch)) {
        c->near = g->next_at >= 0 && g->next_at <= reduction_end(g->to);
        if (g->sums)
            c->fetcher = FETCHER_NONE;
    }
    c->lent = (struct lent_gradient){ .to = TAKE(g->to), .ordinal = g->ordinal };
    collective_changed_here(c);
}
