/* The control plane over gRPC: Describe goes to all ps at once, every other call to one ps. */
#include <string.h>

#include "params/params_grpc.h"

/* One call: packs the request, unpacks the answer's head. bytes: of bulk, in either direction. */
static int call_ps(struct ps_connection *conn, enum ps_method method, size_t bytes, const ProtobufCMessage *request,
                   const struct rpc_piece *piece, int64_t deadline_ms, const ProtobufCMessageDescriptor *kind,
                   struct rpc_message **ret_message, ProtobufCMessage **ret, struct err *e)
{
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    codec_pack(request, &head);
    int lane = bytes > 0 ? 0 : conn->small_lane;
    struct rpc_call *call = rpc_start(conn->channel, lane, ps_method_path(method), head.data, head.len, piece,
                                      piece != NULL, deadline_ms + params_floor_ms(bytes));
    if (rpc_wait(call, &m, e) < 0 || codec_unpack(kind, m, ret, e) < 0)
        return ps_error(conn, e);
    if (ret_message != NULL)
        *ret_message = TAKE(m);
    return 0;
}

static struct ps_connection *connection_of(struct params *p, size_t ps)
{
    return &remote_of(p)->conns[ps];
}

static int read_info(const Trainyard__V1__DescribeReply *a, struct shard_info *ret, struct err *e)
{
    static const enum shard_state STATES[] = {
        [TRAINYARD__V1__PS_STATE__PS_UNINITIALISED] = SHARD_UNINITIALISED,
        [TRAINYARD__V1__PS_STATE__PS_LOADING] = SHARD_LOADING,
        [TRAINYARD__V1__PS_STATE__PS_SERVING] = SHARD_SERVING,
        [TRAINYARD__V1__PS_STATE__PS_TERMINATING] = SHARD_TERMINATING,
        [TRAINYARD__V1__PS_STATE__PS_FINISHED] = SHARD_FINISHED,
    };
    if ((unsigned)a->state >= COUNT_OF(STATES))
        return err_set(e, ERR_REFUSED, "it is in state %d, which this release does not know", (int)a->state);
    if (a->generation > GENERATION_MAX)
        return err_set(e, ERR_REFUSED, "it is at generation %llu, which is out of range",
                       (unsigned long long)a->generation);
    struct shard_info info = {
        .incarnation = a->incarnation,
        .generation = a->generation,
        .layout_hash = a->layout_hash,
        .state = STATES[a->state],
        .version_min = a->version_min,
        .version_max = a->version_max,
        .pushes = a->pushes,
        .duplicates = a->duplicates,
        .staleness_sum = a->staleness_sum,
        .staleness_max = a->staleness_max,
        .apply_ns = a->apply_ns,
        .chief = a->chief_incarnation,
        .groups = codec_groups_of(a->groups),
    };
    str_fmt(info.job_uid, sizeof(info.job_uid), "%s", a->job_uid);
    if (codec_ordinal_set(a->applied, &info.applied, e) < 0)
        return -1;
    *ret = info;
    return 0;
}

static void describe_head(const struct params *p, struct buf *ret)
{
    Trainyard__V1__Header header;
    Trainyard__V1__DescribeRequest q = TRAINYARD__V1__DESCRIBE_REQUEST__INIT;
    remote_header(p, &header);
    q.header = &header;
    codec_pack(&q.base, ret);
}

static int describe_wait(const struct ps_connection *conn, struct rpc_call *call, struct shard_info *ret, struct err *e)
{
    AUTO(rpc_message) *m = NULL;
    PROTOBUF_AUTO *answer = NULL;
    if (rpc_wait(call, &m, e) < 0 || codec_unpack(&trainyard__v1__describe_reply__descriptor, m, &answer, e) < 0 ||
        read_info((const void *)answer, ret, e) < 0)
        return ps_error(conn, e);
    return 0;
}

static struct rpc_call *describe_start(const struct ps_connection *conn, const struct buf *head, int64_t deadline_ms)
{
    return rpc_start(conn->channel, conn->small_lane, ps_method_path(PS_DESCRIBE), head->data, head->len, NULL, 0,
                     deadline_ms);
}

int remote_describe(struct params *p, size_t ps, int64_t deadline_ms, struct shard_info *ret, struct err *e)
{
    const struct ps_connection *conn = connection_of(p, ps);
    AUTO_FINI(buf) head = BUF_INIT;
    describe_head(p, &head);
    return describe_wait(conn, describe_start(conn, &head, deadline_ms), ret, e);
}

/* All calls are in flight at once, so their deadlines are over together. */
static void remote_describe_all(struct params *p, int64_t deadline_ms, struct shard_info *rets, struct err *errors)
{
    AUTO_FINI(buf) head = BUF_INIT;
    auto_free struct rpc_call **calls = xcalloc(p->nps, sizeof(struct rpc_call *));
    describe_head(p, &head);
    for (size_t ps = 0; ps < p->nps; ps++)
        calls[ps] = describe_start(connection_of(p, ps), &head, deadline_ms);
    for (size_t ps = 0; ps < p->nps; ps++) {
        errors[ps] = (struct err){ 0 };
        (void)!describe_wait(connection_of(p, ps), calls[ps], &rets[ps], &errors[ps]);
    }
}

