#include "params/params_grpc.h"

#include <string.h>

#include "base/clock.h"
#include "net/address.h"
#include "shard/shard_internal.h"

/* A ps that holds more than PART_BYTES is pulled and pushed in parts of about that size, over LANES connections, so
 * that copying at both ends goes on while bytes travel (test/bench/bench_params.c). Up to WINDOW parts of a ps are in
 * flight on a fast network, WINDOW_MIN on a slow one: one goes there while the values of the other come back, and what
 * waits in a connection delays neither its keepalive nor the calls of others for long. The window follows the time
 * that parts take. */
enum { PART_BYTES = 4 << 20, LANES = 4, WINDOW = 8, WINDOW_MIN = 2, QUICK_MS = 500, SLOW_MS = 2000 };
enum { PULLING = -1, WATCH_AFTER_MS = 1000 };

void remote_header(const struct params *p, Trainyard__V1__Header *ret)
{
    trainyard__v1__header__init(ret);
    ret->job_uid = wire_text(p->id.job_uid);
    ret->sender = wire_text(p->id.sender);
    ret->generation = p->generation;
    ret->incarnation = p->id.incarnation;
}

int peer_error(const struct peer *peer, struct err *e)
{
    const char *target = rpc_channel_target(peer->channel);
    if (e == NULL || !str_starts(e->msg, target))
        return err_wrap(e, "ps-%zu (%s)", peer->index, target);
    return err_set(e, e->code, "ps-%zu (%s)%s", peer->index, target, e->msg + strlen(target));
}

int peer_admit(const struct params *p, struct peer *peer, uint64_t incarnation, uint64_t generation, struct err *e)
{
    if (generation != p->generation)
        return err_set(e, ERR_FENCED, "it answers in generation %llu, this is %llu", (unsigned long long)generation,
                       (unsigned long long)p->generation);
    if (peer->incarnation != 0 && incarnation != peer->incarnation)
        return err_set(e, ERR_FENCED, "it was restarted in generation %llu", (unsigned long long)generation);
    peer->incarnation = incarnation;
    return 0;
}

/* ---- requests ---- */

static struct rpc_call *start_pull(struct remote *r, const struct request *j, int64_t deadline_ms)
{
    Trainyard__V1__Header header;
    Trainyard__V1__PullRequest q = TRAINYARD__V1__PULL_REQUEST__INIT;
    remote_header(&r->p, &header);
    q.header = &header;
    q.first = (uint32_t)j->part->first;
    q.count = (uint32_t)j->part->count;
    wire_pack(&q.base, &j->part->head);
    return rpc_start(j->peer->channel, j->part->lane, wire_method(PS_PULL), j->part->head.data, j->part->head.len, NULL,
                     0, deadline_ms);
}

/* The pieces of the part's gradient; neighbours in the vector become one. */
static void aim(const struct request *j, const float *grads)
{
    struct part *part = j->part;
    const float *end = NULL;
    part->npieces = 0;
    for (size_t i = 0; i < part->count; i++) {
        const struct segment_spec *s = j->peer->segments[part->first + i];
        const float *from = grads + s->offset;
        if (s->kind == VAR_CONST)
            continue;
        if (from == end)
            part->pieces[part->npieces - 1].size += s->count * sizeof(float);
        else
            part->pieces[part->npieces++] = (struct rpc_piece){ .data = from, .size = s->count * sizeof(float) };
        end = from + s->count;
    }
}

static struct rpc_call *start_push(struct remote *r, const struct request *j, int64_t deadline_ms)
{
    struct part *part = j->part;
    Trainyard__V1__Header header;
    Trainyard__V1__PushRequest q = TRAINYARD__V1__PUSH_REQUEST__INIT;
    remote_header(&r->p, &header);
    q.header = &header;
    q.ordinal = r->ordinal;
    q.first = (uint32_t)part->first;
    q.count = (uint32_t)part->count;
    if (j->peer->pushed.known) {
        q.versions = j->peer->pushed.v + part->first;
        q.n_versions = part->count;
    }
    aim(j, r->grads);
    wire_pack(&q.base, &part->head);
    return rpc_start(j->peer->channel, part->lane, wire_method(PS_PUSH), part->head.data, part->head.len, part->pieces,
                     part->npieces, deadline_ms);
}

/* ---- answers ---- */

