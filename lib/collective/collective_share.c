/* The thread that trains offers and sends; it alone uses struct share. The threads that serve the slots of other
 * members (params/slot_server.h) receive. */
#include "collective/collective_share.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"

/* The longest wait for an answer, and what is left of it when the view is over; between two looks whether it is. */
enum { SHARE_MS = 1000, SETTLE_MS = 100, SLICE_MS = 10 };

/* Another member, as the memory knows it. */
enum offer { OFFER_OPEN, OFFER_TAKEN, OFFER_REFUSED };
struct share_peer {
    const struct peer *peer;
    uint64_t incarnation; /* to which the memory is offered */
    enum offer offer;
    struct transfer_slot *slots[TRANSFER_SLOTS];
    uint32_t asked[TRANSFER_SLOTS];
    bool busy[TRANSFER_SLOTS];
};
struct share {
    struct transfer_memory plan;
    struct shm_region *region; /* NULL: none was made */
    bool unsettled;
    uint64_t prepared; /* the epoch in which all have answered their offers */
    size_t n;
    struct share_peer peers[SLOT_CLIENTS_MAX];
};

struct share *share_new(size_t floats)
{
    struct share *s = xcalloc(1, sizeof(*s));
    s->plan = transfer_memory_plan(floats);
    return s;
}

static void close_all(struct share *s)
{
    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < TRANSFER_SLOTS; k++)
            shm_slot_close(&s->peers[i].slots[k]->base);
    memset(s->peers, 0, sizeof(s->peers));
    s->n = 0;
    shm_region_free(TAKE(s->region));
    s->unsettled = false;
}

void share_free(struct share *s)
{
    if (s == NULL)
        return;
    close_all(s);
    free(s);
}

float *share_gradient(const struct share *s)
{
    return s->region != NULL ? (float *)(void *)(s->region->data + s->plan.gradient_at) : NULL;
}

/* ---- offering ---- */

/* "10.0.0.1:2222" and "10.0.0.1:2223" */
static bool same_host(const char *a, const char *b)
{
    const char *end = strrchr(a, ':');
    size_t n = end != NULL ? (size_t)(end - a) : strlen(a);
    return strncmp(a, b, n) == 0 && b[n] == ':' && strchr(b + n + 1, ':') == NULL;
}

static struct share_peer *find_peer(struct share *s, const struct peer *peer)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->peers[i].peer == peer)
            return &s->peers[i];
    return NULL;
}

static struct share_peer *add_peer(struct share *s, const struct peer *peer, uint64_t incarnation)
{
    struct share_peer *p = &s->peers[s->n];
    *p = (struct share_peer){ .peer = peer, .incarnation = incarnation };
    unsigned char *at = s->region->data + transfer_slots_at(&s->plan, s->n++);
    for (size_t k = 0; k < TRANSFER_SLOTS; k++)
        p->slots[k] = (struct transfer_slot *)(void *)(at + k * sizeof(struct transfer_slot));
    return p;
}

/* The other members of a view on this host. */
struct local_members {
    uint64_t epoch, generation, view;
    char job_uid[SHARD_UID_MAX];
    size_t n;
    struct peer *peers[SLOT_CLIENTS_MAX];
    uint64_t incarnations[SLOT_CLIENTS_MAX];
};

static void find_local(struct collective *c, struct local_members *ret)
{
    MUTEX_GUARD(&c->lock);
    const struct view *v = &c->view;
    int self = view_find(v, c->config.name, c->config.incarnation);
    *ret = (struct local_members){ .epoch = c->giving.epoch, .generation = c->generation, .view = v->number };
    memcpy(ret->job_uid, c->job_uid, sizeof(ret->job_uid));
    for (size_t i = 0; self >= 0 && i < v->n && ret->n < SLOT_CLIENTS_MAX; i++) {
        if (c->owners[i] == NULL || !same_host(v->members[self].address, v->members[i].address))
            continue;
        ret->peers[ret->n] = c->owners[i];
        ret->incarnations[ret->n++] = v->members[i].incarnation;
    }
}