/* ---- Init ---- */

static int call_init(struct params *p, struct ps_connection *conn, Trainyard__V1__InitRequest *q, int64_t deadline_ms,
                     struct err *e)
{
    Trainyard__V1__Header header;
    PROTOBUF_AUTO *answer = NULL;
    remote_header(p, &header);
    q->header = &header;
    q->n_rate_from = q->n_rates = p->rates->n;
    q->rate_from = p->rates->from;
    q->rates = p->rates->rate;
    if (call_ps(conn, PS_INIT, 0, &q->base, NULL, deadline_ms, &trainyard__v1__init_reply__descriptor, NULL, &answer,
                e) < 0)
        return -1;
    const Trainyard__V1__InitReply *a = (const void *)answer;
    if (a->chief_incarnation != 0 && a->chief_incarnation != p->id.incarnation) {
        (void)err_set(e, ERR_FENCED, "generation %llu belongs to another chief there",
                      (unsigned long long)a->generation);
        return ps_error(conn, e);
    }
    if (a->rates != p->rates->n) {
        (void)err_set(e, ERR_REFUSED, "it does not support learning rates that callbacks set: use the same release");
        return ps_error(conn, e);
    }
    if (q->groups != NULL && a->group_size != q->groups->size) {
        (void)err_set(e, ERR_REFUSED, "it does not support synchronous updates: use the same release");
        return ps_error(conn, e);
    }
    conn->incarnation = 0; /* the process that answered Init counts from now on */
    remote_of(p)->unfinished = false;
    return ps_admit(p, conn, a->incarnation, a->generation, e) < 0 ? ps_error(conn, e) : 0;
}

static int remote_init(struct params *p, size_t ps, const char *optimizer_json, int64_t deadline_ms, struct err *e)
{
    struct ps_connection *conn = connection_of(p, ps);
    auto_free Trainyard__V1__Segment *segments = xcalloc(conn->nsegments, sizeof(*segments));
    auto_free Trainyard__V1__Segment **list = xcalloc(conn->nsegments, sizeof(*list));
    for (size_t i = 0; i < conn->nsegments; i++) {
        codec_segment(conn->segments[i], &segments[i]);
        list[i] = &segments[i];
    }
    Trainyard__V1__InitRequest q;
    trainyard__v1__init_request__init(&q);
    q.optimizer = unconst(optimizer_json);
    q.segments = list;
    q.n_segments = conn->nsegments;
    q.layout_hash = p->layout->hash;
    q.share_max = shm_size_max(remote_of(p));
    Trainyard__V1__Groups groups;
    codec_groups(&p->groups, &groups);
    q.groups = p->groups.size > 0 ? &groups : NULL;
    return call_init(p, conn, &q, deadline_ms, e);
}

static int remote_adopt(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    Trainyard__V1__InitRequest q;
    trainyard__v1__init_request__init(&q);
    q.adopt = true;
    return call_init(p, connection_of(p, ps), &q, deadline_ms, e);
}

/* ---- Restore ---- */

static int call_restore(struct params *p, struct ps_connection *conn, Trainyard__V1__RestoreRequest *q,
                        const struct rpc_piece *piece, int64_t deadline_ms, struct err *e)
{
    Trainyard__V1__Header header;
    PROTOBUF_AUTO *answer = NULL;
    remote_header(p, &header);
    q->header = &header;
    size_t bytes = piece != NULL ? piece->size : 0;
    if (call_ps(conn, PS_RESTORE, bytes, &q->base, piece, deadline_ms, &trainyard__v1__restore_reply__descriptor, NULL,
                &answer, e) < 0)
        return -1;
    const Trainyard__V1__RestoreReply *a = (const void *)answer;
    return ps_admit(p, conn, a->incarnation, a->generation, e) < 0 ? ps_error(conn, e) : 0;
}

static int remote_restore(struct params *p, size_t ps, uint32_t segment, bool with_slots, int64_t version,
                          const struct ordinal_set *applied, const float *data, size_t floats, int64_t deadline_ms,
                          struct err *e)
{
    Trainyard__V1__RestoreRequest q = TRAINYARD__V1__RESTORE_REQUEST__INIT;
    Trainyard__V1__OrdinalSet set;
    auto_free int64_t *ranges = NULL;
    codec_ordinals(applied, &set, &ranges);
    q.segment = segment;
    q.with_slots = with_slots;
    q.version = version;
    q.applied = &set;
    struct rpc_piece piece = { .data = data, .size = floats * sizeof(float) };
    return call_restore(p, connection_of(p, ps), &q, &piece, deadline_ms, e);
}

static int remote_serve(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    Trainyard__V1__RestoreRequest q = TRAINYARD__V1__RESTORE_REQUEST__INIT;
    q.only_serve = true;
    return call_restore(p, connection_of(p, ps), &q, NULL, deadline_ms, e);
}

/* ---- Snapshot, Finish ---- */

