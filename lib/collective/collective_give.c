/* The gradient that the thread that trains gives: to this member's own chunks, and in calls to the owners of the
 * others. The answers to the last gradient of a step bring the sums of these chunks, if the gradients of the other
 * members come in time. */
#include <string.h>

#include "base/clock.h"
#include "collective/collective_fetch.h"
#include "collective/collective_share.h"

/* A gradient is given again for so long, then the caller looks after the job first. */
enum { GIVE_MS = 1000, RETRY_MS = 5 };
/* An answer waits so long for the sum. */
enum { SUM_IN_ANSWER_MS = 20 };

void giving_fini(struct given_gradient *g)
{
    peer_calls_free(g->calls, g->ncalls);
    free(g->owners);
    *g = (struct given_gradient){ 0 };
}

/* Memory for the calls of one gradient, and whom to call. */
static void giving_size(struct given_gradient *g, size_t chunks, size_t members)
{
    if (g->ncalls != chunks || g->nowners != members) {
        giving_fini(g);
        g->calls = peer_calls_new(chunks);
        g->ncalls = chunks;
        g->owners = xcalloc(members, sizeof(*g->owners));
        g->nowners = members;
    }
}

void giving_begin(struct collective *c, int64_t next_at)
{
    struct given_gradient *g = &c->giving;
    giving_size(g, c->frame->nchunks, c->view.n);
    memcpy(g->owners, c->owners, g->nowners * sizeof(*g->owners));
    memcpy(g->job_uid, c->job_uid, sizeof(g->job_uid));
    g->to = reduction_ref(c->now);
    g->epoch = c->epoch;
    g->next_at = next_at;
    g->sums = false;
    g->gradient = NULL;
    g->left = g->own_left = g->ncalls;
    g->in_flight = 0;
}

/* Answers the members that wait for a sum of this one. */
static void answer_others(struct collective *c)
{
    struct rpc_server *server;
    {
        MUTEX_GUARD(&c->lock);
        collective_changed_here(c);
        server = c->server;
    }
    if (server != NULL)
        rpc_server_answer(server);
}

/* True: the chunk has its sum now. */
static bool give_own(struct collective *c, struct given_gradient *g, size_t chunk)
{
    const struct chunk_range *r = &reduction_frame(g->to)->chunks[chunk];
    struct one_range range = { .data = g->gradient + r->from, .size = (r->to - r->from) * sizeof(float) };
    bool complete;
    struct err e = { 0 };
    if (reduction_lend(g->to, chunk, g->ordinal, range, &complete, &e) < 0) {
        MUTEX_GUARD(&c->lock);
        collective_fail(c, &e);
    }
    return complete;
}

/* Whether the answers bring the sums: with the last gradient of the step, if no other thread fetches them. */
static bool claim_sums(struct collective *c, struct given_gradient *g)
{
    if (g->sums || g->next_at <= reduction_at(g->to))
        return g->sums;
    MUTEX_GUARD(&c->lock);
    if (!collective_over(c, g->epoch) && c->fetcher == FETCHER_NONE) {
        c->fetcher = FETCHER_TRAINER;
        g->sums = true;
    }
    return g->sums;
}

static bool give_other(struct collective *c, struct given_gradient *g, size_t chunk)
{
    const struct reduction_frame *f = reduction_frame(g->to);
    const struct chunk_range *r = &f->chunks[chunk];
    struct peer_call *k = &g->calls[chunk];
    struct transfer t = { .request = TRAINYARD__V1__TRANSFER_REQUEST__INIT,
                          .job_uid = g->job_uid,
                          .generation = f->generation,
                          .epoch = g->epoch };
    k->peer = g->owners[r->owner == CHUNK_OF_ALL ? 1 - f->self : r->owner];
    t.request.view = f->view;
    t.request.kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_GRADIENT;
    t.request.at = reduction_at(g->to);
    t.request.ordinal = g->ordinal;
    t.request.index = (uint32_t)chunk;
    t.request.want_sum = k->wants_sum = r->owner != CHUNK_OF_ALL && claim_sums(c, g);
    t.request.wait_ms = t.request.want_sum ? SUM_IN_ANSWER_MS : r->owner == CHUNK_OF_ALL ? GIVE_MS : 0;
    t.piece = (struct rpc_piece){ .data = g->gradient + r->from, .size = (r->to - r->from) * sizeof(float) };
    t.before = (g->in_flight + 1) * CHUNK_FLOATS * sizeof(float);
    enum share_start shared = share_start(c, k, &t);
    if (shared == SHARE_FULL || (shared == SHARE_NOT && !peer_start(c, k, &t)))
        return false;
    g->in_flight++;
    return true;
}

