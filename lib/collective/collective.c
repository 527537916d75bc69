/* The state of a member under one lock, and the calls of the thread that trains. That thread reads the values between
 * enter and leave; an update waits for it. */
#include "collective/collective.h"

#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "collective/collective_internal.h"

/* A gradient is given again for so long, then the caller looks after the job first. */
enum { GIVE_MS = 1000, RETRY_MS = 5 };

/* ---- under the lock ---- */

void collective_changed(struct collective *c)
{
    cond_broadcast(&c->changed);
    if (c->server != NULL)
        rpc_server_wake(c->server);
}

bool collective_new_epoch(struct collective *c)
{
    uint64_t epoch = ++c->epoch;
    c->phase = PHASE_IDLE;
    c->ready = c->joined = c->check = false;
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
    c->behind = c->saved_at = -1;
    c->service = shard_service_new(config->shard);
    shard_service_share(c->service, false);
    shard_service_methods(c->service, c->methods);
    if (thread_start(&c->thread, "collective", collective_thread, c, e) < 0) {
        collective_free(c);
        return -1;
    }
    *ret = c;
    return 0;
}

static void giving_fini(struct given_gradient *g)
{
    peer_calls_free(g->calls, g->ncalls);
    g->calls = NULL;
    g->ncalls = 0;
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
    }
    thread_join(&c->thread);
    donations_free(c);
    reduction_unref(c->now);
    reduction_unref(c->next);
    reduction_unref(c->last);
    reduction_frame_unref(c->frame);
    giving_fini(&c->giving);
    view_fini(&c->view);
    collective_peers_free(c);
    shard_service_free(c->service);
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

/* Memory for the calls of one gradient. */
static void giving_begin(struct collective *c)
{
    struct given_gradient *g = &c->giving;
    size_t n = c->frame->nchunks;
    if (g->ncalls != n) {
        giving_fini(g);
        g->calls = peer_calls_new(n);
        g->ncalls = n;
    }
    g->to = reduction_ref(c->now);
    g->epoch = c->epoch;
    g->gradient = NULL;
    g->left = n;
    g->in_flight = 0;
}

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
    if (c->phase == PHASE_TRAINING && c->ready && c->now != NULL) {
        AUTO_FINI(buf) text = BUF_INIT;
        reduction_missing(c->now, &text);
        return err_set(e, ERR_PENDING, "%s", text.data);
    }
    return err_set(e, ERR_PENDING, "%s",
                   c->phase == PHASE_JOINING ? "the state of another worker"
                                             : "the chief to name the workers that train");
}

int collective_enter(struct collective *c, int64_t at, int64_t wait_ms, struct err *e)
{
    int64_t deadline_ms = clock_ms() + wait_ms;
    MUTEX_GUARD(&c->lock);
    for (;;) {
        int there = try_enter(c, at, e);
        if (there < 0)
            return -1;
        if (there > 0)
            break;
        if (!cond_wait_until(&c->changed, &c->lock, deadline_ms) && try_enter(c, at, e) == 0)
            return explain_wait(c, e);
    }
    c->entered = true;
    giving_begin(c);
    return 0;
}

static void give_own(struct collective *c, struct given_gradient *g, size_t chunk)
{
    const struct chunk_range *r = &reduction_frame(g->to)->chunks[chunk];
    struct one_range range = { .data = g->gradient + r->from, .size = (r->to - r->from) * sizeof(float) };
    struct bytes_in bytes = one_range(&range);
    bool complete;
    struct err e = { 0 };
    int rc = reduction_add(g->to, chunk, g->ordinal, &bytes, &complete, &e);
    if (rc == 0 && !complete)
        return;
    MUTEX_GUARD(&c->lock);
    if (rc < 0)
        collective_fail(c, &e);
    else
        collective_changed(c);
}

/* The job and the peer of a chunk, as the view of the reduction has them. */
static bool give_target(struct collective *c, const struct given_gradient *g, size_t owner, struct transfer *t,
                        struct view_member *ret)
{
    MUTEX_GUARD(&c->lock);
    if (collective_over(c, g->epoch))
        return false;
    *ret = c->view.members[owner];
    memcpy(t->job_uid, c->job_uid, sizeof(t->job_uid));
    return true;
}

