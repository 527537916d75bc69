/* What others call: the methods of Peer, and of Parameters those by which the chief fills and reads the state. */
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "collective/collective_share.h"

/* A request that asks for what is there later waits for this long, at most. */
enum { WAIT_MAX_MS = 10000 };

/* ---- payload of answers ---- */

static void lent_reduction(void *user)
{
    reduction_unref(user);
}

static void reply_floats(const struct transfer_request *x, struct reduction *r, struct chunk_range range)
{
    x->reply->pieces[x->reply->npieces++] = (struct rpc_piece){ .data = reduction_sums(r) + range.from,
                                                                .size = (range.to - range.from) * sizeof(float),
                                                                .done = lent_reduction,
                                                                .user = reduction_ref(r) };
}

static void lent_state(void *user)
{
    state_copy_unref(user);
}

static int wait_more(const struct transfer_request *x, const char *what, struct err *e)
{
    x->reply->again_ms = MIN(x->q->wait_ms, (uint32_t)WAIT_MAX_MS);
    return err_set(e, ERR_PENDING, "%s", what);
}

/* ---- who may call: under the lock ---- */

int transfer_check_view(const struct transfer_request *x, struct err *e)
{
    const struct collective *c = x->c;
    uint64_t generation = x->caller->generation, view = x->q->view;
    bool later = generation > c->generation || (generation == c->generation && view > c->view.number);
    if (later)
        return err_set(e, ERR_NOT_READY, "it does not know view %llu yet", (unsigned long long)view);
    if (c->phase != PHASE_TRAINING || generation != c->generation || view != c->view.number)
        return err_set(e, ERR_FENCED, "view %llu is over", (unsigned long long)view);
    if (view_find(&c->view, x->caller->name, x->caller->incarnation) < 0)
        return err_set(e, ERR_FENCED, "%s is not a member of view %llu", x->caller->name, (unsigned long long)view);
    return 0;
}

/* A member of the view, or a newcomer. *ret: what is kept for it, or NULL. */
static int check_follower(const struct transfer_request *x, struct donation **ret, struct err *e)
{
    struct donation *d = donation_for(x->c, x->caller->name, x->caller->incarnation);
    *ret = d;
    if (d == NULL)
        return transfer_check_view(x, e);
    d->heard_ms = clock_ms();
    return 0;
}

/* ---- gradients ---- */

/* Under the lock: *ret NULL: the step is over. */
static int find_reduction(struct collective *c, int64_t at, struct reduction **ret, struct err *e)
{
    *ret = NULL;
    if (at < c->at)
        return 0;
    if (c->now != NULL && at == reduction_at(c->now)) {
        *ret = c->now;
        return 0;
    }
    int64_t coming = c->now != NULL ? reduction_end(c->now) : c->at;
    if (at != coming)
        return err_set(e, ERR_NOT_READY, "it is at batch %lld, the gradient is of the step of batch %lld",
                       (long long)c->at, (long long)at);
    if (c->next == NULL && reduction_new(c->frame, at, &c->next, e) < 0)
        return -1;
    if (c->now != NULL) /* the sender has made the step that is open here */
        reduction_delivered_all(c->now);
    *ret = c->next;
    return 0;
}

int transfer_begin(const struct transfer_request *x, struct reduction **ret, struct err *e)
{
    struct collective *c = x->c;
    MUTEX_GUARD(&c->lock);
    if (transfer_check_view(x, e) < 0 || find_reduction(c, x->q->at, ret, e) < 0)
        return -1;
    if (*ret == NULL)
        return 0;
    reduction_ref(*ret);
    c->adders++;
    return 0;
}

void transfer_end(const struct transfer_request *x, struct reduction *r, bool added, bool complete)
{
    struct collective *c = x->c;
    if (added)
        reduction_delivered(r, x->q->ordinal);
    reduction_unref(r);
    MUTEX_GUARD(&c->lock);
    c->adders--;
    if (complete || (c->now != NULL && reduction_complete(c->now)))
        collective_changed(c);
    else if (c->adders == 0)
        cond_broadcast(&c->changed);
}

static int add_gradient(const struct transfer_request *x, struct err *e)
{
    struct reduction *r;
    struct payload_walk walk;
    struct bytes_in bytes = codec_payload(x->message, &walk);
    bool complete;
    if (transfer_begin(x, &r, e) < 0)
        return -1;
    if (r == NULL)
        return 0; /* applied already, with this gradient from elsewhere */
    int rc = reduction_add(r, x->q->index, x->q->ordinal, &bytes, &complete, e);
    transfer_end(x, r, rc == 0, complete);
    return rc;
}

