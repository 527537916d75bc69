#include "params/params_grpc.h"

#include <string.h>

#include "base/clock.h"
#include "net/address.h"
#include "shard/shard_internal.h"

/* A ps that holds more than CHUNK_BYTES is pulled and pushed in chunks of about that size, over LANES connections, so
 * that copying at both ends goes on while bytes travel (test/bench/bench_params.c). Up to WINDOW chunks of a ps are in
 * flight on a fast network, WINDOW_MIN on a slow one: one goes there while the values of the other come back, and what
 * waits in a connection delays neither its keepalive nor the calls of others for long. The window follows the time
 * that chunks take. */
enum { CHUNK_BYTES = 4 << 20, LANES = 4, WINDOW = 8, WINDOW_MIN = 2, QUICK_MS = 500, SLOW_MS = 2000 };
enum { PULLING = -1, WATCH_AFTER_MS = 1000 };

void remote_header(const struct params *p, Trainyard__V1__Header *ret)
{
    trainyard__v1__header__init(ret);
    ret->job_uid = wire_text(p->id.job_uid);
    ret->sender = wire_text(p->id.sender);
    ret->generation = p->generation;
    ret->incarnation = p->id.incarnation;
}

int ps_error(const struct ps_connection *conn, struct err *e)
{
    const char *target = rpc_channel_target(conn->channel);
    if (e == NULL || !str_starts(e->msg, target))
        return err_wrap(e, "ps-%zu (%s)", conn->index, target);
    return err_set(e, e->code, "ps-%zu (%s)%s", conn->index, target, e->msg + strlen(target));
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

static struct rpc_call *start_pull(struct remote *r, const struct request *j, int64_t deadline_ms)
{
    Trainyard__V1__Header header;
    Trainyard__V1__PullRequest q = TRAINYARD__V1__PULL_REQUEST__INIT;
    remote_header(&r->p, &header);
    q.header = &header;
    q.first = (uint32_t)j->chunk->first;
    q.count = (uint32_t)j->chunk->count;
    wire_pack(&q.base, &j->chunk->head);
    return rpc_start(j->conn->channel, j->chunk->lane, wire_method(PS_PULL), j->chunk->head.data, j->chunk->head.len,
                     NULL, 0, deadline_ms);
}

/* The pieces of the chunk's gradient; neighbours in the vector become one. */
static void aim(const struct request *j, const float *grads)
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

static struct rpc_call *start_push(struct remote *r, const struct request *j, int64_t deadline_ms)
{
    struct chunk *chunk = j->chunk;
    Trainyard__V1__Header header;
    Trainyard__V1__PushRequest q = TRAINYARD__V1__PUSH_REQUEST__INIT;
    remote_header(&r->p, &header);
    q.header = &header;
    q.ordinal = r->ordinal;
    q.first = (uint32_t)chunk->first;
    q.count = (uint32_t)chunk->count;
    if (j->conn->pushed.known) {
        q.versions = j->conn->pushed.v + chunk->first;
        q.n_versions = chunk->count;
    }
    aim(j, r->grads);
    wire_pack(&q.base, &chunk->head);
    return rpc_start(j->conn->channel, chunk->lane, wire_method(PS_PUSH), chunk->head.data, chunk->head.len,
                     chunk->pieces, chunk->npieces, deadline_ms);
}

/* ---- answers ---- */

/* Copies values to where the segments of the chunk lie in the vector. */
static int scatter(struct remote *r, const struct request *j, struct bytes_in *values, bool constants, struct err *e)
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

static int scatter_message(struct remote *r, const struct request *j, const struct rpc_message *m, bool constants,
                           struct err *e)
{
    struct wire_walk walk;
    struct bytes_in values = wire_payload(m, &walk);
    return scatter(r, j, &values, constants, e);
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

static int take_pull(struct remote *r, const struct request *j, const struct rpc_message *m, struct err *e)
{
    WIRE_AUTO *message = NULL;
    if (wire_unpack(&trainyard__v1__pull_reply__descriptor, m, &message, e) < 0)
        return -1;
    const Trainyard__V1__PullReply *a = (const void *)message;
    if (ps_admit(&r->p, j->conn, a->incarnation, a->generation, e) < 0 ||
        check_versions(j, a->versions, a->n_versions, e) < 0 || scatter_message(r, j, m, true, e) < 0)
        return -1;
    if (a->n_versions > 0)
        memcpy(j->conn->now.v + j->chunk->first, a->versions, a->n_versions * sizeof(*a->versions));
    return 0;
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
    WIRE_AUTO *message = NULL;
    if (wire_unpack(&trainyard__v1__push_reply__descriptor, m, &message, e) < 0)
        return -1;
    const Trainyard__V1__PushReply *a = (const void *)message;
    if (ps_admit(&r->p, j->conn, a->incarnation, a->generation, e) < 0 ||
        check_versions(j, a->versions, a->n_versions, e) < 0 || scatter_message(r, j, m, false, e) < 0)
        return -1;
    return remote_pushed(r, j, a->versions, a->n_versions, a->duplicate, e);
}

/* ---- all at once ---- */

static size_t bytes_of(const struct remote *r, const struct chunk *chunk)
{
    return r->ordinal == PULLING ? chunk->pull : 2 * chunk->push;
}

/* A ps that shares memory reads all of a gradient at once: it gains nothing by chunks that come early. */
static bool may_start(const struct remote *r, const struct ps_connection *conn)
{
    size_t window = r->ordinal != PULLING && shm_in_use(conn) ? (size_t)conn->nslots : conn->window;
    if (conn->left == 0 || conn->in_flight >= window)
        return false;
    return r->from == 0 || (!shm_in_use(conn) && conn->segments[conn->chunks[conn->left - 1].first]->offset >= r->from);
}

/* Starts the next chunks of the ps that are not done, as many as its window has room for; the last layers come first.
 * The deadline of each leaves time for what is in flight before it, because they share the link. */
static void start_chunks(struct remote *r, struct ps_connection *conn)
{
    while (may_start(r, conn)) {
        struct chunk *chunk = &conn->chunks[--conn->left];
        const struct request q = { conn, chunk };
        if (chunk->done)
            continue;
        conn->in_flight++;
        conn->bytes_in_flight += bytes_of(r, chunk);
        int64_t deadline_ms = r->deadline_ms + params_floor_ms(conn->bytes_in_flight);
        chunk->started_ms = clock_ms();
        if (r->ordinal == PULLING)
            chunk->call = start_pull(r, &q, deadline_ms);
        else if (shm_in_use(conn))
            shm_start(r, &q);
        else
            chunk->call = start_push(r, &q, deadline_ms);
    }
}

static void cancel(struct remote *r)
{
    for (size_t i = 0; i < r->nrequests; i++)
        if (r->requests[i].chunk->call != NULL)
            rpc_cancel(r->requests[i].chunk->call);
}

/* Ends the calls in flight, whose answers nobody wants. */
static void drain(struct remote *r)
{
    cancel(r);
    for (size_t i = 0; i < r->nrequests; i++) {
        const struct request *j = &r->requests[i];
        AUTO(rpc_message) *unread = NULL;
        struct err ignored;
        if (j->chunk->call != NULL && rpc_wait(TAKE(j->chunk->call), &unread, &ignored) == 0)
            continue;
    }
    for (size_t i = 0; i < r->p.nps; i++)
        r->conns[i].in_flight = r->conns[i].bytes_in_flight = 0;
}

/* Begins a pull (PULLING) or the push of an ordinal; start_chunks then starts it. again: it is the one that failed, and
 * only what is missing is asked for. */
static void begin(struct remote *r, int64_t ordinal, bool again, int64_t deadline_ms)
{
    if (r->early)
        drain(r); /* a push that was begun and given up */
    r->early = false;
    r->deadline_ms = deadline_ms;
    r->ordinal = ordinal;
    r->unfinished = true;
    for (size_t i = 0; i < r->p.nps; i++)
        r->conns[i].left = r->conns[i].nchunks;
    if (again)
        return;
    r->since_ms = clock_ms();
    r->result = (struct push_result){ .duplicate = true, .version_min = INT64_MAX };
    r->done = r->total = 0;
    for (size_t i = 0; i < r->nrequests; i++) {
        r->requests[i].chunk->done = false;
        r->total += bytes_of(r, r->requests[i].chunk);
    }
}

static void adapt_window(struct ps_connection *conn, bool ok, int64_t took_ms)
{
    if (ok && took_ms < QUICK_MS)
        conn->window = MIN(2 * conn->window, WINDOW);
    else if (!ok || took_ms > SLOW_MS)
        conn->window = MAX(conn->window / 2, WINDOW_MIN);
}

static int finish_call(struct remote *r, const struct request *j, struct err *e)
{
    AUTO(rpc_message) *m = NULL;
    if (rpc_wait(TAKE(j->chunk->call), &m, e) < 0)
        return -1;
    return r->ordinal == PULLING ? take_pull(r, j, m, e) : take_push(r, j, m, e);
}

static int finish_chunk(struct remote *r, const struct request *j, int64_t begun_ms, struct err *e)
{
    struct chunk *chunk = j->chunk;
    int rc = chunk->call != NULL ? finish_call(r, j, e) : shm_finish(r, j, r->deadline_ms, e);
    j->conn->in_flight--;
    j->conn->bytes_in_flight -= bytes_of(r, chunk);
    adapt_window(j->conn, rc == 0, clock_ms() - MAX(chunk->started_ms, begun_ms));
    if (rc < 0)
        return ps_error(j->conn, e);
    chunk->done = true;
    r->done += bytes_of(r, chunk);
    r->p.moved += bytes_of(r, chunk);
    return 0;
}

/* Tells the watch of a long pull or push how far it is. */
int remote_watch(const struct remote *r, const struct ps_connection *conn, struct err *e)
{
    char text[200], done[32], total[32];
    if (r->p.watch == NULL || r->done == r->total || clock_ms() - r->since_ms < WATCH_AFTER_MS)
        return 0;
    str_fmt(text, sizeof(text), "ps-%zu (%s): %s of %s %s", conn->index, rpc_channel_target(conn->channel),
            str_bytes(r->done, done), str_bytes(r->total, total),
            r->ordinal == PULLING ? "pulled" : "pushed and pulled");
    return r->p.watch(r->p.watch_user, r->since_ms, text, e);
}

/* Waits for every chunk that was started, also after a failure; the first error stays. Parts that are done stay done,
 * also for a repetition; not so when a ps is another process than before. */
static int gather(struct remote *r, struct err *e)
{
    int rc = 0;
    int64_t begun_ms = clock_ms();
    for (size_t i = 0; i < r->nrequests; i++) {
        const struct request *j = &r->requests[i];
        struct err error = { .code = ERR_NONE };
        if (j->chunk->call == NULL && j->chunk->slot < 0)
            continue;
        int one = finish_chunk(r, j, begun_ms, &error);
        if (one == 0 && rc == 0) {
            start_chunks(r, j->conn);
            one = remote_watch(r, j->conn, &error);
            if (one < 0)
                cancel(r);
        }
        if (one < 0 && rc == 0) {
            if (e != NULL)
                *e = error;
            rc = -1;
        }
        r->unfinished = r->unfinished && error.code != ERR_FENCED;
    }
    r->unfinished = r->unfinished && rc < 0;
    return rc;
}

static void versions_are(struct remote *r, bool known)
{
    for (size_t i = 0; i < r->p.nps; i++)
        r->conns[i].now.known = known;
}

static int remote_pull(struct params *p, bool rest, int64_t deadline_ms, struct err *e)
{
    struct remote *r = remote_of(p);
    r->from = 0;
    versions_are(r, false);
    begin(r, PULLING, rest && r->unfinished && r->ordinal == PULLING, deadline_ms);
    for (size_t i = 0; i < p->nps; i++)
        start_chunks(r, &r->conns[i]);
    if (gather(r, e) < 0)
        return -1;
    versions_are(r, true);
    return 0;
}

static void remote_versions(const struct params *p, int64_t *ret_min, int64_t *ret_max)
{
    const struct remote *r = (const struct remote *)(const void *)p;
    bool first = true;
    *ret_min = *ret_max = 0;
    for (size_t i = 0; i < p->nps; i++)
        for (size_t k = 0; k < r->conns[i].nsegments; k++, first = false) {
            int64_t v = r->conns[i].now.v[k];
            *ret_min = first ? v : MIN(*ret_min, v);
            *ret_max = first ? v : MAX(*ret_max, v);
        }
}

static void versions_copy(struct versions *to, const struct versions *from, size_t n)
{
    memcpy(to->v, from->v, n * sizeof(*to->v));
    to->known = from->known;
}

static void remote_mark(struct params *p)
{
    struct remote *r = remote_of(p);
    for (size_t i = 0; i < p->nps; i++)
        versions_copy(&r->conns[i].marked, &r->conns[i].now, r->conns[i].nsegments);
    r->is_marked = true;
}

/* What the gradient was computed from. */
static void push_base(struct remote *r)
{
    for (size_t i = 0; i < r->p.nps; i++) {
        struct ps_connection *conn = &r->conns[i];
        versions_copy(&conn->pushed, r->is_marked ? &conn->marked : &conn->now, conn->nsegments);
    }
    r->is_marked = false;
}

static int remote_push_start(struct params *p, int64_t ordinal, const float *grads, bool direct, int64_t deadline_ms,
                             struct err *e)
{
    struct remote *r = remote_of(p);
    bool again = r->unfinished && r->ordinal == ordinal;
    bool continues = again && r->early; /* what remote_push_early began */
    (void)e;
    r->from = 0;
    r->early = r->early && !continues;
    if (!continues) {
        r->grads = grads;
        if (!again)
            push_base(r);
        shm_prepare(r, direct);
        begin(r, ordinal, again, deadline_ms);
    }
    for (size_t i = 0; i < p->nps; i++)
        start_chunks(r, &r->conns[i]);
    return 0;
}

static bool has_several_chunks(const struct remote *r)
{
    for (size_t i = 0; i < r->p.nps; i++)
        if (r->conns[i].nchunks > 1)
            return true;
    return false;
}

static void remote_push_early(struct params *p, int64_t ordinal, const float *grads, size_t from, int64_t deadline_ms)
{
    struct remote *r = remote_of(p);
    if (!has_several_chunks(r))
        return;
    r->from = from;
    if (!r->early) {
        r->grads = grads;
        push_base(r);
        shm_prepare(r, true);
        begin(r, ordinal, false, deadline_ms);
        r->early = true;
    }
    for (size_t i = 0; i < p->nps; i++)
        start_chunks(r, &r->conns[i]);
}

static int remote_push_finish(struct params *p, struct push_result *ret, struct err *e)
{
    struct remote *r = remote_of(p);
    if (gather(r, e) < 0)
        return -1;
    versions_are(r, true);
    if (r->result.version_min == INT64_MAX)
        r->result.version_min = 0;
    *ret = r->result;
    return 0;
}

static void remote_forget(struct params *p)
{
    struct remote *r = remote_of(p);
    for (size_t i = 0; i < p->nps; i++)
        r->conns[i].incarnation = 0;
    versions_are(r, false);
    r->is_marked = false;
    r->unfinished = false;
}

/* ---- making ---- */

static void remote_free(struct params *p)
{
    struct remote *r = remote_of(p);
    drain(r);
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
    params_release(p);
}

static const struct params_ops REMOTE = {
    .free = remote_free,
    .forget = remote_forget,
    .mark = remote_mark,
    .gradients = shm_gradients,
    .pull = remote_pull,
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
                             const char *host)
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
    conn->window = WINDOW_MIN;
    conn->small_lane = MIN(LANES, (int)MAX(conn->nchunks, 1));
    conn->channel = rpc_channel_new(
        host, &(struct rpc_channel_options){ .lanes = conn->small_lane + 1, .payload_max = WIRE_PAYLOAD_MAX });
    conn->shm_allowed = address_is_loopback(host);
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

struct params *params_new_grpc(const struct layout *l, const struct placement *p, char *const hosts[],
                               const struct params_identity *id)
{
    struct remote *r = xcalloc(1, sizeof(*r));
    params_setup(&r->p, &REMOTE, &remote_admin, l, p->nps, id);
    r->conns = xcalloc(p->nps, sizeof(*r->conns));
    for (size_t i = 0; i < p->nps; i++) {
        r->conns[i].index = i;
        connection_setup(&r->conns[i], l, p->ids[i], p->n[i], hosts[i]);
    }
    plan_requests(r);
    shm_setup(r);
    return &r->p;
}
