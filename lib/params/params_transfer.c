/* A pull or push of the whole vector: its chunks are in flight at all ps at once. A chunk travels as a gRPC message
 * (params_message.c), or, for a push to a ps of this host, through a slot in shared memory (params_shm.c). A transfer
 * that failed is continued: chunks that are done are not sent again. */
#include "params/params_grpc.h"

#include <string.h>

#include "base/clock.h"

/* Up to CHUNKS_IN_FLIGHT_MAX chunks of a ps are in flight on a fast network, CHUNKS_IN_FLIGHT_MIN on a slow one: one
 * is sent while the values of the other come back. Bytes that wait in a connection must not delay its keepalive and
 * other calls for long, so the window follows the time that chunks take. */
enum { CHUNKS_IN_FLIGHT_MAX = 8, QUICK_MS = 500, SLOW_MS = 2000 };
/* While a slot has no answer, Describe checks at growing intervals that the ps is alive. */
enum { ALIVE_MS = 2000, SLICE_MS = 20, SLICE_MAX_MS = 1000 };

static size_t bytes_of(const struct remote *r, const struct chunk *chunk)
{
    if (r->ordinal == PULLING)
        return chunk->pull;
    return chunk->push + (r->wanted.at >= 0 ? chunk->pull : r->p.synchronous ? 0 : chunk->push);
}

/* Calls the watch of a long pull or push. */
static int call_watch(const struct remote *r, const struct ps_connection *conn, struct err *e)
{
    char text[200], done[32], total[32];
    if (r->p.watch == NULL || r->done == r->total || clock_ms() - r->since_ms < r->p.watch_after_ms)
        return 0;
    str_fmt(text, sizeof(text), "%s (%s): %s of %s %s", conn->name, rpc_channel_target(conn->channel),
            str_bytes(r->done, done), str_bytes(r->total, total),
            r->ordinal == PULLING                  ? "pulled"
            : r->p.synchronous && r->wanted.at < 0 ? "pushed"
                                                   : "pushed and pulled");
    return r->p.watch(r->p.watch_user, r->since_ms, text, e);
}

/* ---- a chunk through a slot ---- */

static int free_slot(const struct ps_connection *conn)
{
    int k = 0;
    while (conn->busy[k])
        k++;
    return k; /* no more chunks are in flight than there are slots */
}

static void start_slot(struct remote *r, const struct request *q)
{
    struct ps_connection *conn = q->conn;
    int k = free_slot(conn);
    struct push_slot *slot = conn->slots[k];
    slot->request = (struct push_slot_request){ .ordinal = r->ordinal,
                                                .generation = r->p.generation,
                                                .at = r->at,
                                                .wait_ms = (uint32_t)r->wait_ms,
                                                .gradients_at = r->push_from,
                                                .values_at = r->push_to,
                                                .first = (uint32_t)q->chunk->first,
                                                .count = (uint32_t)q->chunk->count,
                                                .knows_versions = conn->pushed.known && r->ordinal != PULLING };
    if (slot->request.knows_versions)
        memcpy(slot->versions, conn->pushed.v + q->chunk->first, q->chunk->count * sizeof(int64_t));
    conn->busy[k] = true;
    q->chunk->slot = k;
    shm_slot_post(&slot->base.asked, ++conn->asked[k]);
}

/* A ps that does not answer may be slow, gone, or another process by now. */
static int check_alive(struct remote *r, const struct ps_connection *conn, int64_t deadline_ms, struct err *e)
{
    AUTO_FINI(shard_info) info = { 0 };
    struct err cause = { .code = ERR_NONE };
    if (call_watch(r, conn, e) < 0)
        return -1;
    if (remote_describe(&r->p, conn->index, MIN(deadline_ms, (int64_t)ALIVE_MS), &info, &cause) < 0)
        return err_is(&cause, ERR_LOST) ? err_set(e, cause.code, "%s", cause.msg) : 0;
    return info.incarnation == conn->shm_incarnation ? 0 : err_set(e, ERR_LOST, "it was restarted");
}

static int await_slot(struct remote *r, struct ps_connection *conn, int k, int64_t deadline_ms, struct err *e)
{
    struct push_slot *slot = conn->slots[k];
    int64_t until = clock_ms() + deadline_ms;
    for (int64_t slice = SLICE_MS; !shm_slot_wait(&slot->base.answered, conn->asked[k] - 1, slice);
         slice = MIN(2 * slice, SLICE_MAX_MS)) {
        int64_t left = until - clock_ms();
        if (left <= 0)
            return err_set(e, ERR_TIMEOUT, "it did not answer a push within %lld ms", (long long)deadline_ms);
        if (check_alive(r, conn, left, e) < 0)
            return -1;
    }
    return 0;
}