static bool in_flight(const struct peer_call *k)
{
    return k->call != NULL || k->shared != NULL;
}

/* To the other members, as far as there is room for calls. */
static void give_others(struct collective *c, struct given_gradient *g, size_t from)
{
    const struct reduction_frame *f = reduction_frame(g->to);
    for (; g->left > 0 && f->chunks[g->left - 1].from >= from && g->in_flight < CALL_WINDOW * g->nowners; g->left--)
        if (f->chunks[g->left - 1].owner != f->self && !give_other(c, g, g->left - 1))
            return;
}

void collective_give(struct collective *c, int64_t ordinal, const float *gradient, size_t from)
{
    struct given_gradient *g = &c->giving;
    const struct reduction_frame *f = reduction_frame(g->to);
    bool complete = false;
    g->ordinal = ordinal;
    g->gradient = gradient;
    give_others(c, g, from);
    for (; g->own_left > 0 && f->chunks[g->own_left - 1].from >= from; g->own_left--)
        if (reduction_frame_owns(f, g->own_left - 1))
            complete = give_own(c, g, g->own_left - 1) || complete;
    if (complete)
        answer_others(c);
}

/* The sum of a chunk, in the answer. */
static int take_sum(struct given_gradient *g, size_t chunk, const struct rpc_message *m, struct err *e)
{
    const struct peer *owner = g->calls[chunk].peer;
    return fetch_sum(g->to, chunk, m, e) < 0 ? err_wrap(e, "%s (%s)", owner->name, owner->address) : 0;
}

static int finish_call(struct collective *c, struct given_gradient *g, size_t chunk, struct err *e)
{
    struct peer_call *k = &g->calls[chunk];
    AUTO(rpc_message) *m = NULL;
    PROTOBUF_AUTO *answer = NULL;
    if (k->shared != NULL)
        return share_finish(c, k, k->wants_sum ? g->to : NULL, chunk, e);
    if (peer_finish(c, k, &m, &answer, e) < 0)
        return -1;
    return k->wants_sum ? take_sum(g, chunk, m, e) : 0;
}

/* Waits for the answer of a chunk. */
static int give_finish(struct collective *c, struct given_gradient *g, size_t chunk, struct err *e)
{
    struct err cause = { 0 };
    bool wants = g->calls[chunk].wants_sum;
    g->in_flight--;
    if (finish_call(c, g, chunk, &cause) == 0)
        return 0;
    if (wants && err_is(&cause, ERR_PENDING)) /* the owner has the gradient */
        return 0;
    return err_set(e, cause.code, "%s", cause.msg);
}

int lent_take_back(struct lent_gradient *l, struct err *e)
{
    int rc = 0;
    if (l->to == NULL)
        return 0;
    const struct reduction_frame *f = reduction_frame(l->to);
    for (size_t i = f->own_first; i < f->own_end && rc == 0; i++)
        rc = reduction_keep(l->to, i, l->ordinal, e);
    reduction_unref(TAKE(l->to));
    return rc;
}

void giving_end(struct collective *c)
{
    struct given_gradient *g = &c->giving;
    struct err ignored;
    peer_cancel(g->calls, g->ncalls);
    for (size_t i = 0; i < g->ncalls; i++)
        if (in_flight(&g->calls[i]))
            (void)!give_finish(c, g, i, &ignored);
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

static int give_over(struct collective *c, const struct err *cause, struct err *e)
{
    giving_end(c);
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
        while (chunk > 0 && !in_flight(&g->calls[chunk - 1]))
            chunk--;
        if (chunk > 0 && give_finish(c, g, chunk - 1, &cause) < 0 &&
            (!peer_worth_retry(&cause) || !give_pause(c, g, deadline_ms) || !give_other(c, g, chunk - 1)))
            return give_over(c, &cause, e);
        size_t left = g->left;
        collective_give(c, g->ordinal, g->gradient, 0);
        if (g->left == left && g->in_flight == 0 && left > 0)
            return give_over(c, &(struct err){ .code = ERR_PENDING, .msg = "the workers that train change" }, e);
    }
    reduction_delivered(g->to, g->ordinal);
    return 0;
}