/* Some request has no answer, a member is another process now, or no slots are left. */
static bool needs_new_memory(struct share *s, const struct local_members *m)
{
    size_t unknown = 0;
    for (size_t i = 0; i < m->n; i++) {
        const struct share_peer *p = find_peer(s, m->peers[i]);
        if (p != NULL && p->incarnation != m->incarnations[i])
            return true;
        unknown += p == NULL;
    }
    return s->unsettled || s->n + unknown > SLOT_CLIENTS_MAX;
}

static void offer_to(struct collective *c, const struct local_members *m, const struct share_peer *p,
                     struct peer_call *k)
{
    const struct share *s = c->share;
    Trainyard__V1__AttachRequest offer = TRAINYARD__V1__ATTACH_REQUEST__INIT;
    struct transfer t = { .request = TRAINYARD__V1__TRANSFER_REQUEST__INIT,
                          .job_uid = m->job_uid,
                          .generation = m->generation,
                          .epoch = m->epoch };
    offer.pid = getpid();
    offer.fd = s->region->fd;
    offer.size = s->region->size;
    offer.nonce = (ProtobufCBinaryData){ .data = s->region->data, .len = SHM_REGION_NONCE };
    offer.slots_at = transfer_slots_at(&s->plan, (size_t)(p - s->peers));
    offer.slots = TRANSFER_SLOTS;
    offer.slot_version = TRANSFER_SLOT_VERSION;
    t.request.kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_ATTACH;
    t.request.view = m->view;
    t.request.offer = &offer;
    (void)peer_start(c, k, &t);
}

/* A call that failed may have been made: the other member then serves these slots until the next offer. */
static bool finish_offer(struct collective *c, struct share_peer *p, struct peer_call *k)
{
    struct err e = { 0 };
    AUTO(rpc_message) *message = NULL;
    PROTOBUF_AUTO *answer = NULL;
    if (k->call == NULL)
        return false;
    if (peer_finish(c, k, &message, &answer, &e) == 0)
        p->offer = OFFER_TAKEN;
    else if (!peer_worth_retry(&e))
        p->offer = OFFER_REFUSED;
    return p->offer != OFFER_OPEN;
}

/* To those that have not answered an offer yet. True: all have. */
static bool offer_all(struct collective *c, const struct local_members *m)
{
    struct share_peer *asked[SLOT_CLIENTS_MAX];
    struct peer_call *calls = peer_calls_new(m->n);
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        struct share_peer *p = find_peer(c->share, m->peers[i]);
        if (p == NULL)
            p = add_peer(c->share, m->peers[i], m->incarnations[i]);
        if (p->offer != OFFER_OPEN)
            continue;
        calls[n].peer = m->peers[i];
        asked[n] = p;
        offer_to(c, m, p, &calls[n++]);
    }
    bool all = true;
    for (size_t i = 0; i < n; i++)
        all = finish_offer(c, asked[i], &calls[i]) && all;
    peer_calls_free(calls, m->n);
    return all;
}

void share_prepare(struct collective *c)
{
    struct share *s = c->share;
    struct local_members local;
    if (s == NULL || s->plan.size == 0 || (s->prepared == c->giving.epoch && !s->unsettled))
        return;
    find_local(c, &local);
    if (needs_new_memory(s, &local))
        close_all(s);
    if (local.n > 0 && s->region == NULL && shm_region_make(s->plan.size - SHM_REGION_START, &s->region, NULL) < 0)
        return;
    if (local.n == 0 || offer_all(c, &local))
        s->prepared = local.epoch;
}

/* ---- sending ---- */

static int free_slot(const struct share_peer *p)
{
    for (int k = 0; k < TRANSFER_SLOTS; k++)
        if (!p->busy[k])
            return k;
    return -1;
}

