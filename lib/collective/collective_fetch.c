/* Parts from other members: each is one call, and a window of them is in flight. */
#include "collective/collective_fetch.h"

#include <string.h>

#include "base/clock.h"
#include "base/str.h"

enum { SUM_WAIT_MS = 10000, FOLLOW_WAIT_MS = 200, PAUSE_MS = 5, PAUSE_MAX_MS = 100 };

/* ---- a list of parts ---- */

void fetch_fini(struct fetch *f)
{
    peer_calls_free(f->calls, f->n);
    free(f->taken);
    view_fini(&f->members);
}

void fetch_init(struct fetch *f, struct collective *c, const struct fetch_kind *kind, size_t n)
{
    *f = (struct fetch){ .kind = kind,
                         .c = c,
                         .epoch = c->epoch,
                         .generation = c->generation,
                         .view = c->view.number,
                         .at = c->at,
                         .groups = c->groups,
                         .n = n,
                         .other = c->other,
                         .calls = peer_calls_new(n),
                         .taken = xcalloc(n, sizeof(*f->taken)) };
    memcpy(f->job_uid, c->job_uid, sizeof(f->job_uid));
    view_copy(&f->members, &c->view);
}

static bool fetch_start(struct fetch *f, size_t index)
{
    struct transfer t = { .request = TRAINYARD__V1__TRANSFER_REQUEST__INIT,
                          .job_uid = f->job_uid,
                          .generation = f->generation,
                          .epoch = f->epoch,
                          .before = (f->in_flight + 1) * PARAMETERS_PAYLOAD_MAX };
    t.request.view = f->view;
    t.request.kind = f->kind->kind;
    t.request.at = f->at;
    t.request.index = (uint32_t)index;
    t.request.wait_ms = f->kind->wait_ms;
    f->calls[index].peer = collective_peer(f->c, f->kind->from(f, index));
    if (!peer_start(f->c, &f->calls[index], &t))
        return false;
    f->in_flight++;
    return true;
}

static int fetch_finish(struct fetch *f, size_t index, struct err *e)
{
    AUTO(rpc_message) *m = NULL;
    PROTOBUF_AUTO *answer = NULL;
    f->in_flight--;
    if (peer_finish(f->c, &f->calls[index], &m, &answer, e) < 0)
        return -1;
    const Trainyard__V1__TransferReply *reply = (const void *)answer;
    f->found_at = reply->at;
    if (f->kind->take(f, index, m, reply, e) < 0)
        return err_wrap(e, "%s (%s)", f->calls[index].peer->name, f->calls[index].peer->address);
    f->taken[index] = true;
    MUTEX_GUARD(&f->c->lock);
    f->c->waits_for[0] = '\0';
    return 0;
}

static void fetch_drain(struct fetch *f)
{
    struct err ignored;
    peer_cancel(f->calls, f->n);
    for (size_t i = 0; i < f->n; i++)
        if (f->calls[i].call != NULL)
            (void)!fetch_finish(f, i, &ignored);
}

static size_t fetch_window(const struct fetch *f)
{
    return CALL_WINDOW * (f->to != NULL ? MAX(f->members.n, (size_t)2) - 1 : 1);
}

/* Starts parts below *left, the last ones first, as long as there is room. */
static int fetch_more(struct fetch *f, size_t *left, struct err *e)
{
    while (*left > 0 && f->in_flight < fetch_window(f)) {
        size_t index = *left - 1;
        bool has = f->taken[index] || (f->kind->has != NULL && f->kind->has(f, index));
        if (!has && !fetch_start(f, index))
            return err_set(e, ERR_STOPPED, "the workers that train change");
        --*left;
    }
    return 0;
}

int fetch_all(struct fetch *f, struct err *e)
{
    size_t left = f->n;
    int rc = fetch_more(f, &left, e);
    for (size_t i = f->n; rc == 0 && i-- > 0;)
        if (f->calls[i].call != NULL && (rc = fetch_finish(f, i, e)) == 0)
            rc = fetch_more(f, &left, e);
    if (rc < 0)
        fetch_drain(f);
    return rc;
}

/* ---- kinds of parts ---- */

static const struct view_member *from_other(struct fetch *f, size_t index)
{
    (void)index;
    return &f->other;
}