/* ---- sums ---- */

/* Under the lock: the reduction that has, or gets, the sum that the request names; NULL: the step is over, or comes. */
static int find_sum(const struct transfer_request *x, struct reduction **ret, struct err *e)
{
    const struct collective *c = x->c;
    if (transfer_check_view(x, e) < 0)
        return -1;
    if (!reduction_frame_owns(c->frame, x->q->index))
        return err_set(e, ERR_INPUT, "chunk %u of %zu belongs to another member", x->q->index, c->frame->nchunks);
    bool last = c->last != NULL && reduction_at(c->last) == x->q->at && reduction_frame(c->last) == c->frame;
    *ret = last ? c->last : c->now != NULL && reduction_at(c->now) == x->q->at ? c->now : NULL;
    return 0;
}

static int sum_missing(const struct transfer_request *x, struct reduction *r, struct err *e)
{
    AUTO_FINI(buf) text = BUF_INIT;
    if (x->q->wait_ms > 0 && x->reply->waited_ms < (int64_t)x->q->wait_ms) /* it is not an answer yet */
        return wait_more(x, "gradients are missing", e);
    reduction_missing(r, &text);
    return wait_more(x, text.data, e);
}

static int on_sum(struct transfer_request *x, struct err *e)
{
    struct collective *c = x->c;
    struct reduction *r;
    MUTEX_GUARD(&c->lock);
    if (find_sum(x, &r, e) < 0)
        return -1;
    if (r == NULL)
        return x->q->at < c->at ? err_set(e, ERR_STALE, "the step of batch %lld is over", (long long)x->q->at)
                                : wait_more(x, "the step before is not over", e);
    if (!reduction_has_sum(r, x->q->index))
        return sum_missing(x, r, e);
    reply_floats(x, r, c->frame->chunks[x->q->index]);
    return 0;
}

int transfer_answered(const struct transfer_request *x, struct reduction **ret, const char **ret_missing, struct err *e)
{
    struct reduction *r;
    *ret = NULL;
    if (x->q->want_sum) {
        *ret_missing = "gradients are missing";
        if (find_sum(x, &r, e) < 0)
            return -1;
        *ret = r != NULL && reduction_has_sum(r, x->q->index) ? r : NULL;
        return *ret != NULL;
    }
    *ret_missing = "the step before is not over";
    if (x->q->wait_ms == 0)
        return 1;
    return transfer_check_view(x, e) < 0 ? -1 : x->q->at <= x->c->at;
}

/* When it is handled again the gradient is there already. */
static int on_gradient(struct transfer_request *x, struct err *e)
{
    struct reduction *sum;
    const char *missing;
    if (!x->reply->again && add_gradient(x, e) < 0)
        return -1;
    MUTEX_GUARD(&x->c->lock);
    int there = transfer_answered(x, &sum, &missing, e);
    if (there > 0 && sum != NULL)
        reply_floats(x, sum, x->c->frame->chunks[x->q->index]);
    return there == 0 ? wait_more(x, missing, e) : MIN(there, 0);
}

/* ---- for members that are behind ---- */

static struct reduction *find_kept(const struct collective *c, const struct donation *d, int64_t at)
{
    if (c->last != NULL && reduction_at(c->last) == at)
        return c->last;
    for (size_t i = 0; d != NULL && i < d->nkept; i++)
        if (reduction_at(d->kept[i]) == at)
            return d->kept[i];
    return NULL;
}

static int on_kept(struct transfer_request *x, struct err *e)
{
    struct collective *c = x->c;
    struct donation *d;
    MUTEX_GUARD(&c->lock);
    if (check_follower(x, &d, e) < 0)
        return -1;
    if (d != NULL && donation_drop_below(d, x->q->at))
        collective_changed(c);
    struct reduction *r = find_kept(c, d, x->q->at);
    if (r == NULL)
        return x->q->at < c->at
                   ? err_set(e, ERR_STALE, "the sums of the step of batch %lld are not kept", (long long)x->q->at)
                   : wait_more(x, "the step before is not over", e);
    size_t floats = c->config.layout->vector;
    if (x->q->index >= view_pieces(floats))
        return err_set(e, ERR_INPUT, "piece %u of %zu", x->q->index, view_pieces(floats));
    x->answer.at = c->at;
    reply_floats(x, r, view_piece(floats, x->q->index));
    return 0;
}

