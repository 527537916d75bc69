/* The thread of a member. In a view it fetches the sums of each step and makes the update; before the first step it
 * takes the sums that it lacks. A newcomer takes the state of a member, then its sums, step by step. Each of these is a
 * list of parts from other members, several in flight. */
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "collective/collective_internal.h"

enum { SUM_WAIT_MS = 10000, FOLLOW_WAIT_MS = 200, PAUSE_MS = 5, PAUSE_MAX_MS = 100 };

/* ---- a list of parts ---- */

struct fetch;
struct fetch_kind {
    Trainyard__V1__TransferKind kind;
    uint32_t wait_ms;
    bool (*has)(struct fetch *f, size_t index);                       /* NULL: none is there */
    const struct view_member *(*from)(struct fetch *f, size_t index); /* who has it */
    int (*take)(struct fetch *f, size_t index, const struct rpc_message *m, const Trainyard__V1__TransferReply *reply,
                struct err *e);
};

struct fetch {
    const struct fetch_kind *kind;
    struct collective *c;
    uint64_t epoch, generation, view;
    char job_uid[SHARD_UID_MAX];
    int64_t at;
    size_t n, in_flight;
    struct view_member other;
    struct groups groups;
    struct view members;     /* of the view, for sums */
    struct reduction *to;    /* sums: borrowed */
    float *sums;             /* kept sums: of the whole vector */
    struct shard_caller who; /* state: as whom it is restored */
    int64_t found_at;        /* of the last answer: where the other member is, or the state */
    int64_t version;         /* of the state */
    uint64_t hash;
    struct peer_call *calls; /* [n] */
    bool *taken;             /* [n] */
};

static void fetch_fini(struct fetch *f)
{
    peer_calls_free(f->calls, f->n);
    free(f->taken);
    view_fini(&f->members);
}
DEFINE_AUTO_FINI(fetch, fetch_fini);

/* Under the lock. */
static void fetch_init(struct fetch *f, struct collective *c, const struct fetch_kind *kind, size_t n)
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
                          .generation = f->generation,
                          .epoch = f->epoch,
                          .before = (f->in_flight + 1) * PARAMETERS_PAYLOAD_MAX };
    memcpy(t.job_uid, f->job_uid, sizeof(t.job_uid));
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

/* Fetches all parts that are not there. After an error the same call fetches the rest; no call is in flight then. */
static int fetch_all(struct fetch *f, struct err *e)
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

/* Payload into floats. */
static int copy_payload(const struct rpc_message *m, float *to, size_t n, struct err *e)
{
    if (rpc_message_payload_size(m) != n * sizeof(float) || !rpc_message_copy(m, 0, to, n * sizeof(float)))
        return err_set(e, ERR_INTERNAL, "it sent %zu bytes instead of %zu", rpc_message_payload_size(m),
                       n * sizeof(float));
    return 0;
}

static bool has_sum(struct fetch *f, size_t index)
{
    const struct reduction_frame *frame = reduction_frame(f->to);
    return frame->chunks[index].owner == frame->self || reduction_has_sum(f->to, index);
}

static const struct view_member *from_owner(struct fetch *f, size_t index)
{
    return &f->members.members[reduction_frame(f->to)->chunks[index].owner];
}

static int take_sum(struct fetch *f, size_t index, const struct rpc_message *m,
                    const Trainyard__V1__TransferReply *reply, struct err *e)
{
    const struct chunk_range *r = &reduction_frame(f->to)->chunks[index];
    (void)reply;
    if (copy_payload(m, reduction_sum_of(f->to, index), r->to - r->from, e) < 0)
        return -1;
    reduction_set_sum(f->to, index);
    return 0;
}

static const struct fetch_kind SUMS = { .kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_SUM,
                                        .wait_ms = SUM_WAIT_MS,
                                        .has = has_sum,
                                        .from = from_owner,
                                        .take = take_sum };

static int take_kept(struct fetch *f, size_t index, const struct rpc_message *m,
                     const Trainyard__V1__TransferReply *reply, struct err *e)
{
    const struct chunk_range r = view_piece(f->c->config.layout->vector, index);
    (void)reply;
    return copy_payload(m, f->sums + r.from, r.to - r.from, e);
}

