#include "train/shard_service.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "train/pool.h"
#include "train/region.h"
#include "train/wire.h"

/* A request, unpacked, and where its answer goes. */
struct exchange {
    struct shard_service *service;
    struct shard *shard;
    struct pool *pool;
    const ProtobufCMessage *request;
    const struct rpc_message *message;
    struct rpc_reply *reply;
};
struct method {
    enum ps_method id;
    const ProtobufCMessageDescriptor *request;
    int (*handle)(const struct exchange *x, struct err *e);
};
struct bound { /* what rpc_method.user points to */
    struct shard_service *service;
    const struct method *method;
};
struct shard_service {
    struct shard *shard;
    struct pool *pool;
    struct region_table *regions;
    atomic_bool share;
    atomic_int_fast64_t heard_ms;
    struct bound bound[SHARD_METHODS];
};
_Static_assert((int)SHARD_METHODS == (int)PS_METHODS, "one row for each method");

/* The request as the type that `member`'s row of METHODS says it has. */
#define REQUEST(x, type) ((const type *)(const void *)(x)->request)

static struct shard_caller caller(const Trainyard__V1__Header *h)
{
    if (h == NULL)
        return (struct shard_caller){ .job_uid = "", .sender = "" };
    return (struct shard_caller){ .job_uid = h->job_uid, .sender = h->sender, .generation = h->generation };
}

static uint64_t incarnation(const struct exchange *x)
{
    return shard_incarnation(x->shard);
}

/* ---- the bulk ---- */

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
    x->reply->pieces[x->reply->npieces++] =
        (struct rpc_piece){ .data = out->values, .size = out->size, .done = pool_give, .user = room };
}