static int on_state(struct transfer_request *x, struct err *e)
{
    struct collective *c = x->c;
    MUTEX_GUARD(&c->lock);
    struct donation *d = donation_for(c, x->caller->name, x->caller->incarnation);
    if (d == NULL)
        return err_set(e, ERR_NOT_FOUND, "it keeps no state for %s", x->caller->name); /* the join is over */
    d->heard_ms = clock_ms();
    if (x->q->index >= c->config.layout->n)
        return err_set(e, ERR_INPUT, "segment %u of %zu", x->q->index, c->config.layout->n);
    const struct shard_snapshot *s = &d->state->segments[x->q->index];
    x->answer.at = d->at;
    x->answer.version = s->version;
    x->answer.slots = (uint32_t)s->slots;
    x->reply->pieces[x->reply->npieces++] =
        (struct rpc_piece){ .data = s->data,
                            .size = (size_t)(1 + s->slots) * s->count * sizeof(float),
                            .done = lent_state,
                            .user = state_copy_ref(d->state) };
    return 0;
}

/* While the state is read no update begins. */
static int on_check(struct transfer_request *x, struct err *e)
{
    struct collective *c = x->c;
    uint64_t hash = 0;
    {
        MUTEX_GUARD(&c->lock);
        if (transfer_check_view(x, e) < 0)
            return -1;
        if (x->q->at > c->at || c->applying)
            return wait_more(x, "the step before is not over", e);
        if (x->q->at < c->at)
            return err_set(e, ERR_STALE, "the step of batch %lld is over", (long long)x->q->at);
        c->readers++;
    }
    int rc = shard_state_hash(c->config.shard, &hash, e);
    x->answer.hash = hash;
    MUTEX_GUARD(&c->lock);
    c->readers--;
    collective_changed(c);
    return rc;
}

/* ---- the methods ---- */

int collective_on_transfer(void *user, const struct rpc_caller *caller, const struct rpc_message *message,
                           struct rpc_reply *reply, struct err *e)
{
    static int (*const KINDS[])(struct transfer_request * x, struct err * e) = {
        [TRAINYARD__V1__TRANSFER_KIND__TRANSFER_GRADIENT] = on_gradient,
        [TRAINYARD__V1__TRANSFER_KIND__TRANSFER_SUM] = on_sum,
        [TRAINYARD__V1__TRANSFER_KIND__TRANSFER_KEPT] = on_kept,
        [TRAINYARD__V1__TRANSFER_KIND__TRANSFER_STATE] = on_state,
        [TRAINYARD__V1__TRANSFER_KIND__TRANSFER_CHECK] = on_check,
        [TRAINYARD__V1__TRANSFER_KIND__TRANSFER_ATTACH] = share_on_attach,
    };
    PROTOBUF_AUTO *request = NULL;
    struct transfer_request x = { .c = user, .caller = caller, .message = message, .reply = reply };
    trainyard__v1__transfer_reply__init(&x.answer);
    if (codec_unpack(&trainyard__v1__transfer_request__descriptor, message, &request, e) < 0)
        return -1;
    x.q = (const void *)request;
    if ((size_t)x.q->kind >= COUNT_OF(KINDS))
        return err_set(e, ERR_REFUSED, "transfer %d is of a later release", (int)x.q->kind);
    if (KINDS[x.q->kind](&x, e) < 0)
        return -1;
    x.answer.incarnation = x.c->config.incarnation;
    x.answer.generation = caller->generation;
    codec_pack(&x.answer.base, &reply->head);
    return 0;
}

/* Under the lock: what is applied, and what waits for the rest of its group in the chunks of this member. A group that
 * is complete here is not applied everywhere. */
static void received_here(const struct collective *c, const struct shard_info *info, struct ordinal_set *ret)
{
    if (c->phase == PHASE_IDLE) {
        ordinal_set_copy(ret, &info->applied);
        return;
    }
    *ret = (struct ordinal_set){ .low = c->at, .high = c->at };
    if (c->phase != PHASE_TRAINING || c->now == NULL || reduction_at(c->now) != c->at)
        return;
    reduction_received(c->now, ret);
    if (ret->low < reduction_end(c->now))
        return;
    ordinal_set_fini(ret);
    *ret = (struct ordinal_set){ .low = reduction_end(c->now) - 1, .high = reduction_end(c->now) - 1 };
}

static Trainyard__V1__MemberState state_of(const struct collective *c, bool has_state)
{
    if (c->phase == PHASE_TRAINING)
        return TRAINYARD__V1__MEMBER_STATE__MEMBER_TRAINING;
    if (c->phase == PHASE_JOINING)
        return TRAINYARD__V1__MEMBER_STATE__MEMBER_JOINING;
    return has_state ? TRAINYARD__V1__MEMBER_STATE__MEMBER_HOLDING : TRAINYARD__V1__MEMBER_STATE__MEMBER_EMPTY;
}