static int take_slot_answer(struct remote *r, const struct request *q, const struct push_slot *slot, struct err *e)
{
    struct push_slot_answer a;
    if (shm_slot_error(&slot->base, e) < 0)
        return -1;
    memcpy(&a, &slot->answer, sizeof(a));
    if (ps_admit(&r->p, q->conn, a.incarnation, a.generation, e) < 0)
        return -1;
    if (r->ordinal == PULLING)
        return remote_pulled(q, slot->versions, q->chunk->count, e);
    if (remote_pushed(r, q, slot->versions, q->chunk->count, a.duplicate != 0, e) < 0)
        return -1;
    if (!r->p.synchronous)
        shm_take_values(r, q);
    return 0;
}

static int finish_slot(struct remote *r, const struct request *q, struct err *e)
{
    struct ps_connection *conn = q->conn;
    int k = q->chunk->slot;
    q->chunk->slot = -1;
    if (await_slot(r, conn, k, r->deadline_ms, e) < 0) {
        conn->shm_unsettled = true; /* the slot stays busy until the memory is replaced */
        return -1;
    }
    conn->busy[k] = false;
    return take_slot_answer(r, q, conn->slots[k], e);
}

/* ---- all chunks ---- */

/* Pulls of what is there are rare, and do not need a slot. */
static bool through_slot(const struct remote *r, const struct ps_connection *conn)
{
    return shm_in_use(conn) && (r->ordinal != PULLING || r->at >= 0);
}

/* A ps that shares memory reads all of a gradient at once: it gains nothing by chunks that come early. */
static bool may_start(const struct remote *r, const struct ps_connection *conn)
{
    size_t window = through_slot(r, conn) ? (size_t)conn->nslots : conn->window;
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
        if (through_slot(r, conn))
            start_slot(r, &q);
        else if (r->ordinal == PULLING)
            chunk->call = message_start_pull(r, &q, deadline_ms);
        else
            chunk->call = message_start_push(r, &q, deadline_ms);
    }
}

static void cancel_messages(struct remote *r)
{
    for (size_t i = 0; i < r->nrequests; i++)
        if (r->requests[i].chunk->call != NULL)
            rpc_cancel(r->requests[i].chunk->call);
}

void remote_drain(struct remote *r)
{
    cancel_messages(r);
    for (size_t i = 0; i < r->nrequests; i++) {
        const struct request *q = &r->requests[i];
        AUTO(rpc_message) *unread = NULL;
        struct err ignored;
        if (q->chunk->call != NULL && rpc_wait(TAKE(q->chunk->call), &unread, &ignored) == 0)
            continue;
    }
    for (size_t i = 0; i < r->p.nps; i++)
        r->conns[i].in_flight = r->conns[i].bytes_in_flight = 0;
}

/* Begins a pull (PULLING) or the push of an ordinal; start_chunks then starts it. again: it is the one that failed, and
 * only its missing chunks are sent. */
static void begin_transfer(struct remote *r, int64_t ordinal, bool again, int64_t deadline_ms)
{
    if (r->early)
        remote_drain(r); /* a push that was begun and given up */
    r->early = false;
    r->deadline_ms = deadline_ms;
    r->ordinal = ordinal;
    r->unfinished = true;
    for (size_t i = 0; i < r->p.nps; i++)
        r->conns[i].left = r->conns[i].nchunks;
    if (!again || (ordinal == PULLING && r->at >= 0)) /* a wait for a step is not a slow transfer */
        r->since_ms = clock_ms();
    if (again)
        return;
    r->result = (struct push_result){ .duplicate = true, .version_min = INT64_MAX };
    r->done = r->total = 0;
    for (size_t i = 0; i < r->nrequests; i++) {
        r->requests[i].chunk->done = r->requests[i].chunk->has_values = false;
        r->total += bytes_of(r, r->requests[i].chunk);
    }
}

static void adapt_window(struct ps_connection *conn, bool ok, int64_t took_ms)
{
    if (ok && took_ms < QUICK_MS)
        conn->window = MIN(2 * conn->window, CHUNKS_IN_FLIGHT_MAX);
    else if (!ok || took_ms > SLOW_MS)
        conn->window = MAX(conn->window / 2, CHUNKS_IN_FLIGHT_MIN);
}

static int finish_chunk(struct remote *r, const struct request *q, int64_t begun_ms, struct err *e)
{
    struct chunk *chunk = q->chunk;
    int rc = chunk->call != NULL ? message_finish(r, q, e) : finish_slot(r, q, e);
    q->conn->in_flight--;
    q->conn->bytes_in_flight -= bytes_of(r, chunk);
    adapt_window(q->conn, rc == 0, clock_ms() - MAX(chunk->started_ms, begun_ms));
    if (rc < 0)
        return ps_error(q->conn, e);
    chunk->done = true;
    r->done += bytes_of(r, chunk);
    r->p.moved += bytes_of(r, chunk);
    return 0;
}

/* Waits for every chunk that was started, also after a failure, and returns the first error. Chunks that are done stay
 * done for a repetition, unless a ps is another process than before. */
