/* A pull or push of one chunk as gRPC messages. An answer changes the vector only when it comes from this generation,
 * from the process that answered first in it, and is complete. */
#include "params/params_grpc.h"

#include <string.h>

#include "shard/shard_internal.h"

void remote_header(const struct params *p, Trainyard__V1__Header *ret)
{
    trainyard__v1__header__init(ret);
    ret->job_uid = unconst(p->id.job_uid);
    ret->sender = unconst(p->id.sender);
    ret->generation = p->generation;
    ret->incarnation = p->id.incarnation;
}

int ps_error(const struct ps_connection *conn, struct err *e)
{
    const char *target = rpc_channel_target(conn->channel);
    if (e != NULL && err_is(e, ERR_PENDING)) /* what the job waits for, not a fault of this ps */
        return -1;
    if (e == NULL || !str_starts(e->msg, target))
        return err_wrap(e, "%s (%s)", conn->name, target);
    return err_set(e, e->code, "%s (%s)%s", conn->name, target, e->msg + strlen(target));
}

int ps_admit(const struct params *p, struct ps_connection *conn, uint64_t incarnation, uint64_t generation,
             struct err *e)
{
    if (generation != p->generation)
        return err_set(e, ERR_FENCED, "it answers in generation %llu, this is %llu", (unsigned long long)generation,
                       (unsigned long long)p->generation);
    if (conn->incarnation != 0 && incarnation != conn->incarnation)
        return err_set(e, ERR_FENCED, "it was restarted in generation %llu", (unsigned long long)generation);
    conn->incarnation = incarnation;
    return 0;
}

/* ---- requests ---- */

struct rpc_call *message_start_pull(struct remote *r, const struct request *j, int64_t deadline_ms)
{
    Trainyard__V1__Header header;
    Trainyard__V1__PullRequest q = TRAINYARD__V1__PULL_REQUEST__INIT;
    remote_header(&r->p, &header);
    q.header = &header;
    q.first = (uint32_t)j->chunk->first;
    q.count = (uint32_t)j->chunk->count;
    q.of_step = r->at >= 0;
    q.at = MAX(r->at, 0);
    q.wait_ms = r->at >= 0 ? (uint32_t)r->wait_ms : 0;
    codec_pack(&q.base, &j->chunk->head);
    return rpc_start(j->conn->channel, j->chunk->lane, ps_method_path(PS_PULL), j->chunk->head.data, j->chunk->head.len,
                     NULL, 0, deadline_ms);
}

/* The pieces of the chunk's gradient; neighbours in the vector become one. */
static void list_pieces(const struct request *j, const float *grads)
{
    struct chunk *chunk = j->chunk;
    const float *end = NULL;
    chunk->npieces = 0;
    for (size_t i = 0; i < chunk->count; i++) {
        const struct segment_spec *s = j->conn->segments[chunk->first + i];
        const float *from = grads + s->offset;
        if (s->kind == VAR_CONST)
            continue;
        if (from == end)
            chunk->pieces[chunk->npieces - 1].size += s->count * sizeof(float);
        else
            chunk->pieces[chunk->npieces++] = (struct rpc_piece){ .data = from, .size = s->count * sizeof(float) };
        end = from + s->count;
    }
}

struct rpc_call *message_start_push(struct remote *r, const struct request *j, int64_t deadline_ms)
{
    struct chunk *chunk = j->chunk;
    Trainyard__V1__Header header;
    Trainyard__V1__PushRequest q = TRAINYARD__V1__PUSH_REQUEST__INIT;
    remote_header(&r->p, &header);
    q.header = &header;
    q.ordinal = r->ordinal;
    q.first = (uint32_t)chunk->first;
    q.count = (uint32_t)chunk->count;
    q.no_values = r->p.synchronous;
    q.of_step = r->wanted.at >= 0;
    q.at = MAX(r->wanted.at, 0);
    q.wait_ms = q.of_step ? (uint32_t)r->wanted.wait_ms : 0;
    if (j->conn->pushed.known) {
        q.versions = j->conn->pushed.v + chunk->first;
        q.n_versions = chunk->count;
    }
    list_pieces(j, r->grads);
    codec_pack(&q.base, &chunk->head);
    return rpc_start(j->conn->channel, chunk->lane, ps_method_path(PS_PUSH), chunk->head.data, chunk->head.len,
                     chunk->pieces, chunk->npieces, deadline_ms);
}