static const struct fetch_kind KEPT = { .kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_KEPT,
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

static const struct fetch_kind STATE = {
    .kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_STATE, .wait_ms = SUM_WAIT_MS, .from = from_other, .take = take_state
};

static int take_hash(struct fetch *f, size_t index, const struct rpc_message *m,
                     const Trainyard__V1__TransferReply *reply, struct err *e)
{
    (void)index, (void)m, (void)e;
    f->hash = reply->hash;
    return 0;
}

static const struct fetch_kind CHECK = {
    .kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_CHECK, .wait_ms = SUM_WAIT_MS, .from = from_other, .take = take_hash
};

/* ---- waiting ---- */

/* Says for what the member waits, and pauses. False: the epoch is over. */
static bool exchange_pause(struct collective *c, uint64_t epoch, const struct err *cause, int64_t pause_ms)
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

/* Fetches until all is there. False: the epoch is over, or it failed (e->code). */
static bool fetch_patiently(struct fetch *f, struct err *e)
{
    for (int64_t pause = PAUSE_MS;; pause = MIN(2 * pause, (int64_t)PAUSE_MAX_MS)) {
        if (fetch_all(f, e) == 0)
            return true;
        if (!peer_worth_retry(e))
            return false;
        if (!exchange_pause(f->c, f->epoch, e, err_is(e, ERR_PENDING) ? 0 : pause)) {
            e->code = ERR_NONE;
            return false;
        }
    }
}

/* ---- the update ---- */

/* Under the lock: waits until no thread reads the values. False: the epoch is over. */
static bool begin_update(struct collective *c, uint64_t epoch)
{
    enum { LOOK_MS = 100 }; /* a newcomer may have been given up */
    while (!collective_over(c, epoch) && (c->entered || c->readers > 0 || donations_full(c)))
        cond_wait_until(&c->changed, &c->lock, clock_ms() + LOOK_MS);
    c->applying = !collective_over(c, epoch);
    return c->applying;
}

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

/* Makes the update of the step. 1: made; 0: the epoch is over. */
static int apply_sums(struct collective *c, uint64_t epoch, struct reduction *r, struct err *e)
{
    int64_t at;
    {
        MUTEX_GUARD(&c->lock);
        if (!begin_update(c, epoch))
            return 0;
        at = c->at;
    }
    int rc = shard_apply_sums(c->config.shard, at, reduction_sums(r), e);
    MUTEX_GUARD(&c->lock);
    c->applying = false;
    if (rc == 0)
        end_update(c, r);
    collective_changed(c);
    return rc < 0 ? -1 : 1;
}

/* ---- a view ---- */

/* Under the lock: the reductions of the step. */
static int begin_step(struct collective *c, struct err *e)
{
    if (c->next != NULL)
        c->now = TAKE(c->next);
    return c->now != NULL ? 0 : reduction_new(c->frame, c->at, &c->now, e);
}

/* Opens the step for gradients. False: the epoch is over. */
static bool open_step(struct collective *c, uint64_t epoch, struct reduction **ret, struct err *e)
{
    {
        MUTEX_GUARD(&c->lock);
        if (collective_over(c, epoch) || begin_step(c, e) < 0)
            return false;
        *ret = reduction_ref(c->now);
        c->adders++; /* what has come early is added now */
    }
    reduction_open(*ret);
    MUTEX_GUARD(&c->lock);
    c->adders--;
    c->ready = !collective_over(c, epoch);
    collective_changed(c);
    return c->ready;
}

/* The gradients of this member's own chunks. */
static bool await_own(struct collective *c, uint64_t epoch, struct reduction *r)
{
    MUTEX_GUARD(&c->lock);
    while (!collective_over(c, epoch) && !reduction_complete(r))
        cond_wait(&c->changed, &c->lock);
    return !collective_over(c, epoch);
}

static bool fetch_sums(struct collective *c, uint64_t epoch, struct reduction *r, struct err *e)
{
    AUTO_FINI(fetch) f = { 0 };
    {
        MUTEX_GUARD(&c->lock);
        if (collective_over(c, epoch))
            return false;
        fetch_init(&f, c, &SUMS, c->frame->nchunks);
        f.to = r;
    }
    return fetch_patiently(&f, e);
}

/* 1: a step was made; 0: the epoch is over. */
static int run_step(struct collective *c, uint64_t epoch, struct err *e)
{
    struct reduction *r = NULL;
    int made = -1;
    if (open_step(c, epoch, &r, e) && fetch_sums(c, epoch, r, e) && await_own(c, epoch, r))
        made = apply_sums(c, epoch, r, e);
    else if (e->code == ERR_NONE)
        made = 0;
    reduction_unref(r);
    return made;
}

/* ---- catching up with another member ---- */

/* Under the lock: the sums of the step of now. */
static int follow_init(struct fetch *f, struct collective *c, struct reduction **ret, struct err *e)
{
    if (reduction_new(c->frame, c->at, ret, e) < 0)
        return -1;
    fetch_init(f, c, &KEPT, view_pieces(c->config.layout->vector));
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
        made = apply_sums(c, epoch, r, e);
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
        if (made < 0 && peer_worth_retry(e) && !exchange_pause(c, epoch, e, PAUSE_MS))
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
        fetch_init(&f, c, &CHECK, 1);
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
    int made = begin_training(c, epoch, e);
    while (made > 0)
        made = run_step(c, epoch, e);
    return made;
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
        fetch_init(&f, c, &STATE, c->config.layout->n);
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
    if (collective_over(c, epoch))
        return;
    c->phase = PHASE_IDLE;
    c->ready = false;
    if (!err_is(e, ERR_NOT_READY)) /* the chief fills the state again */
        collective_fail(c, e);
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
                cond_wait(&c->changed, &c->lock);
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
