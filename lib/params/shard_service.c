/* The service of a ps: the table of its methods. Each request is decoded, its caller is checked against the header, and
 * the shard is called; values and gradients go through shard_bulk.c and shard_shm.c. */
#include "params/shard_service.h"

#include "base/clock.h"
#include "params/shard_service_internal.h"

struct method {
    enum ps_method id;
    const ProtobufCMessageDescriptor *request;
    int (*handle)(const struct exchange *x, struct err *e);
    bool bulk;
    unsigned callers; /* as in struct rpc_method */
};
_Static_assert((int)SHARD_METHODS == (int)PS_METHODS, "one row for each method");

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
    Trainyard__V1__Groups groups;
    auto_free int64_t *ranges = NULL;
    codec_ordinals(&info.applied, &applied, &ranges);
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
    r.chief_incarnation = info.chief;
    codec_groups(&info.groups, &groups);
    r.groups = info.groups.size > 0 ? &groups : NULL;
    codec_pack(&r.base, &x->reply->head);
    return 0;
}

static int segments_of(const Trainyard__V1__InitRequest *q, struct segment_spec **ret, struct err *e)
{
    size_t bytes;
    void *memory;
    if (size_mul(q->n_segments, sizeof(struct segment_spec), &bytes, e) < 0 ||
        mem_alloc(bytes, "segments", &memory, e) < 0)
        return -1;
    struct segment_spec *list = memory;
    for (size_t i = 0; i < q->n_segments; i++) {
        const Trainyard__V1__Segment *s = q->segments[i];
        unsigned kind = (unsigned)s->kind; /* of this order: TRAINABLE, MOVING, CONST */
        if (kind > VAR_CONST) {
            free(list);
            return err_set(e, ERR_REFUSED, "segment %u: kind %u is of a later release", s->id, kind);
        }
        list[i] = (struct segment_spec){ .id = s->id,
                                         .offset = s->offset,
                                         .count = s->count,
                                         .kind = (enum variable_kind)kind,
                                         .momentum = s->momentum };
    }
    *ret = list;
    return 0;
}

static int take_rates(const Trainyard__V1__InitRequest *q, struct rates *ret, struct err *e)
{
    if (q->n_rates != q->n_rate_from)
        return err_set(e, ERR_INPUT, "%zu learning rates that begin at %zu batches", q->n_rates, q->n_rate_from);
    return rates_set(ret, q->rate_from, q->rates, q->n_rates, e);
}

static int take_groups(const struct exchange *x, const Trainyard__V1__Groups *g, const struct shard_caller *who,
                       struct err *e)
{
    const struct groups groups = codec_groups_of(g);
    return shard_set_groups(x->shard, who, &groups, e);
}

static int on_init(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__InitRequest *q = REQUEST(x, Trainyard__V1__InitRequest);
    struct shard_caller who = exchange_caller(x);
    auto_free struct segment_spec *segments = NULL;
    AUTO_FINI(rates) rates = RATES_INIT;
    if (take_rates(q, &rates, e) < 0)
        return -1;
    if (q->adopt) {
        if (shard_adopt(x->shard, &who, e) < 0)
            return -1;
    } else if (segments_of(q, &segments, e) < 0 ||
               shard_init(x->shard, &who, q->optimizer, segments, q->n_segments, q->layout_hash, e) < 0) {
        return -1;
    }
    if (!q->adopt && q->groups != NULL && take_groups(x, q->groups, &who, e) < 0)
        return -1;
    if (!q->adopt)
        atomic_store(&x->service->share_max, (size_t)q->share_max);
    if (shard_set_rates(x->shard, &who, &rates, e) < 0)
        return -1;
    Trainyard__V1__InitReply r = TRAINYARD__V1__INIT_REPLY__INIT;
    r.rates = (uint32_t)rates.n;
    r.group_size = q->groups != NULL ? q->groups->size : 0;
    r.incarnation = exchange_incarnation(x);
    r.generation = who.generation;
    r.chief_incarnation = who.incarnation;
    codec_pack(&r.base, &x->reply->head);
    return 0;
}

