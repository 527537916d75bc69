/* The gRPC form of params: a connection to each ps, and the chunks that its segments travel in. */
#include "params/params_grpc.h"

#include "net/address.h"

/* A ps that holds more than CHUNK_BYTES is pulled and pushed in chunks of about that size, over LANES connections,
 * so that copying at both ends continues while bytes are sent (test/bench/bench_params.c). */
enum { CHUNK_BYTES = 4 << 20, LANES = 4 };

static void remote_free(struct params *p)
{
    struct remote *r = remote_of(p);
    remote_drain(r);
    shm_fini(r); /* now that no call reads a gradient any more */
    for (size_t i = 0; i < p->nps; i++) {
        struct ps_connection *conn = &r->conns[i];
        for (size_t k = 0; k < conn->nchunks; k++) {
            free(conn->chunks[k].pieces);
            buf_fini(&conn->chunks[k].head);
        }
        free(conn->chunks);
        free(conn->segments);
        free(conn->now.v);
        free(conn->marked.v);
        free(conn->pushed.v);
        rpc_channel_free(conn->channel);
    }
    free(r->conns);
    free(r->requests);
    if (r->borrows)
        p->vector = NULL;
    params_release(p);
}

static const struct params_ops REMOTE = {
    .free = remote_free,
    .forget = remote_forget,
    .mark = remote_mark,
    .gradients = shm_gradients,
    .pull = remote_pull,
    .pull_at = remote_pull_at,
    .reduce = remote_reduce,
    .versions = remote_versions,
    .push_start = remote_push_start,
    .push_early = remote_push_early,
    .push_finish = remote_push_finish,
};

static void chunk_add(struct ps_connection *conn, size_t segment)
{
    const struct segment_spec *s = conn->segments[segment];
    size_t bytes = s->count * sizeof(float);
    struct chunk *last = conn->nchunks > 0 ? &conn->chunks[conn->nchunks - 1] : NULL;
    if (last == NULL || last->pull + bytes > CHUNK_BYTES) {
        conn->chunks = xrealloc(conn->chunks, (conn->nchunks + 1) * sizeof(*conn->chunks));
        last = &conn->chunks[conn->nchunks];
        *last = (struct chunk){ .first = segment, .slot = -1, .lane = (int)(conn->nchunks % LANES), .head = BUF_INIT };
        conn->nchunks++;
    }
    last->count++;
    last->pull += bytes;
    last->push += s->kind == VAR_CONST ? 0 : bytes;
    conn->push += s->kind == VAR_CONST ? 0 : bytes;
}

static void connection_setup(struct ps_connection *conn, const struct layout *l, const uint32_t *ids, size_t n,
                             const char *host, const struct rpc_credentials *credentials)
{
    conn->segments = xcalloc(n, sizeof(*conn->segments));
    conn->now.v = xcalloc(n, sizeof(int64_t));
    conn->marked.v = xcalloc(n, sizeof(int64_t));
    conn->pushed.v = xcalloc(n, sizeof(int64_t));
    conn->nsegments = n;
    for (size_t i = 0; i < n; i++) {
        conn->segments[i] = &l->segments[ids[i]];
        chunk_add(conn, i);
    }
    for (size_t k = 0; k < conn->nchunks; k++)
        conn->chunks[k].pieces = xcalloc(conn->chunks[k].count, sizeof(struct rpc_piece));
    conn->window = CHUNKS_IN_FLIGHT_MIN;
    conn->small_lane = MIN(LANES, (int)MAX(conn->nchunks, 1));
    conn->channel =
        rpc_channel_new(host, credentials,
                        &(struct rpc_channel_options){
                            .lanes = conn->small_lane + 1, .payload_max = PARAMETERS_PAYLOAD_MAX, .peer = conn->name });
}

static void plan_requests(struct remote *r)
{
    size_t most = 0, n = 0;
    for (size_t i = 0; i < r->p.nps; i++) {
        r->nrequests += r->conns[i].nchunks;
        most = MAX(most, r->conns[i].nchunks);
    }
    r->requests = xcalloc(r->nrequests, sizeof(*r->requests));
    for (size_t k = most; k-- > 0;)
        for (size_t i = 0; i < r->p.nps; i++)
            if (k < r->conns[i].nchunks)
                r->requests[n++] = (struct request){ &r->conns[i], &r->conns[i].chunks[k] };
}

static struct remote *remote_new(const struct layout *l, const struct placement *p, const struct params_identity *id)
{
    struct remote *r = xcalloc(1, sizeof(*r));
    params_setup(&r->p, &REMOTE, &remote_admin, l, p->nps, id);
    r->wanted.at = -1;
    r->conns = xcalloc(p->nps, sizeof(*r->conns));
    return r;
}

struct params *params_new_grpc(const struct layout *l, const struct placement *p, char *const hosts[],
                               const struct params_identity *id, const struct rpc_credentials *credentials)
{
    struct remote *r = remote_new(l, p, id);
    params_make_vector(&r->p);
    for (size_t i = 0; i < p->nps; i++) {
        struct ps_connection *conn = &r->conns[i];
        conn->index = i;
        str_fmt(conn->name, sizeof(conn->name), "ps-%zu", i);
        connection_setup(conn, l, p->ids[i], p->n[i], hosts[i], credentials);
        conn->shm_allowed = address_is_loopback(hosts[i]);
    }
    plan_requests(r);
    shm_setup(r);
    return &r->p;
}

struct params *params_new_peer(const struct layout *l, const struct placement *p, const struct params_peer *peer,
                               const struct params_identity *id, const struct rpc_credentials *credentials)
{
    struct remote *r = remote_new(l, p, id);
    r->p.vector = peer->vector;
    r->borrows = peer->vector != NULL;
    if (!r->borrows)
        params_make_vector(&r->p);
    str_fmt(r->conns[0].name, sizeof(r->conns[0].name), "%s", peer->name);
    connection_setup(&r->conns[0], l, p->ids[0], p->n[0], peer->host, credentials);
    plan_requests(r);
    shm_setup(r);
    return &r->p;
}