/* Copies values to where the segments of the part lie in the vector. */
static int scatter(struct remote *r, const struct request *j, struct bytes_in *values, bool constants, struct err *e)
{
    size_t want = constants ? j->part->pull : j->part->push;
    struct float_reader reader = { .in = values };
    if (values->size != want)
        return err_set(e, ERR_INTERNAL, "it answers with %zu bytes of values instead of %zu", values->size, want);
    for (size_t i = 0; i < j->part->count; i++) {
        const struct segment_spec *s = j->peer->segments[j->part->first + i];
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
    if (n != j->part->count)
        return err_set(e, ERR_INTERNAL, "it answers with %zu versions of %zu segments", n, j->part->count);
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
    if (peer_admit(&r->p, j->peer, a->incarnation, a->generation, e) < 0 ||
        check_versions(j, a->versions, a->n_versions, e) < 0 || scatter_message(r, j, m, true, e) < 0)
        return -1;
    if (a->n_versions > 0)
        memcpy(j->peer->now.v + j->part->first, a->versions, a->n_versions * sizeof(*a->versions));
    return 0;
}

int remote_pushed(struct remote *r, const struct request *j, const int64_t *versions, size_t n, bool duplicate,
                  struct err *e)
{
    const struct versions *pushed = &j->peer->pushed;
    struct push_result *result = &r->result;
    if (check_versions(j, versions, n, e) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        result->version_min = MIN(result->version_min, versions[i]);
        if (!duplicate && pushed->known)
            result->staleness = MAX(result->staleness, versions[i] - 1 - pushed->v[j->part->first + i]);
        j->peer->now.v[j->part->first + i] = versions[i];
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
    if (peer_admit(&r->p, j->peer, a->incarnation, a->generation, e) < 0 ||
        check_versions(j, a->versions, a->n_versions, e) < 0 || scatter_message(r, j, m, false, e) < 0)
        return -1;
    return remote_pushed(r, j, a->versions, a->n_versions, a->duplicate, e);
}

/* ---- all at once ---- */

static size_t bytes_of(const struct remote *r, const struct part *part)
{
    return r->ordinal == PULLING ? part->pull : 2 * part->push;
}

/* Its deadline leaves time for what is in flight before it: they share the link. */
static void start(struct remote *r, const struct request *j)
{
    struct peer *peer = j->peer;
    peer->in_flight++;
    peer->bytes_in_flight += bytes_of(r, j->part);
    int64_t deadline_ms = r->deadline_ms + params_floor_ms(peer->bytes_in_flight);
    j->part->started_ms = clock_ms();
    if (r->ordinal != PULLING && peer_shares(peer))
        share_start(r, j);
    else
        j->part->call = r->ordinal == PULLING ? start_pull(r, j, deadline_ms) : start_push(r, j, deadline_ms);
}

/* A ps that shares memory reads all of a gradient at once: it gains nothing by parts that come early. */
static bool may_start(const struct remote *r, const struct peer *peer)
{
    size_t window = r->ordinal != PULLING && peer_shares(peer) ? (size_t)peer->nslots : peer->window;
    if (peer->left == 0 || peer->in_flight >= window)
        return false;
    return r->from == 0 || (!peer_shares(peer) && peer->segments[peer->parts[peer->left - 1].first]->offset >= r->from);
}

/* The next parts of the peer that are not done, as many as its window has room for; the last layers come first. */
static void start_more(struct remote *r, struct peer *peer)
{
    while (may_start(r, peer)) {
        struct part *part = &peer->parts[--peer->left];
        if (!part->done)
            start(r, &(struct request){ peer, part });
    }
}

static void cancel(struct remote *r)
{
    for (size_t i = 0; i < r->nrequests; i++)
        if (r->requests[i].part->call != NULL)
            rpc_cancel(r->requests[i].part->call);
}

/* Ends the calls in flight, whose answers nobody wants. */
static void drain(struct remote *r)
{
    cancel(r);
    for (size_t i = 0; i < r->nrequests; i++) {
        const struct request *j = &r->requests[i];
        AUTO(rpc_message) *unread = NULL;
        struct err ignored;
        if (j->part->call != NULL && rpc_wait(TAKE(j->part->call), &unread, &ignored) == 0)
            continue;
    }
    for (size_t i = 0; i < r->p.nps; i++)
        r->peers[i].in_flight = r->peers[i].bytes_in_flight = 0;
}

/* A pull (PULLING) or the push of an ordinal. again: it is the one that failed, only what is missing is asked for. */
static void begin(struct remote *r, int64_t ordinal, bool again, int64_t deadline_ms)
{
    if (r->early)
        drain(r); /* a push that was begun and given up */
    r->early = false;
    r->deadline_ms = deadline_ms;
    r->ordinal = ordinal;
    r->unfinished = true;
    if (!again) {
        r->since_ms = clock_ms();
        r->result = (struct push_result){ .duplicate = true, .version_min = INT64_MAX };
        r->done = r->total = 0;
    }
    for (size_t i = 0; !again && i < r->nrequests; i++) {
        r->requests[i].part->done = false;
        r->total += bytes_of(r, r->requests[i].part);
    }
    for (size_t i = 0; i < r->p.nps; i++) {
        r->peers[i].left = r->peers[i].nparts;
        start_more(r, &r->peers[i]);
    }
}

static void adapt_window(struct peer *peer, bool ok, int64_t took_ms)
{
    if (ok && took_ms < QUICK_MS)
        peer->window = MIN(2 * peer->window, WINDOW);
    else if (!ok || took_ms > SLOW_MS)
        peer->window = MAX(peer->window / 2, WINDOW_MIN);
}

static int finish_call(struct remote *r, const struct request *j, struct err *e)
{
    AUTO(rpc_message) *m = NULL;
    if (rpc_wait(TAKE(j->part->call), &m, e) < 0)
        return -1;
    return r->ordinal == PULLING ? take_pull(r, j, m, e) : take_push(r, j, m, e);
}

static int finish_part(struct remote *r, const struct request *j, int64_t begun_ms, struct err *e)
{
    struct part *part = j->part;
    int rc = part->call != NULL ? finish_call(r, j, e) : share_finish(r, j, r->deadline_ms, e);
    j->peer->in_flight--;
    j->peer->bytes_in_flight -= bytes_of(r, part);
    adapt_window(j->peer, rc == 0, clock_ms() - MAX(part->started_ms, begun_ms));
    if (rc < 0)
        return peer_error(j->peer, e);
    part->done = true;
    r->done += bytes_of(r, part);
    r->p.moved += bytes_of(r, part);
    return 0;
}

/* Tells the watch of a long pull or push how far it is. */
int remote_watch(const struct remote *r, const struct peer *peer, struct err *e)
{
    char text[200], done[32], total[32];
    if (r->p.watch == NULL || r->done == r->total || clock_ms() - r->since_ms < WATCH_AFTER_MS)
        return 0;
    str_fmt(text, sizeof(text), "ps-%zu (%s): %s of %s %s", peer->index, rpc_channel_target(peer->channel),
            str_bytes(r->done, done), str_bytes(r->total, total),
            r->ordinal == PULLING ? "pulled" : "pushed and pulled");
    return r->p.watch(r->p.watch_user, r->since_ms, text, e);
}

/* Waits for every part that was started, also after a failure; the first error stays. Parts that are done stay done,
 * also for a repetition; not so when a ps is another process than before. */
static int gather(struct remote *r, struct err *e)
{
    int rc = 0;
    int64_t begun_ms = clock_ms();
    for (size_t i = 0; i < r->nrequests; i++) {
        const struct request *j = &r->requests[i];
        struct err error = { .code = ERR_NONE };
        if (j->part->call == NULL && j->part->slot < 0)
            continue;
        int one = finish_part(r, j, begun_ms, &error);
        if (one == 0 && rc == 0) {
            start_more(r, j->peer);
            one = remote_watch(r, j->peer, &error);
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
        r->peers[i].now.known = known;
}

static int remote_pull(struct params *p, bool rest, int64_t deadline_ms, struct err *e)
{
    struct remote *r = remote_of(p);
    r->from = 0;
    versions_are(r, false);
    begin(r, PULLING, rest && r->unfinished && r->ordinal == PULLING, deadline_ms);
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
        for (size_t k = 0; k < r->peers[i].nsegments; k++, first = false) {
            int64_t v = r->peers[i].now.v[k];
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
        versions_copy(&r->peers[i].marked, &r->peers[i].now, r->peers[i].nsegments);
    r->is_marked = true;
}

/* What the gradient was computed from. */
static void push_base(struct remote *r)
{
    for (size_t i = 0; i < r->p.nps; i++) {
        struct peer *peer = &r->peers[i];
        versions_copy(&peer->pushed, r->is_marked ? &peer->marked : &peer->now, peer->nsegments);
    }
    r->is_marked = false;
}

static int remote_push_start(struct params *p, int64_t ordinal, const float *grads, bool direct, int64_t deadline_ms,
                             struct err *e)
{
    struct remote *r = remote_of(p);
    bool again = r->unfinished && r->ordinal == ordinal;
    (void)e;
    r->from = 0;
    if (r->early && again) {
        r->early = false;
        for (size_t i = 0; i < p->nps; i++)
            start_more(r, &r->peers[i]);
        return 0;
    }
    r->grads = grads;
    if (!again)
        push_base(r);
    share_prepare(r, direct);
    begin(r, ordinal, again, deadline_ms);
    return 0;
}

static bool takes_parts(const struct remote *r)
{
    for (size_t i = 0; i < r->p.nps; i++)
        if (r->peers[i].nparts > 1)
            return true;
    return false;
}

static void remote_push_early(struct params *p, int64_t ordinal, const float *grads, size_t from, int64_t deadline_ms)
{
    struct remote *r = remote_of(p);
    if (!takes_parts(r))
        return;
    r->from = from;
    if (!r->early) {
        r->grads = grads;
        push_base(r);
        share_prepare(r, true);
        begin(r, ordinal, false, deadline_ms);
        r->early = true;
        return;
    }
    for (size_t i = 0; i < p->nps; i++)
        start_more(r, &r->peers[i]);
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
        r->peers[i].incarnation = 0;
    versions_are(r, false);
    r->is_marked = false;
    r->unfinished = false;
}

/* ---- making ---- */

static void remote_free(struct params *p)
{
    struct remote *r = remote_of(p);
    drain(r);
    share_fini(r); /* now that no call reads a gradient any more */
    for (size_t i = 0; i < p->nps; i++) {
        struct peer *peer = &r->peers[i];
        for (size_t k = 0; k < peer->nparts; k++) {
            free(peer->parts[k].pieces);
            buf_fini(&peer->parts[k].head);
        }
        free(peer->parts);
        free(peer->segments);
        free(peer->now.v);
        free(peer->marked.v);
        free(peer->pushed.v);
        rpc_channel_free(peer->channel);
    }
    free(r->peers);
    free(r->requests);
    params_release(p);
}

static const struct params_ops REMOTE = {
    .free = remote_free,
    .forget = remote_forget,
    .mark = remote_mark,
    .gradients = share_gradients,
    .pull = remote_pull,
    .versions = remote_versions,
    .push_start = remote_push_start,
    .push_early = remote_push_early,
    .push_finish = remote_push_finish,
};

static void part_add(struct peer *peer, size_t segment)
{
    const struct segment_spec *s = peer->segments[segment];
    size_t bytes = s->count * sizeof(float);
    struct part *last = peer->nparts > 0 ? &peer->parts[peer->nparts - 1] : NULL;
    if (last == NULL || last->pull + bytes > PART_BYTES) {
        peer->parts = xrealloc(peer->parts, (peer->nparts + 1) * sizeof(*peer->parts));
        last = &peer->parts[peer->nparts];
        *last = (struct part){ .first = segment, .slot = -1, .lane = (int)(peer->nparts % LANES), .head = BUF_INIT };
        peer->nparts++;
    }
    last->count++;
    last->pull += bytes;
    last->push += s->kind == VAR_CONST ? 0 : bytes;
    peer->push += s->kind == VAR_CONST ? 0 : bytes;
}

static void peer_setup(struct peer *peer, const struct layout *l, const uint32_t *ids, size_t n, const char *host)
{
    peer->segments = xcalloc(n, sizeof(*peer->segments));
    peer->now.v = xcalloc(n, sizeof(int64_t));
    peer->marked.v = xcalloc(n, sizeof(int64_t));
    peer->pushed.v = xcalloc(n, sizeof(int64_t));
    peer->nsegments = n;
    for (size_t i = 0; i < n; i++) {
        peer->segments[i] = &l->segments[ids[i]];
        part_add(peer, i);
    }
    for (size_t k = 0; k < peer->nparts; k++)
        peer->parts[k].pieces = xcalloc(peer->parts[k].count, sizeof(struct rpc_piece));
    peer->window = WINDOW_MIN;
    peer->small_lane = MIN(LANES, (int)MAX(peer->nparts, 1));
    peer->channel = rpc_channel_new(
        host, &(struct rpc_channel_options){ .lanes = peer->small_lane + 1, .payload_max = WIRE_PAYLOAD_MAX });
    peer->may_share = address_is_loopback(host);
}

static void plan_errands(struct remote *r)
{
    size_t most = 0, n = 0;
    for (size_t i = 0; i < r->p.nps; i++) {
        r->nrequests += r->peers[i].nparts;
        most = MAX(most, r->peers[i].nparts);
    }
    r->requests = xcalloc(r->nrequests, sizeof(*r->requests));
    for (size_t k = most; k-- > 0;)
        for (size_t i = 0; i < r->p.nps; i++)
            if (k < r->peers[i].nparts)
                r->requests[n++] = (struct request){ &r->peers[i], &r->peers[i].parts[k] };
}

struct params *params_new_grpc(const struct layout *l, const struct placement *p, char *const hosts[],
                               const struct params_identity *id)
{
    struct remote *r = xcalloc(1, sizeof(*r));
    params_setup(&r->p, &REMOTE, &remote_admin, l, p->nps, id);
    r->peers = xcalloc(p->nps, sizeof(*r->peers));
    for (size_t i = 0; i < p->nps; i++) {
        r->peers[i].index = i;
        peer_setup(&r->peers[i], l, p->ids[i], p->n[i], hosts[i]);
    }
    plan_errands(r);
    share_setup(r);
    return &r->p;
}