static int on_restore(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__RestoreRequest *q = REQUEST(x, Trainyard__V1__RestoreRequest);
    struct shard_caller who = exchange_caller(x);
    AUTO_FINI(ordinal_set) applied = ORDINAL_SET_INIT;
    struct payload_walk walk;
    struct bytes_in payload = codec_payload(x->message, &walk);
    if (!q->only_serve) {
        if (codec_ordinal_set(q->applied, &applied, e) < 0 ||
            shard_restore(x->shard, &who, q->segment, q->with_slots, q->version, &applied, &payload, e) < 0)
            return -1;
    }
    if ((q->serve || q->only_serve) && shard_serve(x->shard, &who, e) < 0)
        return -1;
    Trainyard__V1__RestoreReply r = TRAINYARD__V1__RESTORE_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    r.generation = who.generation;
    codec_pack(&r.base, &x->reply->head);
    return 0;
}

static int on_finish(const struct exchange *x, struct err *e)
{
    struct shard_caller who = exchange_caller(x);
    if (shard_finish(x->shard, &who, e) < 0)
        return -1;
    Trainyard__V1__FinishReply r = TRAINYARD__V1__FINISH_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    codec_pack(&r.base, &x->reply->head);
    return 0;
}

/* The data of a snapshot on its way; it counts among the answers that wait to be read. */
struct lent {
    struct buffer_pool *pool;
    float *data;
};

static void lent_free(void *user)
{
    struct lent *lent = user;
    if (lent == NULL)
        return;
    free(lent->data);
    buffer_pool_release(lent->pool, PARAMETERS_PAYLOAD_MAX, 0);
    free(lent);
}

static void lent_auto(struct lent **lent)
{
    lent_free(*lent);
}

static int lend(const struct exchange *x, struct lent **ret, struct err *e)
{
    struct shard_sizes sizes;
    if (shard_measure(x->shard, (struct shard_part){ 0 }, &sizes, e) < 0 ||
        buffer_pool_reserve(x->pool, PARAMETERS_PAYLOAD_MAX, answers_limit(&sizes, true, 0), e) < 0)
        return -1;
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)->pool = x->pool;
    return 0;
}

/* A call about all segments. */
static int on_snapshots(const struct exchange *x, const Trainyard__V1__SnapshotRequest *q, struct err *e)
{
    struct shard_caller who = exchange_caller(x);
    int rc =
        q->confirm ? shard_confirm_snapshots(x->shard, &who, e) : shard_announce_snapshot(x->shard, &who, q->at, e);
    if (rc < 0)
        return -1;
    Trainyard__V1__SnapshotReply r = TRAINYARD__V1__SNAPSHOT_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    r.generation = who.generation;
    codec_pack(&r.base, &x->reply->head);
    return 0;
}

static int on_snapshot(const struct exchange *x, struct err *e)
{
    const Trainyard__V1__SnapshotRequest *q = REQUEST(x, Trainyard__V1__SnapshotRequest);
    struct shard_caller who = exchange_caller(x);
    if (q->announce || q->confirm)
        return on_snapshots(x, q, e);
    __attribute__((cleanup(lent_auto))) struct lent *lent = NULL;
    AUTO_FINI(shard_snapshot) snapshot = { 0 };
    if (lend(x, &lent, e) < 0 || (q->of_step ? shard_snapshot_at(x->shard, &who, q->segment, q->at, &snapshot, e)
                                             : shard_snapshot(x->shard, &who, q->segment, &snapshot, e)) < 0)
        return -1;

    Trainyard__V1__OrdinalSet applied;
    auto_free int64_t *ranges = NULL;
    codec_ordinals(&snapshot.applied, &applied, &ranges);
    Trainyard__V1__SnapshotReply r = TRAINYARD__V1__SNAPSHOT_REPLY__INIT;
    r.incarnation = exchange_incarnation(x);
    r.generation = who.generation;
    r.version = snapshot.version;
    r.applied = &applied;
    r.slots = (uint32_t)snapshot.slots;
    codec_pack(&r.base, &x->reply->head);
    size_t size = (size_t)(1 + snapshot.slots) * snapshot.count * sizeof(float);
    lent->data = TAKE(snapshot.data);
    x->reply->pieces[x->reply->npieces++] =
        (struct rpc_piece){ .data = lent->data, .size = size, .done = lent_free, .user = lent };
    lent = NULL;
    return 0;
}