static void answer_view(struct collective *c, struct buf *out)
{
    AUTO_FINI(shard_info) info = { 0 };
    AUTO_FINI(ordinal_set) received = ORDINAL_SET_INIT;
    Trainyard__V1__ViewReply r;
    Trainyard__V1__OrdinalSet applied;
    Trainyard__V1__Groups groups;
    auto_free int64_t *ranges = NULL;
    trainyard__v1__view_reply__init(&r);
    MUTEX_GUARD(&c->lock);
    bool has_state = collective_locate(c, &info);
    received_here(c, &info, &received);
    codec_ordinals(&received, &applied, &ranges);
    codec_groups(&info.groups, &groups);
    r.incarnation = c->config.incarnation;
    r.generation = info.generation;
    r.chief_incarnation = info.chief;
    r.state = state_of(c, has_state);
    r.view = c->view.number;
    r.at = c->at;
    r.version = c->version;
    r.layout_hash = info.layout_hash;
    r.job_uid = info.job_uid;
    r.groups = info.groups.size > 0 ? &groups : NULL;
    r.updates = info.pushes;
    r.apply_ns = info.apply_ns;
    r.behind = c->phase == PHASE_JOINING ? c->behind : -1;
    r.trouble = c->trouble;
    r.applied = &applied;
    r.terminating = c->terminating;
    codec_pack(&r.base, out);
}

int collective_on_view(void *user, const struct rpc_caller *caller, const struct rpc_message *message,
                       struct rpc_reply *reply, struct err *e)
{
    struct collective *c = user;
    PROTOBUF_AUTO *request = NULL;
    if (codec_unpack(&trainyard__v1__view_request__descriptor, message, &request, e) < 0 ||
        collective_order(c, caller, (const void *)request, e) < 0)
        return -1;
    answer_view(c, &reply->head);
    return 0;
}

/* Values are written only while no thread reads them. */
static int on_restore(void *user, const struct rpc_caller *caller, const struct rpc_message *message,
                      struct rpc_reply *reply, struct err *e)
{
    struct collective *c = user;
    const struct rpc_method *inner = &c->methods[PS_RESTORE];
    {
        MUTEX_GUARD(&c->lock);
        if (c->phase != PHASE_IDLE || c->entered)
            return err_set(e, ERR_NOT_READY, "it computes from the state that is to be replaced");
    }
    return inner->handle(inner->user, caller, message, reply, e);
}

/* A checkpoint with the state of now is there. */
static int on_snapshot(void *user, const struct rpc_caller *caller, const struct rpc_message *message,
                       struct rpc_reply *reply, struct err *e)
{
    struct collective *c = user;
    const struct rpc_method *inner = &c->methods[PS_SNAPSHOT];
    PROTOBUF_AUTO *request = NULL;
    if (codec_unpack(&trainyard__v1__snapshot_request__descriptor, message, &request, e) < 0 ||
        inner->handle(inner->user, caller, message, reply, e) < 0)
        return -1;
    const Trainyard__V1__SnapshotRequest *q = (const void *)request;
    MUTEX_GUARD(&c->lock);
    if (q->confirm)
        c->saved_at = q->at;
    return 0;
}

void collective_methods(struct collective *c, struct rpc_method ret[COLLECTIVE_METHODS])
{
    static const enum ps_method OF_PARAMETERS[] = { PS_DESCRIBE, PS_INIT,   PS_RESTORE, PS_PULL,
                                                    PS_SNAPSHOT, PS_FINISH, PS_REDUCE };
    _Static_assert(COLLECTIVE_METHODS == 2 + COUNT_OF(OF_PARAMETERS), "all methods");
    ret[0] = (struct rpc_method){ .path = "/trainyard.v1.Peer/Transfer",
                                  .handle = collective_on_transfer,
                                  .user = c,
                                  .bulk = true,
                                  .callers = IDENTITY_BIT(ROLE_WORKER) | IDENTITY_BIT(ROLE_CHIEF) };
    ret[1] = (struct rpc_method){
        .path = "/trainyard.v1.Peer/View", .handle = collective_on_view, .user = c, .callers = RPC_LEADER
    };
    for (size_t i = 0; i < COUNT_OF(OF_PARAMETERS); i++)
        ret[2 + i] = c->methods[OF_PARAMETERS[i]];
    ret[4].handle = on_restore;
    ret[6].handle = on_snapshot;
    ret[4].user = ret[6].user = c;
}