static const struct segment_spec *segment_of(const struct ps_connection *conn, uint32_t id)
{
    for (size_t i = 0; i < conn->nsegments; i++)
        if (conn->segments[i]->id == id)
            return conn->segments[i];
    return NULL;
}

static int read_snapshot(const Trainyard__V1__SnapshotReply *a, const struct segment_spec *spec,
                         const struct rpc_message *m, struct shard_snapshot *ret, struct err *e)
{
    size_t bytes = rpc_message_payload_size(m);
    void *data;
    if (a->slots > OPTIMIZER_MAX_SLOTS || bytes != (1 + (size_t)a->slots) * spec->count * sizeof(float))
        return err_set(e, ERR_INTERNAL, "its snapshot of segment %u has %zu bytes with %u slots", spec->id, bytes,
                       a->slots);
    AUTO_FINI(shard_snapshot) s = { .version = a->version, .slots = (int)a->slots, .count = spec->count };
    if (codec_ordinal_set(a->applied, &s.applied, e) < 0 || mem_alloc(bytes, "a snapshot", &data, e) < 0)
        return -1;
    s.data = data;
    if (!rpc_message_copy(m, 0, s.data, bytes))
        return err_set(e, ERR_INTERNAL, "its snapshot of segment %u is cut off", spec->id);
    *ret = s;
    s = (struct shard_snapshot){ 0 };
    return 0;
}

/* About all segments of a ps. */
static int call_snapshots(struct params *p, size_t ps, Trainyard__V1__SnapshotRequest *q, int64_t deadline_ms,
                          struct err *e)
{
    Trainyard__V1__Header header;
    PROTOBUF_AUTO *answer = NULL;
    remote_header(p, &header);
    q->header = &header;
    return call_ps(connection_of(p, ps), PS_SNAPSHOT, 0, &q->base, NULL, deadline_ms,
                   &trainyard__v1__snapshot_reply__descriptor, NULL, &answer, e);
}

static int remote_announce_snapshot(struct params *p, size_t ps, int64_t at, int64_t deadline_ms, struct err *e)
{
    Trainyard__V1__SnapshotRequest q = TRAINYARD__V1__SNAPSHOT_REQUEST__INIT;
    q.of_step = q.announce = true;
    q.at = at;
    return call_snapshots(p, ps, &q, deadline_ms, e);
}

static int remote_confirm_snapshots(struct params *p, size_t ps, int64_t deadline_ms, struct err *e)
{
    Trainyard__V1__SnapshotRequest q = TRAINYARD__V1__SNAPSHOT_REQUEST__INIT;
    q.confirm = true;
    return call_snapshots(p, ps, &q, deadline_ms, e);
}

static int remote_snapshot(struct params *p, size_t ps, uint32_t segment, const int64_t *at, int64_t deadline_ms,
                           struct shard_snapshot *ret, struct err *e)
{
    struct ps_connection *conn = connection_of(p, ps);
    const struct segment_spec *spec = segment_of(conn, segment);
    if (spec == NULL)
        return err_set(e, ERR_INTERNAL, "%s does not hold segment %u", conn->name, segment);
    Trainyard__V1__Header header;
    Trainyard__V1__SnapshotRequest q = TRAINYARD__V1__SNAPSHOT_REQUEST__INIT;
    PROTOBUF_AUTO *answer = NULL;
    AUTO(rpc_message) *m = NULL;
    remote_header(p, &header);
    q.header = &header;
    q.segment = segment;
    q.of_step = at != NULL;
    q.at = at != NULL ? *at : 0;
    size_t most = spec->count * (1 + OPTIMIZER_MAX_SLOTS) * sizeof(float);
    if (call_ps(conn, PS_SNAPSHOT, most, &q.base, NULL, deadline_ms, &trainyard__v1__snapshot_reply__descriptor, &m,
                &answer, e) < 0)
        return -1;
    const Trainyard__V1__SnapshotReply *a = (const void *)answer;
    if (ps_admit(p, conn, a->incarnation, a->generation, e) < 0 || read_snapshot(a, spec, m, ret, e) < 0)
        return ps_error(conn, e);
    return 0;
}

static int remote_finish(struct params *p, size_t ps, int64_t step, int64_t deadline_ms, struct err *e)
{
    Trainyard__V1__Header header;
    Trainyard__V1__FinishRequest q = TRAINYARD__V1__FINISH_REQUEST__INIT;
    PROTOBUF_AUTO *answer = NULL;
    remote_header(p, &header);
    q.header = &header;
    q.step = step;
    return call_ps(connection_of(p, ps), PS_FINISH, 0, &q.base, NULL, deadline_ms,
                   &trainyard__v1__finish_reply__descriptor, NULL, &answer, e);
}

const struct params_admin_ops remote_admin = {
    .describe = remote_describe_all,
    .init = remote_init,
    .adopt = remote_adopt,
    .restore = remote_restore,
    .serve = remote_serve,
    .announce_snapshot = remote_announce_snapshot,
    .snapshot = remote_snapshot,
    .confirm_snapshots = remote_confirm_snapshots,
    .finish = remote_finish,
};
