/* Batch statistics over gRPC: all go to one ps. */
#include "params/params_reduce.h"
#include "params/params_grpc.h"

void reduce_pack(Trainyard__V1__Header *header, const struct group_request *q, struct buf *ret)
{
    Trainyard__V1__ReduceRequest m = TRAINYARD__V1__REDUCE_REQUEST__INIT;
    m.header = header;
    m.at = q->part.at;
    m.phase = q->part.phase;
    m.ordinals = unconst(q->part.ordinals);
    m.n_ordinals = q->part.n;
    m.width = (uint32_t)q->part.width;
    m.wait_ms = (uint32_t)q->wait_ms;
    codec_pack(&m.base, ret);
}

struct rpc_piece reduce_piece(const struct group_request *q)
{
    return (struct rpc_piece){ .data = q->part.n > 0 ? q->part.numbers : NULL,
                               .size = q->part.n * q->part.width * sizeof(double) };
}

int reduce_read(const struct rpc_message *m, const Trainyard__V1__ReduceReply *answer, struct group_request *q,
                struct err *e)
{
    struct payload_walk walk;
    struct bytes_in in = codec_payload(m, &walk);
    q->answer = answer->again ? GROUP_AGAIN : GROUP_TOTALS;
    if (answer->again)
        return 0;
    if (in.size != q->part.width * sizeof(double))
        return err_set(e, ERR_LOST, "%zu bytes for the sums of %zu numbers", in.size, q->part.width);
    return codec_copy(&in, q->totals) ? 0 : err_set(e, ERR_LOST, "an answer ended within its sums");
}

static int reduce_call(struct params *p, struct ps_connection *conn, struct group_request *q, int64_t deadline_ms,
                       struct err *e)
{
    Trainyard__V1__Header header;
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    PROTOBUF_AUTO *answer = NULL;
    const struct rpc_piece piece = reduce_piece(q);
    remote_header(p, &header);
    reduce_pack(&header, q, &head);
    struct rpc_call *call =
        rpc_start(conn->channel, conn->small_lane, ps_method_path(PS_REDUCE), head.data, head.len, &piece,
                  piece.data != NULL, deadline_ms + q->wait_ms + params_floor_ms(piece.size));
    if (rpc_wait(call, &m, e) < 0 || codec_unpack(&trainyard__v1__reduce_reply__descriptor, m, &answer, e) < 0)
        return -1;
    const Trainyard__V1__ReduceReply *r = (const void *)answer;
    if (ps_admit(p, conn, r->incarnation, r->generation, e) < 0)
        return -1;
    return reduce_read(m, r, q, e);
}

/* The first one that has segments: they say which step is computed. */
static struct ps_connection *summing_ps(struct params *p)
{
    size_t i = 0;
    while (i + 1 < p->nps && remote_of(p)->conns[i].nsegments == 0)
        i++;
    return &remote_of(p)->conns[i];
}

int remote_reduce(struct params *p, struct group_request *q, int64_t deadline_ms, struct err *e)
{
    struct ps_connection *conn = summing_ps(p);
    return reduce_call(p, conn, q, deadline_ms, e) < 0 ? ps_error(conn, e) : 0;
}
