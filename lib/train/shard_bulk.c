/* Pull and push, and the memory that workers of this host share for them. */
#include "train/shard_service_internal.h"

/* One buffer for values and versions: `size` bytes, then a version for each segment. */
static int take_room(const struct exchange *x, size_t size, size_t segments, struct pool_buffer **ret, struct shard_out *out,
                     struct err *e)
{
    size_t values = (size + 7) / 8 * 8, versions, bytes;
    if (size_mul(segments, sizeof(int64_t), &versions, e) < 0 || size_add(values, versions, &bytes, e) < 0 ||
        pool_take(x->pool, bytes, ret, e) < 0)
        return -1;
    *out = (struct shard_out){ .values = (*ret)->data, .size = size, .nversions = segments,
                               .versions = (int64_t *)(void *)((char *)(*ret)->data + values) };
    return 0;
}

/* The buffer goes with the reply and comes back when its bytes have left. */
static void send_room(const struct exchange *x, struct pool_buffer *room, const struct shard_out *out)
{
    if (out->values == NULL || out->size == 0) {
        pool_give(room);
        return;
    }
    pool_lend(room);
    x->reply->pieces[x->reply->npieces++] =
        (struct rpc_piece){ .data = out->values, .size = out->size, .done = pool_give, .user = room };
}

int on_pull(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__PullRequest *q = REQUEST(x, Trainyard__V1__PullRequest);
    struct shard_caller who = exchange_caller(q->header);
    struct shard_part part = { q->first, q->count };
    struct shard_sizes sizes;
    struct shard_out out;
    struct pool_buffer *room;
    if (shard_measure(x->shard, part, &sizes, e) < 0 || take_room(x, sizes.pull, sizes.segments, &room, &out, e) < 0)
        return -1;
    if (shard_pull(x->shard, &who, part, &out, e) < 0) {
        pool_give(room);
        return -1;
    }
    Trainyard__V1__PullReply r = TRAINYARD__V1__PULL_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    r.generation = who.generation;
    r.n_versions = out.nversions;
    r.versions = out.versions;
    wire_pack(&r.base, &x->reply->head);
    send_room(x, room, &out);
    return 0;
}

static int check_push(const Trainyard__V1__PushRequest *q, const struct shard_sizes *sizes, struct err *e)
{
    if (q->element > 1)
        return err_set(e, ERR_REFUSED, "gradients of element type %u are not known here, only float32 (1)", q->element);
    if (q->n_versions != 0 && q->n_versions != sizes->segments)
        return err_set(e, ERR_INPUT, "a push with %zu versions for %zu segments", q->n_versions, sizes->segments);
    return 0;
}

static void pack_pushed(const struct exchange *x, uint64_t generation, bool duplicate, const struct shard_out *out)
{
    Trainyard__V1__PushReply r = TRAINYARD__V1__PUSH_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    r.generation = generation;
    r.duplicate = duplicate;
    r.n_versions = out->nversions;
    r.versions = out->versions;
    wire_pack(&r.base, &x->reply->head);
}

/* Where gradients come from and values go to: the message and a buffer of ours, or shared memory. */
struct push_way {
    struct pool_buffer *room;
    struct region *region;
    struct wire_walk walk;
    struct one_range range;
    struct bytes_in grads;
    struct shard_out out;
};

static int share_way(const struct exchange *x, const Trainyard__V1__PushRequest *q, size_t size, struct push_way *w,
                     struct err *e)
{
    w->region = region_table_take(x->service->regions, q->region);
    if (w->region == NULL)
        return err_set(e, ERR_NOT_READY, "the shared memory of %s is not known here", exchange_caller(q->header).sender);
    w->range = (struct one_range){ region_at(w->region, q->gradients_at, size), size };
    w->out.values = region_at(w->region, q->values_at, size);
    w->out.size = size;
    w->grads = one_range(&w->range);
    if (w->range.data == NULL || w->out.values == NULL)
        return err_set(e, ERR_INPUT, "a push beyond its shared memory");
    return 0;
}

static int find_way(const struct exchange *x, const Trainyard__V1__PushRequest *q, const struct shard_sizes *sizes,
                    struct push_way *w, struct err *e)
{
    size_t reply = q->no_values || q->region != 0 ? 0 : sizes->push;
    if (take_room(x, reply, sizes->segments, &w->room, &w->out, e) < 0)
        return -1;
    if (q->region != 0)
        return share_way(x, q, sizes->push, w, e);
    w->grads = wire_payload(x->message, &w->walk);
    if (q->no_values)
        w->out.values = NULL;
    return 0;
}

static int push(const struct exchange *x, const Trainyard__V1__PushRequest *q, struct shard_part part, struct push_way *w,
                const struct shard_sizes *sizes, struct err *e)
{
    struct shard_caller who = exchange_caller(q->header);
    bool duplicate;
    if (find_way(x, q, sizes, w, e) < 0 ||
        shard_push(x->shard, &who, part, q->ordinal, q->n_versions != 0 ? q->versions : NULL, &w->grads, &w->out, &duplicate,
                   e) < 0)
        return -1;
    pack_pushed(x, who.generation, duplicate, &w->out);
    if (w->region == NULL)
        send_room(x, TAKE(w->room), &w->out);
    return 0;
}

int on_push(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__PushRequest *q = REQUEST(x, Trainyard__V1__PushRequest);
    struct shard_caller who = exchange_caller(q->header);
    struct shard_part part = { q->first, q->count };
    struct shard_sizes sizes;
    struct push_way way = { 0 };
    if (shard_check(x->shard, &who, e) < 0 || shard_measure(x->shard, part, &sizes, e) < 0 || check_push(q, &sizes, e) < 0)
        return -1;
    int rc = push(x, q, part, &way, &sizes, e);
    if (way.region != NULL)
        region_table_give(x->service->regions, way.region);
    pool_give(way.room);
    return rc;
}

int on_attach(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__AttachRequest *q = REQUEST(x, Trainyard__V1__AttachRequest);
    struct shard_caller who = exchange_caller(q->header);
    struct region *region;
    if (!atomic_load(&x->service->share))
        return err_set(e, ERR_REFUSED, "this ps does not share memory");
    if (shard_check(x->shard, &who, e) < 0 ||
        region_open(q->pid, q->fd, q->size, q->nonce.data, q->nonce.len, &region, e) < 0)
        return -1;
    Trainyard__V1__AttachReply r = TRAINYARD__V1__ATTACH_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    r.region = region_table_add(x->service->regions, region);
    if (r.region == 0)
        return err_set(e, ERR_REFUSED, "this ps shares memory with as many workers as it can");
    wire_pack(&r.base, &x->reply->head);
    return 0;
}