enum share_start share_start(struct collective *c, struct peer_call *k, const struct transfer *t)
{
    struct share *s = c->share;
    const float *gradient = s != NULL ? share_gradient(s) : NULL;
    struct share_peer *p = gradient != NULL ? find_peer(s, k->peer) : NULL;
    if (p == NULL || p->offer != OFFER_TAKEN || s->unsettled || c->giving.gradient != gradient)
        return SHARE_NOT;
    int free_one = free_slot(p);
    if (free_one < 0)
        return SHARE_FULL;
    struct transfer_slot *slot = p->slots[free_one];
    slot->request = (struct transfer_slot_request){ .generation = t->generation,
                                                    .view = t->request.view,
                                                    .at = t->request.at,
                                                    .ordinal = t->request.ordinal,
                                                    .chunk = t->request.index,
                                                    .wait_ms = t->request.wait_ms,
                                                    .want_sum = t->request.want_sum != 0,
                                                    .gradient_at = s->plan.gradient_at,
                                                    .sums_at = s->plan.sums_at };
    p->busy[free_one] = true;
    k->shared = p;
    k->slot = free_one;
    shm_slot_post(&slot->base.asked, ++p->asked[free_one]);
    return SHARE_STARTED;
}

/* Whether the answer is there; waits for it, but not for long when the view is over, and not when the memory is
 * replaced anyway. */
static bool await_answer(struct collective *c, const struct peer_call *k)
{
    const struct share_peer *p = k->shared;
    struct shm_slot *slot = &p->slots[k->slot]->base;
    int64_t until_ms = clock_ms() + (c->share->unsettled ? 0 : SHARE_MS);
    for (bool over = false; !shm_slot_wait(&slot->answered, p->asked[k->slot] - 1, SLICE_MS);) {
        if (clock_ms() >= until_ms)
            return false;
        if (over || !peer_calls_over(c, c->giving.epoch))
            continue;
        over = true;
        until_ms = MIN(until_ms, clock_ms() + SETTLE_MS);
    }
    return true;
}

int share_finish(struct collective *c, struct peer_call *k, struct reduction *sum, size_t chunk, struct err *e)
{
    const struct share *s = c->share;
    bool there = await_answer(c, k);
    struct share_peer *p = TAKE(k->shared);
    p->busy[k->slot] = false;
    if (!there) {
        c->share->unsettled = true;
        return err_set(e, ERR_TIMEOUT, "%s (%s): no answer through shared memory", p->peer->name, p->peer->address);
    }
    if (shm_slot_error(&p->slots[k->slot]->base, e) < 0)
        return err_wrap(e, "%s (%s)", p->peer->name, p->peer->address);
    if (sum == NULL)
        return 0;
    const struct chunk_range *range = &reduction_frame(sum)->chunks[chunk];
    memcpy(reduction_sum_of(sum, chunk), s->region->data + s->plan.sums_at + range->from * sizeof(float),
           (range->to - range->from) * sizeof(float));
    reduction_set_sum(sum, chunk);
    return 0;
}

/* ---- receiving ---- */

int share_on_attach(struct transfer_request *x, struct err *e)
{
    struct collective *c = x->c;
    const Trainyard__V1__AttachRequest *q = x->q->offer;
    const struct transfer_memory plan = transfer_memory_plan(c->config.layout->vector);
    if (c->share == NULL || q == NULL)
        return err_set(e, ERR_REFUSED, "this worker does not share memory");
    if (q->slot_version != TRANSFER_SLOT_VERSION || q->size != plan.size || q->slots != TRANSFER_SLOTS)
        return err_set(e, ERR_REFUSED, "shared memory of another form: version %u, %llu bytes, %u slots",
                       q->slot_version, (unsigned long long)q->size, q->slots);
    {
        MUTEX_GUARD(&c->lock);
        if (transfer_check_view(x, e) < 0)
            return -1;
    }
    struct slot_offer offer = codec_offer(q, x->caller);
    offer.slot_size = sizeof(struct transfer_slot);
    offer.capacity = 1;
    return slot_server_attach(c->sharers, &offer, e);
}

/* What a request names of a vector in the memory of its sender; NULL: it is not within it. */
static void *chunk_at(const struct slot_client *client, uint64_t vector_at, const struct chunk_range *range)
{
    uint64_t at = range->from * sizeof(float);
    return vector_at <= UINT64_MAX - at
               ? shm_region_at(client->region, vector_at + at, (range->to - range->from) * sizeof(float))
               : NULL;
}