/* ---- answers ---- */

/* Copies values to the places of the chunk's segments in the vector. */
static int copy_values(struct remote *r, const struct request *j, struct bytes_in *values, bool constants,
                       struct err *e)
{
    size_t want = constants ? j->chunk->pull : j->chunk->push;
    struct float_reader reader = { .in = values };
    if (values->size != want)
        return err_set(e, ERR_INTERNAL, "it answers with %zu bytes of values instead of %zu", values->size, want);
    for (size_t i = 0; i < j->chunk->count; i++) {
        const struct segment_spec *s = j->conn->segments[j->chunk->first + i];
        if (s->kind == VAR_CONST && !constants)
            continue;
        if (!floats_copy(&reader, r->p.vector + s->offset, s->count))
            return err_set(e, ERR_INTERNAL, "its values end within segment %u", s->id);
    }
    return 0;
}

static int copy_payload(struct remote *r, const struct request *j, const struct rpc_message *m, bool constants,
                        struct err *e)
{
    struct payload_walk walk;
    struct bytes_in values = codec_payload(m, &walk);
    return copy_values(r, j, &values, constants, e);
}

static int check_versions(const struct request *j, const int64_t *versions, size_t n, struct err *e)
{
    if (n != j->chunk->count)
        return err_set(e, ERR_INTERNAL, "it answers with %zu versions of %zu segments", n, j->chunk->count);
    for (size_t i = 0; i < n; i++)
        if (versions[i] < 0)
            return err_set(e, ERR_INTERNAL, "it answers with version %lld", (long long)versions[i]);
    return 0;
}

int remote_pulled(const struct request *j, const int64_t *versions, size_t n, struct err *e)
{
    if (check_versions(j, versions, n, e) < 0)
        return -1;
    if (n > 0)
        memcpy(j->conn->now.v + j->chunk->first, versions, n * sizeof(*versions));
    return 0;
}

static int take_pull(struct remote *r, const struct request *j, const struct rpc_message *m, struct err *e)
{
    PROTOBUF_AUTO *message = NULL;
    if (codec_unpack(&trainyard__v1__pull_reply__descriptor, m, &message, e) < 0)
        return -1;
    const Trainyard__V1__PullReply *a = (const void *)message;
    if (ps_admit(&r->p, j->conn, a->incarnation, a->generation, e) < 0 ||
        check_versions(j, a->versions, a->n_versions, e) < 0 || copy_payload(r, j, m, true, e) < 0)
        return -1;
    return remote_pulled(j, a->versions, a->n_versions, e);
}

int remote_pushed(struct remote *r, const struct request *j, const int64_t *versions, size_t n, bool duplicate,
                  struct err *e)
{
    const struct versions *pushed = &j->conn->pushed;
    struct push_result *result = &r->result;
    if (check_versions(j, versions, n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        result->version_min = MIN(result->version_min, versions[i]);
        if (!duplicate && pushed->known)
            result->staleness = MAX(result->staleness, versions[i] - 1 - pushed->v[j->chunk->first + i]);
        j->conn->now.v[j->chunk->first + i] = versions[i];
    }
    result->duplicate = result->duplicate && duplicate;
    return 0;
}

static int take_push(struct remote *r, const struct request *j, const struct rpc_message *m, struct err *e)
{
    PROTOBUF_AUTO *message = NULL;
    if (codec_unpack(&trainyard__v1__push_reply__descriptor, m, &message, e) < 0)
        return -1;
    const Trainyard__V1__PushReply *a = (const void *)message;
    if (ps_admit(&r->p, j->conn, a->incarnation, a->generation, e) < 0 ||
        check_versions(j, a->versions, a->n_versions, e) < 0)
        return -1;
    j->chunk->has_values = a->of_step && r->wanted.at >= 0;
    if ((j->chunk->has_values || !r->p.synchronous) && copy_payload(r, j, m, j->chunk->has_values, e) < 0)
        return -1;
    return remote_pushed(r, j, a->versions, a->n_versions, a->duplicate, e);
}

int message_finish(struct remote *r, const struct request *j, struct err *e)
{
    AUTO(rpc_message) *m = NULL;
    if (rpc_wait(TAKE(j->chunk->call), &m, e) < 0)
        return -1;
    return r->ordinal == PULLING ? take_pull(r, j, m, e) : take_push(r, j, m, e);
}