/* ---- the table ---- */

/* Who may call a method (rpc_method.callers). */
enum { TRAINERS = IDENTITY_BIT(ROLE_WORKER) | IDENTITY_BIT(ROLE_CHIEF) };

#define ROW(id, name, fn, bulk, callers) [id] = { id, &trainyard__v1__##name##__descriptor, fn, bulk, callers }
static const struct method METHODS[SHARD_METHODS] = {
    ROW(PS_DESCRIBE, describe_request, on_describe, false, RPC_MEMBERS),
    ROW(PS_INIT, init_request, on_init, false, RPC_LEADER),
    ROW(PS_RESTORE, restore_request, on_restore, true, RPC_LEADER),
    ROW(PS_PULL, pull_request, on_pull, true, TRAINERS),
    ROW(PS_PUSH, push_request, on_push, true, TRAINERS),
    ROW(PS_SNAPSHOT, snapshot_request, on_snapshot, true, RPC_LEADER),
    ROW(PS_FINISH, finish_request, on_finish, false, RPC_LEADER),
    ROW(PS_ATTACH, attach_request, on_attach, false, TRAINERS),
    ROW(PS_REDUCE, reduce_request, on_reduce, true, TRAINERS),
};

static int handle(void *user, const struct rpc_caller *caller, const struct rpc_message *message,
                  struct rpc_reply *reply, struct err *e)
{
    const struct bound *b = user;
    PROTOBUF_AUTO *request = NULL;
    atomic_store_explicit(&b->service->heard_ms, clock_ms(), memory_order_relaxed);
    if (codec_unpack(b->method->request, message, &request, e) < 0)
        return -1;
    struct exchange x = { .service = b->service,
                          .shard = b->service->shard,
                          .pool = b->service->pool,
                          .caller = caller,
                          .request = request,
                          .message = message,
                          .reply = reply };
    return b->method->handle(&x, e);
}

static void service_updated(void *user)
{
    struct shard_service *v = user;
    MUTEX_GUARD(&v->server_lock);
    if (v->server != NULL)
        rpc_server_wake(v->server);
}

void shard_service_serve(struct shard_service *v, struct rpc_server *server)
{
    MUTEX_GUARD(&v->server_lock);
    v->server = server;
}

struct shard_service *shard_service_new(struct shard *s)
{
    struct shard_service *v = xcalloc(1, sizeof(*v));
    v->shard = s;
    v->pool = buffer_pool_new();
    v->sharers = slot_server_new(serve_push_slot, v);
    mutex_init(&v->server_lock);
    shard_on_update(s, service_updated, v);
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
    slot_server_free(v->sharers);
    shard_on_update(v->shard, NULL, NULL);
    buffer_pool_free(v->pool);
    mutex_fini(&v->server_lock);
    free(v);
}

void shard_service_methods(struct shard_service *v, struct rpc_method ret[SHARD_METHODS])
{
    for (size_t i = 0; i < SHARD_METHODS; i++)
        ret[i] = (struct rpc_method){
            .path = ps_method_path(METHODS[i].id),
            .handle = handle,
            .user = &v->bound[i],
            .bulk = METHODS[i].bulk,
            .callers = METHODS[i].callers,
        };
}

void shard_service_share(struct shard_service *v, bool allowed)
{
    atomic_store(&v->share, allowed);
}

void shard_service_note(struct shard_service *v)
{
    atomic_store_explicit(&v->heard_ms, clock_ms(), memory_order_relaxed);
}

int64_t shard_service_heard_ms(const struct shard_service *v)
{
    return atomic_load_explicit(&v->heard_ms, memory_order_relaxed);
}