/* *ret: what the gradient is lent to, with a reference; or NULL. */
static int take_gradient(const struct transfer_request *x, const struct slot_client *client, uint64_t gradient_at,
                         struct reduction **ret, struct err *e)
{
    struct reduction *r;
    struct one_range range = { 0 };
    bool complete;
    if (transfer_begin(x, &r, e) < 0)
        return -1;
    if (r == NULL)
        return 0; /* applied already, with this gradient from elsewhere */
    const struct reduction_frame *f = reduction_frame(r);
    if (x->q->index < f->nchunks) {
        const struct chunk_range *chunk = &f->chunks[x->q->index];
        range.data = chunk_at(client, gradient_at, chunk);
        range.size = range.data != NULL ? (chunk->to - chunk->from) * sizeof(float) : 0;
    }
    *ret = reduction_ref(r);
    int rc = reduction_lend(r, x->q->index, x->q->ordinal, range, &complete, e);
    transfer_end(x, r, rc == 0, complete);
    return rc;
}

/* The memory of the sender is not needed any more. */
static void keep_gradient(const struct transfer_request *x, struct reduction *r)
{
    struct err e = { 0 };
    if (r != NULL && reduction_keep(r, x->q->index, x->q->ordinal, &e) < 0) {
        MUTEX_GUARD(&x->c->lock);
        collective_fail(x->c, &e);
    }
    reduction_unref(r);
}

/* *ret: the sum, with a reference; NULL: none is wanted. */
static int await_answerable(const struct transfer_request *x, struct reduction **ret, struct err *e)
{
    struct collective *c = x->c;
    const char *missing;
    int64_t until_ms = clock_ms() + MIN(x->q->wait_ms, (uint32_t)SHARE_MS / 2);
    MUTEX_GUARD(&c->lock);
    for (bool late = false;; late = !cond_wait_until(&c->changed, &c->lock, until_ms)) {
        int there = c->quit ? err_set(e, ERR_STOPPED, "the worker ends") : transfer_answered(x, ret, &missing, e);
        if (there != 0) {
            *ret = there > 0 && *ret != NULL ? reduction_ref(*ret) : NULL;
            return MIN(there, 0);
        }
        if (late)
            return err_set(e, ERR_PENDING, "%s", missing);
    }
}

static int serve_transfer(const struct transfer_request *x, const struct slot_client *client,
                          const struct transfer_slot_request *q, struct err *e)
{
    struct reduction *lent = NULL, *r = NULL;
    int rc = take_gradient(x, client, q->gradient_at, &lent, e);
    if (rc == 0)
        rc = await_answerable(x, &r, e);
    keep_gradient(x, lent);
    if (rc < 0 || r == NULL)
        return rc;
    const struct chunk_range *chunk = &reduction_frame(r)->chunks[q->chunk];
    void *to = chunk_at(client, q->sums_at, chunk);
    if (to != NULL)
        memcpy(to, reduction_sums(r) + chunk->from, (chunk->to - chunk->from) * sizeof(float));
    reduction_unref(r);
    return to != NULL ? 0 : err_set(e, ERR_INPUT, "a sum beyond its shared memory");
}

int share_serve(void *user, const struct slot_client *client, struct shm_slot *slot, struct err *e)
{
    struct transfer_slot_request q;
    struct rpc_caller caller = { .incarnation = client->incarnation };
    Trainyard__V1__TransferRequest request = TRAINYARD__V1__TRANSFER_REQUEST__INIT;
    const struct transfer_request x = { .c = user, .caller = &caller, .q = &request };
    shm_slot_take(&q, &((struct transfer_slot *)(void *)slot)->request, sizeof(q));
    str_fmt(caller.name, sizeof(caller.name), "%s", client->sender);
    caller.generation = q.generation;
    request.view = q.view;
    request.at = q.at;
    request.ordinal = q.ordinal;
    request.index = q.chunk;
    request.wait_ms = q.wait_ms;
    request.want_sum = q.want_sum != 0;
    return serve_transfer(&x, client, &q, e);
}