static bool give_other(struct collective *c, struct given_gradient *g, size_t chunk)
{
    const struct reduction_frame *f = reduction_frame(g->to);
    const struct chunk_range *r = &f->chunks[chunk];
    struct peer_call *k = &g->calls[chunk];
    struct view_member owner;
    struct transfer t = { .request = TRAINYARD__V1__TRANSFER_REQUEST__INIT,
                          .generation = f->generation,
                          .epoch = g->epoch };
    if (!give_target(c, g, r->owner, &t, &owner))
        return false;
    k->peer = collective_peer(c, &owner);
    t.request.view = f->view;
    t.request.kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_GRADIENT;
    t.request.at = reduction_at(g->to);
    t.request.ordinal = g->ordinal;
    t.request.index = (uint32_t)chunk;
    t.piece = (struct rpc_piece){ .data = g->gradient + r->from, .size = (r->to - r->from) * sizeof(float) };
    t.before = (g->in_flight + 1) * CHUNK_FLOATS * sizeof(float);
    if (!peer_start(c, k, &t))
        return false;
    g->in_flight++;
    return true;
}

void collective_give(struct collective *c, int64_t ordinal, const float *gradient, size_t from)
{
    struct given_gradient *g = &c->giving;
    const struct reduction_frame *f = reduction_frame(g->to);
    g->ordinal = ordinal;
    g->gradient = gradient;
    for (; g->left > 0 && f->chunks[g->left - 1].from >= from && g->in_flight < CALL_WINDOW; g->left--)
        if (f->chunks[g->left - 1].owner == f->self)
            give_own(c, g, g->left - 1);
        else if (!give_other(c, g, g->left - 1))
            return;
}

/* Waits for the answer of a chunk. */
static int give_finish(struct collective *c, struct given_gradient *g, size_t chunk, struct err *e)
{
    AUTO(rpc_message) *m = NULL;
    PROTOBUF_AUTO *answer = NULL;
    g->in_flight--;
    return peer_finish(c, &g->calls[chunk], &m, &answer, e);
}

static void give_drain(struct collective *c, struct given_gradient *g)
{
    struct err ignored;
    peer_cancel(g->calls, g->ncalls);
    for (size_t i = 0; i < g->ncalls; i++)
        if (g->calls[i].call != NULL)
            (void)!give_finish(c, g, i, &ignored);
}

void collective_leave(struct collective *c)
{
    if (c->giving.to == NULL)
        return;
    give_drain(c, &c->giving);
    reduction_unref(TAKE(c->giving.to));
    MUTEX_GUARD(&c->lock);
    c->entered = false;
    cond_broadcast(&c->changed);
}

/* Pauses before a call is made again. False: no more attempts are of use now. */
static bool give_pause(struct collective *c, const struct given_gradient *g, int64_t deadline_ms)
{
    MUTEX_GUARD(&c->lock);
    if (clock_ms() >= deadline_ms || collective_over(c, g->epoch))
        return false;
    cond_wait_until(&c->changed, &c->lock, clock_ms() + RETRY_MS);
    return !collective_over(c, g->epoch);
}

static int give_over(struct collective *c, struct given_gradient *g, const struct err *cause, struct err *e)
{
    give_drain(c, g);
    if (peer_worth_retry(cause))
        return err_set(e, ERR_PENDING, "%s", cause->msg);
    return err_set(e, cause->code, "%s", cause->msg);
}

int collective_given(struct collective *c, struct err *e)
{
    struct given_gradient *g = &c->giving;
    struct err cause = { 0 };
    int64_t deadline_ms = clock_ms() + GIVE_MS;
    while (g->left > 0 || g->in_flight > 0) {
        size_t chunk = g->ncalls;
        while (chunk > 0 && g->calls[chunk - 1].call == NULL)
            chunk--;
        if (chunk > 0 && give_finish(c, g, chunk - 1, &cause) < 0 &&
            (!peer_worth_retry(&cause) || !give_pause(c, g, deadline_ms) || !give_other(c, g, chunk - 1)))
            return give_over(c, g, &cause, e);
        size_t left = g->left;
        collective_give(c, g->ordinal, g->gradient, 0);
        if (g->left == left && g->in_flight == 0 && left > 0)
            return give_over(c, g, &(struct err){ .code = ERR_PENDING, .msg = "the workers that train change" }, e);
    }
    return 0;
}
