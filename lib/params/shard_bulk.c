/* Pull and push by messages. shard_shm.c has the way through memory that a worker of this host shares. */
#include "params/shard_service_internal.h"

/* The limit for answers that callers have not read yet: what 16 workers have in flight, by the size of the shard
 * (params/params_grpc.c). Half of it is reserved for pushes, so that callers that pull and do not read do not delay
 * training. A push waits a little for room before it is refused, because its gradient would have to be sent again.
 * One caller may have a quarter of each, which is at least twice what a worker has in flight. So a stopped or
 * malicious caller does not block the others. */
enum { PART_BYTES = 4 << 20, IN_FLIGHT_BYTES = 32 << 20, CALLERS = 16, SHARES = 4, PUSH_WAIT_MS = 200 };

struct buffer_pool_limit answers_limit(const struct shard_sizes *sizes, bool push, uint64_t client)
{
    size_t one = MIN(MAX(sizes->shard, (size_t)PART_BYTES), (size_t)IN_FLIGHT_BYTES);
    size_t budget = one * CALLERS / (push ? 1 : 2);
    return (struct buffer_pool_limit){
        .budget = budget, .wait_ms = push ? PUSH_WAIT_MS : 0, .caller = client, .share = budget / SHARES
    };
}

/* Room for an answer in a buffer of the pool: values, then a version for each segment. It is passed on with the
 * reply and returned to the pool when its bytes have been sent. */
struct room {
    struct shard_out out; /* first: make() gets a pointer to it */
    struct buffer_pool *pool;
    uint64_t client;
    bool push, no_values; /* what is answered */
    size_t versions_seen; /* a push must have 0, or one for each segment */
    struct pooled_buffer *buffer;
};

static int make_room(struct shard_out *out, const struct shard_sizes *sizes, struct err *e)
{
    struct room *room = (struct room *)(void *)out;
    size_t size = !room->push ? sizes->pull : room->no_values ? 0 : sizes->push;
    size_t values = (size + 7) / 8 * 8, versions, bytes;
    if (room->versions_seen != 0 && room->versions_seen != sizes->segments)
        return err_set(e, ERR_INPUT, "a push with %zu versions for %zu segments", room->versions_seen, sizes->segments);
    if (size_mul(sizes->segments, sizeof(int64_t), &versions, e) < 0 || size_add(values, versions, &bytes, e) < 0 ||
        buffer_pool_take(room->pool, bytes, answers_limit(sizes, room->push, room->client), &room->buffer, e) < 0)
        return -1;
    out->values = room->no_values ? NULL : room->buffer->data;
    out->size = size;
    out->element = DT_FLOAT;
    out->versions = (int64_t *)(void *)((char *)room->buffer->data + values);
    out->nversions = sizes->segments;
    return 0;
}

static void send_room(const struct exchange *x, struct room *room)
{
    struct pooled_buffer *buffer = TAKE(room->buffer);
    if (room->out.values == NULL || room->out.size == 0) {
        buffer_pool_give(buffer);
        return;
    }
    buffer_pool_hand_over(buffer);
    x->reply->pieces[x->reply->npieces++] = (struct rpc_piece){
        .data = room->out.values, .size = room->out.size, .done = buffer_pool_give, .user = buffer
    };
}

static void room_fini(struct room *room)
{
    buffer_pool_give(room->buffer);
}
DEFINE_AUTO_FINI(room, room_fini);

/* For another answer to the same call: that of a pull, or only versions. */
static void room_renew(struct room *room, bool no_values)
{
    buffer_pool_give(TAKE(room->buffer));
    room->push = room->no_values = no_values;
    room->versions_seen = 0;
}

static struct shard_part part_of_push(const Trainyard__V1__PushRequest *q)
{
    return (struct shard_part){ q->first, q->count };
}