/* The payload of an answer, of exactly n floats. */
static int fetch_floats(const struct rpc_message *m, float *to, size_t n, struct err *e)
{
    if (rpc_message_payload_size(m) != n * sizeof(float) || !rpc_message_copy(m, 0, to, n * sizeof(float)))
        return err_set(e, ERR_INTERNAL, "it sent %zu bytes instead of %zu", rpc_message_payload_size(m),
                       n * sizeof(float));
    return 0;
}

int fetch_sum(struct reduction *r, size_t chunk, const struct rpc_message *m, struct err *e)
{
    const struct chunk_range *range = &reduction_frame(r)->chunks[chunk];
    if (fetch_floats(m, reduction_sum_of(r, chunk), range->to - range->from, e) < 0)
        return -1;
    reduction_set_sum(r, chunk);
    return 0;
}

static bool has_sum(struct fetch *f, size_t index)
{
    return reduction_frame_owns(reduction_frame(f->to), index) || reduction_has_sum(f->to, index);
}

static const struct view_member *from_owner(struct fetch *f, size_t index)
{
    return &f->members.members[reduction_frame(f->to)->chunks[index].owner];
}

static int take_sum(struct fetch *f, size_t index, const struct rpc_message *m,
                    const Trainyard__V1__TransferReply *reply, struct err *e)
{
    (void)reply;
    return fetch_sum(f->to, index, m, e);
}

const struct fetch_kind FETCH_SUMS = { .kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_SUM,
                                       .wait_ms = SUM_WAIT_MS,
                                       .has = has_sum,
                                       .from = from_owner,
                                       .take = take_sum };

static int take_kept(struct fetch *f, size_t index, const struct rpc_message *m,
                     const Trainyard__V1__TransferReply *reply, struct err *e)
{
    const struct chunk_range r = view_piece(f->c->config.layout->vector, index);
    (void)reply;
    return fetch_floats(m, f->sums + r.from, r.to - r.from, e);
}

const struct fetch_kind FETCH_KEPT = { .kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_KEPT,
                                       .wait_ms = FOLLOW_WAIT_MS,
                                       .from = from_other,
                                       .take = take_kept };

static int take_state(struct fetch *f, size_t index, const struct rpc_message *m,
                      const Trainyard__V1__TransferReply *reply, struct err *e)
{
    const struct segment_spec *g = &f->c->config.layout->segments[index];
    const struct ordinal_set applied = { .low = reply->at, .high = reply->at };
    struct payload_walk walk;
    struct bytes_in payload = codec_payload(m, &walk);
    if (reply->at < 0 || reply->at > INT64_MAX / 4 || groups_first(&f->groups, reply->at) != reply->at)
        return err_set(e, ERR_INTERNAL, "its state is of batch %lld, which does not begin a step",
                       (long long)reply->at);
    f->version = reply->version;
    return shard_restore(f->c->config.shard, &f->who, g->id, true, reply->version, &applied, &payload, e);
}

const struct fetch_kind FETCH_STATE = {
    .kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_STATE, .wait_ms = SUM_WAIT_MS, .from = from_other, .take = take_state
};

static int take_hash(struct fetch *f, size_t index, const struct rpc_message *m,
                     const Trainyard__V1__TransferReply *reply, struct err *e)
{
    (void)index, (void)m, (void)e;
    f->hash = reply->hash;
    return 0;
}

const struct fetch_kind FETCH_CHECK = {
    .kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_CHECK, .wait_ms = SUM_WAIT_MS, .from = from_other, .take = take_hash
};

/* ---- waiting ---- */

bool fetch_pause(struct collective *c, uint64_t epoch, const struct err *cause, int64_t pause_ms)
{
    MUTEX_GUARD(&c->lock);
    if (collective_over(c, epoch))
        return false;
    if (err_is(cause, ERR_LOST) || err_is(cause, ERR_TIMEOUT))
        str_fmt(c->waits_for, sizeof(c->waits_for), "%s", cause->msg);
    int64_t until = clock_ms() + pause_ms;
    while (!collective_over(c, epoch) && cond_wait_until(&c->changed, &c->lock, until))
        continue;
    return !collective_over(c, epoch);
}

bool fetch_patiently(struct fetch *f, struct err *e)
{
    for (int64_t pause = PAUSE_MS;; pause = MIN(2 * pause, (int64_t)PAUSE_MAX_MS)) {
        if (fetch_all(f, e) == 0)
            return true;
        if (!peer_worth_retry(e))
            return false;
        if (!fetch_pause(f->c, f->epoch, e, err_is(e, ERR_PENDING) ? 0 : pause)) {
            e->code = ERR_NONE;
            return false;
        }
    }
}