static int finish_chunks(struct remote *r, struct err *e)
{
    int rc = 0;
    int64_t begun_ms = clock_ms();
    for (size_t i = 0; i < r->nrequests; i++) {
        const struct request *q = &r->requests[i];
        struct err error = { .code = ERR_NONE };
        if (q->chunk->call == NULL && q->chunk->slot < 0)
            continue;
        int one = finish_chunk(r, q, begun_ms, &error);
        if (one == 0 && rc == 0) {
            start_chunks(r, q->conn);
            one = call_watch(r, q->conn, &error);
            if (one < 0)
                cancel_messages(r);
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

static void set_versions_known(struct remote *r, bool known)
{
    for (size_t i = 0; i < r->p.nps; i++)
        r->conns[i].now.known = known;
}

static int transfer_values(struct remote *r, bool again, int64_t deadline_ms, struct err *e)
{
    r->from = 0;
    set_versions_known(r, false);
    begin_transfer(r, PULLING, again, deadline_ms);
    for (size_t i = 0; i < r->p.nps; i++)
        start_chunks(r, &r->conns[i]);
    if (finish_chunks(r, e) < 0)
        return -1;
    set_versions_known(r, true);
    return 0;
}

int remote_pull(struct params *p, bool rest, int64_t deadline_ms, struct err *e)
{
    struct remote *r = remote_of(p);
    bool again = rest && r->unfinished && r->ordinal == PULLING && r->at < 0;
    r->at = -1;
    return transfer_values(r, again, deadline_ms, e);
}

int remote_pull_at(struct params *p, int64_t at, int64_t wait_ms, int64_t deadline_ms, struct err *e)
{
    struct remote *r = remote_of(p);
    bool again = r->unfinished && r->ordinal == PULLING && r->at == at;
    r->at = at;
    r->wait_ms = wait_ms;
    shm_prepare(r);
    shm_locate_values(r);
    return transfer_values(r, again, deadline_ms + wait_ms, e);
}

void remote_versions(const struct params *p, int64_t *ret_min, int64_t *ret_max)
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

void remote_mark(struct params *p)
{
    struct remote *r = remote_of(p);
    for (size_t i = 0; i < p->nps; i++)
        versions_copy(&r->conns[i].marked, &r->conns[i].now, r->conns[i].nsegments);
    r->is_marked = true;
}

/* The versions that the gradient was computed from. */
static void take_base_versions(struct remote *r)
{
    for (size_t i = 0; i < r->p.nps; i++) {
        struct ps_connection *conn = &r->conns[i];
        versions_copy(&conn->pushed, r->is_marked ? &conn->marked : &conn->now, conn->nsegments);
    }
    r->is_marked = false;
}

static bool has_several_chunks(const struct remote *r)
{
    for (size_t i = 0; i < r->p.nps; i++)
        if (r->conns[i].nchunks > 1)
            return true;
    return false;
}

/* A large gradient is sent while it is being computed, and shared memory has slots: both pull by themselves. */
static struct wanted_step step_to_want(const struct remote *r)
{
    return shm_any_in_use(r) || has_several_chunks(r) ? (struct wanted_step){ .at = -1 } : r->p.wanted;
}

int remote_push_start(struct params *p, int64_t ordinal, const float *grads, bool direct, int64_t deadline_ms,
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
            take_base_versions(r);
        shm_prepare(r);
        r->wanted = step_to_want(r);
        begin_transfer(r, ordinal, again, deadline_ms + r->wanted.wait_ms);
    }
    shm_locate(r, direct);
    for (size_t i = 0; i < p->nps; i++)
        start_chunks(r, &r->conns[i]);
    return 0;
}

void remote_push_early(struct params *p, int64_t ordinal, const float *grads, size_t from, int64_t deadline_ms)
{
    struct remote *r = remote_of(p);
    if (!has_several_chunks(r))
        return;
    r->from = from;
    if (!r->early) {
        r->grads = grads;
        take_base_versions(r);
        shm_prepare(r);
        r->wanted.at = -1;
        begin_transfer(r, ordinal, false, deadline_ms);
        r->early = true;
    }
    for (size_t i = 0; i < p->nps; i++)
        start_chunks(r, &r->conns[i]);
}

static bool has_all_values(const struct remote *r)
{
    bool all = r->wanted.at >= 0;
    for (size_t i = 0; i < r->nrequests; i++)
        all = all && r->requests[i].chunk->has_values;
    return all;
}

int remote_push_finish(struct params *p, struct push_result *ret, struct err *e)
{
    struct remote *r = remote_of(p);
    if (finish_chunks(r, e) < 0)
        return -1;
    set_versions_known(r, true);
    if (r->result.version_min == INT64_MAX)
        r->result.version_min = 0;
    *ret = r->result;
    ret->has_values = has_all_values(r);
    return 0;
}

void remote_forget(struct params *p)
{
    struct remote *r = remote_of(p);
    for (size_t i = 0; i < p->nps; i++)
        r->conns[i].incarnation = 0;
    set_versions_known(r, false);
    r->is_marked = false;
    r->unfinished = false;
}