static int on_pull(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__PullRequest *q = REQUEST(x, Trainyard__V1__PullRequest);
    struct shard_caller who = caller(q->header);
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
    r.incarnation = incarnation(x);
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
    r.incarnation = incarnation(x);
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
        return err_set(e, ERR_NOT_READY, "the shared memory of %s is not known here", caller(q->header).sender);
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
    struct shard_caller who = caller(q->header);
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

static int on_push(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__PushRequest *q = REQUEST(x, Trainyard__V1__PushRequest);
    struct shard_caller who = caller(q->header);
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

static int on_attach(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__AttachRequest *q = REQUEST(x, Trainyard__V1__AttachRequest);
    struct shard_caller who = caller(q->header);
    struct region *region;
    if (!atomic_load(&x->service->share))
        return err_set(e, ERR_REFUSED, "this ps does not share memory");
    if (shard_check(x->shard, &who, e) < 0 ||
        region_open(q->pid, q->fd, q->size, q->nonce.data, q->nonce.len, &region, e) < 0)
        return -1;
    Trainyard__V1__AttachReply r = TRAINYARD__V1__ATTACH_REPLY__INIT;
    r.incarnation = incarnation(x);
    r.region = region_table_add(x->service->regions, region);
    if (r.region == 0)
        return err_set(e, ERR_REFUSED, "this ps shares memory with as many workers as it can");
    wire_pack(&r.base, &x->reply->head);
    return 0;
}

static int on_snapshot(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__SnapshotRequest *q = REQUEST(x, Trainyard__V1__SnapshotRequest);
    struct shard_caller who = caller(q->header);
    AUTO_FINI(shard_snapshot) snapshot = { 0 };
    if (shard_snapshot(x->shard, &who, q->segment, &snapshot, e) < 0)
        return -1;

    Trainyard__V1__OrdinalSet applied;
    auto_free int64_t *ranges = NULL;
    wire_ordinals(&snapshot.applied, &applied, &ranges);
    Trainyard__V1__SnapshotReply r = TRAINYARD__V1__SNAPSHOT_REPLY__INIT;
    r.incarnation = incarnation(x);
    r.generation = who.generation;
    r.version = snapshot.version;
    r.applied = &applied;
    r.slots = (uint32_t)snapshot.slots;
    wire_pack(&r.base, &x->reply->head);
    size_t size = (size_t)(1 + snapshot.slots) * snapshot.count * sizeof(float);
    float *data = TAKE(snapshot.data);
    x->reply->pieces[x->reply->npieces++] = (struct rpc_piece){ .data = data, .size = size, .done = free, .user = data };
    return 0;
}

/* ---- the chief's ---- */

static int on_describe(const struct exchange *x, struct err *e)
{
    static const Trainyard__V1__PsState STATES[] = {
        [SHARD_UNINITIALISED] = TRAINYARD__V1__PS_STATE__PS_UNINITIALISED,
        [SHARD_LOADING] = TRAINYARD__V1__PS_STATE__PS_LOADING,
        [SHARD_SERVING] = TRAINYARD__V1__PS_STATE__PS_SERVING,
        [SHARD_TERMINATING] = TRAINYARD__V1__PS_STATE__PS_TERMINATING,
        [SHARD_FINISHED] = TRAINYARD__V1__PS_STATE__PS_FINISHED,
    };
    (void)e;
    AUTO_FINI(shard_info) info = { 0 };
    shard_describe(x->shard, &info);

    Trainyard__V1__OrdinalSet applied;
    auto_free int64_t *ranges = NULL;
    wire_ordinals(&info.applied, &applied, &ranges);
    Trainyard__V1__DescribeReply r;
    trainyard__v1__describe_reply__init(&r);
    r.incarnation = info.incarnation;
    r.generation = info.generation;
    r.state = STATES[info.state];
    r.applied = &applied;
    r.version_min = info.version_min;
    r.version_max = info.version_max;
    r.layout_hash = info.layout_hash;
    r.pushes = info.pushes;
    r.duplicates = info.duplicates;
    r.staleness_sum = info.staleness_sum;
    r.staleness_max = info.staleness_max;
    r.apply_ns = info.apply_ns;
    r.job_uid = info.job_uid;
    wire_pack(&r.base, &x->reply->head);
    return 0;
}

static int segments_of(const Trainyard__V1__InitRequest *q, struct segment_spec **ret, struct err *e)
{
    size_t bytes;
    void *memory;
    if (size_mul(q->n_segments, sizeof(struct segment_spec), &bytes, e) < 0 || mem_alloc(bytes, "segments", &memory, e) < 0)
        return -1;
    struct segment_spec *list = memory;
    for (size_t i = 0; i < q->n_segments; i++) {
        const Trainyard__V1__Segment *s = q->segments[i];
        unsigned kind = (unsigned)s->kind; /* of this order: TRAINABLE, MOVING, CONST */
        if (kind > VAR_CONST) {
            free(list);
            return err_set(e, ERR_REFUSED, "segment %u: kind %u is of a later release", s->id, kind);
        }
        list[i] = (struct segment_spec){ .id = s->id, .offset = s->offset, .count = s->count,
                                         .kind = (enum variable_kind)kind, .momentum = s->momentum };
    }
    *ret = list;
    return 0;
}

static int on_init(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__InitRequest *q = REQUEST(x, Trainyard__V1__InitRequest);
    struct shard_caller who = caller(q->header);
    auto_free struct segment_spec *segments = NULL;
    if (q->adopt) {
        if (shard_adopt(x->shard, &who, e) < 0)
            return -1;
    } else if (segments_of(q, &segments, e) < 0 ||
               shard_init(x->shard, &who, q->optimizer, segments, q->n_segments, q->layout_hash, e) < 0) {
        return -1;
    }
    Trainyard__V1__InitReply r = TRAINYARD__V1__INIT_REPLY__INIT;
    r.incarnation = incarnation(x);
    r.generation = who.generation;
    wire_pack(&r.base, &x->reply->head);
    return 0;
}

static int on_restore(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__RestoreRequest *q = REQUEST(x, Trainyard__V1__RestoreRequest);
    struct shard_caller who = caller(q->header);
    AUTO_FINI(applied) applied = APPLIED_INIT;
    struct wire_walk walk;
    struct bytes_in payload = wire_payload(x->message, &walk);
    if (!q->only_serve) {
        if (wire_applied(q->applied, &applied, e) < 0 ||
            shard_restore(x->shard, &who, q->segment, q->with_slots, q->version, &applied, &payload, e) < 0)
            return -1;
    }
    if ((q->serve || q->only_serve) && shard_serve(x->shard, &who, e) < 0)
        return -1;
    Trainyard__V1__RestoreReply r = TRAINYARD__V1__RESTORE_REPLY__INIT;
    r.incarnation = incarnation(x);
    r.generation = who.generation;
    wire_pack(&r.base, &x->reply->head);
    return 0;
}

static int on_finish(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__FinishRequest *q = REQUEST(x, Trainyard__V1__FinishRequest);
    struct shard_caller who = caller(q->header);
    if (shard_finish(x->shard, &who, e) < 0)
        return -1;
    Trainyard__V1__FinishReply r = TRAINYARD__V1__FINISH_REPLY__INIT;
    r.incarnation = incarnation(x);
    wire_pack(&r.base, &x->reply->head);
    return 0;
}

/* ---- the table ---- */

#define ROW(id, name, fn) [id] = { id, &trainyard__v1__##name##__descriptor, fn }
static const struct method METHODS[SHARD_METHODS] = {
    ROW(PS_DESCRIBE, describe_request, on_describe), ROW(PS_INIT, init_request, on_init),
    ROW(PS_RESTORE, restore_request, on_restore),    ROW(PS_PULL, pull_request, on_pull),
    ROW(PS_PUSH, push_request, on_push),             ROW(PS_SNAPSHOT, snapshot_request, on_snapshot),
    ROW(PS_FINISH, finish_request, on_finish),       ROW(PS_ATTACH, attach_request, on_attach),
};

static int handle(void *user, const struct rpc_message *message, struct rpc_reply *reply, struct err *e)
{
    const struct bound *b = user;
    WIRE_AUTO *request = NULL;
    atomic_store_explicit(&b->service->heard_ms, clock_ms(), memory_order_relaxed);
    if (wire_unpack(b->method->request, message, &request, e) < 0)
        return -1;
    struct exchange x = { .service = b->service, .shard = b->service->shard, .pool = b->service->pool,
                          .request = request, .message = message, .reply = reply };
    return b->method->handle(&x, e);
}

struct shard_service *shard_service_new(struct shard *s)
{
    struct shard_service *v = xcalloc(1, sizeof(*v));
    v->shard = s;
    v->pool = pool_new();
    v->regions = region_table_new(shard_incarnation(s));
    atomic_init(&v->heard_ms, clock_ms());
    atomic_init(&v->share, true);
    for (size_t i = 0; i < SHARD_METHODS; i++)
        v->bound[i] = (struct bound){ .service = v, .method = &METHODS[i] };
    return v;
}

void shard_service_free(struct shard_service *v)
{
    if (v == NULL)
        return;
    pool_free(v->pool);
    region_table_free(v->regions);
    free(v);
}

void shard_service_methods(struct shard_service *v, struct rpc_method ret[SHARD_METHODS])
{
    for (size_t i = 0; i < SHARD_METHODS; i++)
        ret[i] = (struct rpc_method){ .path = wire_method(METHODS[i].id), .handle = handle, .user = &v->bound[i] };
}

void shard_service_share(struct shard_service *v, bool allowed)
{
    atomic_store(&v->share, allowed);
}

int64_t shard_service_heard_ms(const struct shard_service *v)
{
    return atomic_load_explicit(&v->heard_ms, memory_order_relaxed);
}