/* A step that is not there yet is waited for: the request is handled again after the next update. */
static int pull_step(const struct exchange *x, const Trainyard__V1__PullRequest *q, struct room *room, struct err *e)
{
    struct shard_caller who = exchange_caller(x);
    struct err why = { 0 };
    int rc = shard_pull_at(x->shard, &who, (struct shard_part){ q->first, q->count }, q->at, &room->out, &why);
    if (rc < 0 && err_is(&why, ERR_PENDING))
        x->reply->again_ms = MIN(q->wait_ms, (uint32_t)PULL_WAIT_MAX_MS);
    return rc < 0 ? err_set(e, why.code, "%s", why.msg) : 0;
}

int on_pull(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__PullRequest *q = REQUEST(x, Trainyard__V1__PullRequest);
    struct shard_caller who = exchange_caller(x);
    AUTO_FINI(room) room = { .out.make = make_room, .pool = x->pool, .client = x->caller->client };
    if ((q->of_step ? pull_step(x, q, &room, e)
                    : shard_pull(x->shard, &who, (struct shard_part){ q->first, q->count }, &room.out, e)) < 0)
        return -1;
    Trainyard__V1__PullReply r = TRAINYARD__V1__PULL_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    r.generation = who.generation;
    r.n_versions = room.out.nversions;
    r.versions = room.out.versions;
    codec_pack(&r.base, &x->reply->head);
    send_room(x, &room);
    return 0;
}

/* A request that waited has been pushed before, and its gradient is gone. */
static int push_gradient(const struct exchange *x, const Trainyard__V1__PushRequest *q, struct room *room,
                         bool *ret_duplicate, struct err *e)
{
    struct shard_caller who = exchange_caller(x);
    struct payload_walk walk;
    struct bytes_in grads = codec_payload(x->message, &walk);
    if (x->reply->again) {
        *ret_duplicate = false;
        return 0;
    }
    grads.element = q->element == 0 ? DT_FLOAT : (enum dtype)q->element;
    return shard_push(x->shard, &who, part_of_push(q), q->ordinal, q->n_versions != 0 ? q->versions : NULL, &grads,
                      &room->out, ret_duplicate, e);
}

/* After the gradient was taken: the values of the next step, or, when they are not there in time, versions only. */
static int next_step(const struct exchange *x, const Trainyard__V1__PushRequest *q, struct room *room, bool *ret_there,
                     struct err *e)
{
    struct shard_caller who = exchange_caller(x);
    struct err why = { 0 };
    int64_t wait_ms = MIN((int64_t)q->wait_ms, PULL_WAIT_MAX_MS);
    room_renew(room, false);
    *ret_there = shard_pull_at(x->shard, &who, part_of_push(q), q->at, &room->out, &why) == 0;
    if (*ret_there)
        return 0;
    if (err_is(&why, ERR_PENDING) && x->reply->waited_ms < wait_ms) {
        x->reply->again_ms = (uint32_t)wait_ms;
        return err_set(e, ERR_PENDING, "%s", why.msg);
    }
    if (!err_is(&why, ERR_PENDING) && !err_is(&why, ERR_STALE))
        return err_set(e, why.code, "%s", why.msg);
    room_renew(room, true);
    return shard_pull(x->shard, &who, part_of_push(q), &room->out, e);
}

int on_push(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__PushRequest *q = REQUEST(x, Trainyard__V1__PushRequest);
    AUTO_FINI(room)
    room = { .out.make = make_room,
             .pool = x->pool,
             .client = x->caller->client,
             .push = true,
             .no_values = q->no_values,
             .versions_seen = q->n_versions };
    bool duplicate, there = false;
    if (push_gradient(x, q, &room, &duplicate, e) < 0 || (q->of_step && next_step(x, q, &room, &there, e) < 0))
        return -1;
    Trainyard__V1__PushReply r = TRAINYARD__V1__PUSH_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    r.generation = x->caller->generation;
    r.duplicate = duplicate;
    r.of_step = there;
    r.n_versions = room.out.nversions;
    r.versions = room.out.versions;
    codec_pack(&r.base, &x->reply->head);
    send_room(x, &room);
    return 0;
}
