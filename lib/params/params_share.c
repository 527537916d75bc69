/* Pushes to ps of this host through memory of this process. It holds the parameter vector itself and the gradients, so
 * that a ps reads a gradient where it was computed, and writes new values where they are used; a slot (params/slot.h)
 * carries the call.
 *
 *     nonce | slots of each ps | gradients, gradients, copy of a foreign gradient | values | values of a push in flight
 *
 * A request without an answer leaves the memory in doubt: the ps may read or write it later. Then other memory takes
 * its place; what was in doubt stays mapped while somebody holds a pointer of params_gradients() into it. */
#include "params/params_grpc.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "params/region.h"

enum {
    SHARE_MAX = 512 << 20,
    VECTORS = PARAMS_GRADIENTS + 3, /* see above */
    SHARE_CALL_MS = 2000,
    SHARE_AGAIN_MS = 5000,
    ALIVE_MS = 2000,
    SLICE_MS = 20,
    SLICE_MAX_MS = 1000
};

struct memory {
    struct region *region;
    int refs;
};

static struct memory *memory_ref(struct memory *m)
{
    m->refs++;
    return m;
}

static void memory_unref(struct memory *m)
{
    if (m == NULL || --m->refs > 0)
        return;
    region_free(m->region);
    free(m);
}

static float *floats_at(const struct memory *m, size_t at)
{
    return (float *)(void *)(m->region->data + at);
}

static size_t vector_bytes(const struct remote *r)
{
    return r->p.layout->vector * sizeof(float);
}

/* ---- making ---- */

static size_t place(size_t *at, size_t bytes)
{
    size_t from = *at;
    *at += (bytes + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
    return from;
}

static int slots_of(const struct peer *peer)
{
    return (int)MIN(peer->nparts, (size_t)SLOTS_MAX);
}

static size_t slot_segments_of(const struct peer *peer)
{
    size_t most = 0;
    for (size_t k = 0; k < peer->nparts; k++)
        most = MAX(most, peer->parts[k].count);
    return most;
}

/* The vectors begin on a page of their own. */
static size_t first_vector(size_t at)
{
    return (at + REGION_START - 1) / REGION_START * REGION_START;
}

size_t share_most(const struct remote *r)
{
    size_t at = REGION_START;
    if (vector_bytes(r) > SHARE_MAX)
        return 0;
    for (size_t i = 0; i < r->p.nps; i++)
        (void)place(&at, (size_t)slots_of(&r->peers[i]) * slot_size(slot_segments_of(&r->peers[i])));
    at = first_vector(at);
    for (int i = 0; i < VECTORS; i++)
        (void)place(&at, vector_bytes(r));
    return at;
}

static void plan_memory(struct remote *r)
{
    size_t at = REGION_START;
    for (size_t i = 0; i < r->p.nps; i++) {
        struct peer *peer = &r->peers[i];
        if (!peer->may_share)
            continue;
        peer->nslots = slots_of(peer);
        peer->slot_segments = slot_segments_of(peer);
        peer->slots_at = place(&at, (size_t)peer->nslots * slot_size(peer->slot_segments));
    }
    at = first_vector(at);
    for (int i = 0; i <= PARAMS_GRADIENTS; i++)
        r->gradients_at[i] = place(&at, vector_bytes(r));
    r->values_at = place(&at, vector_bytes(r));
    r->staged_at = place(&at, vector_bytes(r));
    r->memory_size = at;
}

static struct memory *memory_new(const struct remote *r)
{
    AUTO(region) *region = NULL;
    if (region_make(r->memory_size - REGION_START, &region, NULL) < 0)
        return NULL;
    struct memory *m = xcalloc(1, sizeof(*m));
    *m = (struct memory){ .region = TAKE(region), .refs = 1 };
    return m;
}

/* The vector moves into m; m NULL: to memory of its own, and nothing is shared any more. */
static void move_vector(struct remote *r, struct memory *m)
{
    float *to = m != NULL ? floats_at(m, r->values_at) : xmalloc(MAX(vector_bytes(r), (size_t)1));
    memcpy(to, r->p.vector, vector_bytes(r));
    if (r->memory == NULL)
        free(r->p.vector);
    memory_unref(r->memory);
    r->memory = m;
    r->p.vector = to;
}

void share_setup(struct remote *r)
{
    bool any = false;
    for (size_t i = 0; i < r->p.nps; i++) {
        struct peer *peer = &r->peers[i];
        peer->may_share = peer->may_share && peer->push > 0 && vector_bytes(r) <= SHARE_MAX;
        any = any || peer->may_share;
    }
    if (!any)
        return;
    plan_memory(r);
    struct memory *m = memory_new(r);
    if (m != NULL)
        move_vector(r, m);
}

/* The ps unmaps the memory when it sees this. */
static void peer_close(struct peer *peer)
{
    for (int k = 0; k < peer->nslots && peer->slots[k] != NULL; k++) {
        atomic_store(&peer->slots[k]->closed, 1);
        slot_wake(&peer->slots[k]->asked);
        peer->slots[k] = NULL;
        peer->busy[k] = false;
    }
    peer->doubtful = false;
}

void share_fini(struct remote *r)
{
    for (size_t i = 0; i < r->p.nps; i++)
        peer_close(&r->peers[i]);
    for (int i = 0; i < PARAMS_GRADIENTS; i++)
        memory_unref(r->lent[i]);
    if (r->memory != NULL)
        r->p.vector = NULL; /* it goes with the memory */
    memory_unref(r->memory);
}

int share_gradients(struct params *p, int which, float **ret, struct err *e)
{
    struct remote *r = remote_of(p);
    if (r->memory == NULL)
        return params_own_gradients(p, which, ret, e);
    if (r->lent[which] != r->memory) {
        memory_unref(r->lent[which]);
        r->lent[which] = memory_ref(r->memory);
    }
    *ret = floats_at(r->memory, r->gradients_at[which]);
    return 0;
}

/* ---- offering ---- */

static int attach(const struct remote *r, struct peer *peer, struct err *e)
{
    const struct region *region = r->memory->region;
    Trainyard__V1__Header header;
    Trainyard__V1__AttachRequest q = TRAINYARD__V1__ATTACH_REQUEST__INIT;
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    WIRE_AUTO *answer = NULL;
    remote_header(&r->p, &header);
    q.header = &header;
    q.pid = getpid();
    q.fd = region->fd;
    q.size = region->size;
    q.nonce = (ProtobufCBinaryData){ .data = region->data, .len = REGION_NONCE };
    q.slots_at = peer->slots_at;
    q.slots = (uint32_t)peer->nslots;
    q.slot_segments = (uint32_t)peer->slot_segments;
    q.slot_version = SLOT_VERSION;
    wire_pack(&q.base, &head);
    if (rpc_unary(peer->channel, wire_method(PS_ATTACH), head.data, head.len, NULL, 0, SHARE_CALL_MS, &m, e) < 0 ||
        wire_unpack(&trainyard__v1__attach_reply__descriptor, m, &answer, e) < 0)
        return -1;
    const Trainyard__V1__AttachReply *a = (const void *)answer;
    if (peer_admit(&r->p, peer, a->incarnation, r->p.generation, e) < 0)
        return -1;
    peer->shares_with = a->incarnation;
    return 0;
}

static void offer(const struct remote *r, struct peer *peer)
{
    struct err e = { .code = ERR_NONE };
    if (peer_shares(peer) || !peer->may_share || clock_ms() < peer->share_after_ms)
        return;
    if (attach(r, peer, &e) < 0) {
        peer->may_share = !err_is(&e, ERR_REFUSED);
        peer->doubtful = peer->may_share; /* it may have been attached all the same: a slot is not used for two lives */
        peer->share_after_ms = clock_ms() + SHARE_AGAIN_MS;
        return;
    }
    for (int k = 0; k < peer->nslots; k++) {
        peer->slots[k] = (struct slot *)(void *)(r->memory->region->data + peer->slots_at +
                                                 (size_t)k * slot_size(peer->slot_segments));
        peer->asked[k] = 0;
    }
}

static void replace_memory(struct remote *r)
{
    for (size_t i = 0; i < r->p.nps; i++)
        peer_close(&r->peers[i]);
    move_vector(r, memory_new(r));
}

/* Gradients that lie elsewhere are copied; values of a push that nobody waits for go where nobody reads. */
static void find_places(struct remote *r, bool direct)
{
    r->push_to = direct ? r->values_at : r->staged_at;
    for (int i = 0; i < PARAMS_GRADIENTS; i++) {
        r->push_from = r->gradients_at[i];
        if (r->grads == floats_at(r->memory, r->push_from))
            return;
    }
    r->push_from = r->gradients_at[PARAMS_GRADIENTS];
    memcpy(floats_at(r->memory, r->push_from), r->grads, vector_bytes(r));
}

void share_prepare(struct remote *r, bool direct)
{
    bool doubtful = false, any = false;
    for (size_t i = 0; i < r->p.nps; i++)
        doubtful = doubtful || r->peers[i].doubtful;
    if (r->memory != NULL && doubtful)
        replace_memory(r);
    for (size_t i = 0; i < r->p.nps && r->memory != NULL; i++) {
        offer(r, &r->peers[i]);
        any = any || peer_shares(&r->peers[i]);
    }
    if (any)
        find_places(r, direct);
}

/* ---- a push ---- */

static int free_slot(const struct peer *peer)
{
    int k = 0;
    while (peer->busy[k])
        k++;
    return k; /* no more parts are in flight than there are slots */
}

void share_start(struct remote *r, const struct request *j)
{
    struct peer *peer = j->peer;
    int k = free_slot(peer);
    struct slot *slot = peer->slots[k];
    slot->request = (struct slot_request){ .ordinal = r->ordinal,
                                           .generation = r->p.generation,
                                           .gradients_at = r->push_from,
                                           .values_at = r->push_to,
                                           .first = (uint32_t)j->part->first,
                                           .count = (uint32_t)j->part->count,
                                           .knows_versions = peer->pushed.known };
    if (peer->pushed.known)
        memcpy(slot->versions, peer->pushed.v + j->part->first, j->part->count * sizeof(int64_t));
    peer->busy[k] = true;
    j->part->slot = k;
    slot_post(&slot->asked, ++peer->asked[k]);
}

/* Whether who does not answer is slow, gone, or another process by now. */
static int check_alive(struct remote *r, const struct peer *peer, int64_t deadline_ms, struct err *e)
{
    AUTO_FINI(shard_info) info = { 0 };
    struct err cause = { .code = ERR_NONE };
    if (remote_watch(r, peer, e) < 0)
        return -1;
    if (remote_describe(&r->p, peer->index, MIN(deadline_ms, (int64_t)ALIVE_MS), &info, &cause) < 0)
        return err_is(&cause, ERR_LOST) ? err_set(e, cause.code, "%s", cause.msg) : 0;
    return info.incarnation == peer->shares_with ? 0 : err_set(e, ERR_LOST, "it was restarted");
}

static int await_answer(struct remote *r, struct peer *peer, int k, int64_t deadline_ms, struct err *e)
{
    struct slot *slot = peer->slots[k];
    int64_t until = clock_ms() + deadline_ms;
    for (int64_t slice = SLICE_MS; !slot_wait(&slot->answered, peer->asked[k] - 1, slice);
         slice = MIN(2 * slice, SLICE_MAX_MS)) {
        int64_t left = until - clock_ms();
        if (left <= 0)
            return err_set(e, ERR_TIMEOUT, "it did not answer a push within %lld ms", (long long)deadline_ms);
        if (check_alive(r, peer, left, e) < 0)
            return -1;
    }
    return 0;
}

/* Values of a push that was in flight while the vector was read. */
static void take_staged(struct remote *r, const struct request *j)
{
    for (size_t i = 0; r->push_to != r->values_at && i < j->part->count; i++) {
        const struct segment_spec *s = j->peer->segments[j->part->first + i];
        if (s->kind != VAR_CONST)
            memcpy(r->p.vector + s->offset, floats_at(r->memory, r->push_to) + s->offset, s->count * sizeof(float));
    }
}

static int take_answer(struct remote *r, const struct request *j, const struct slot *slot, struct err *e)
{
    struct slot_answer a;
    memcpy(&a, &slot->answer, sizeof(a));
    a.text[SLOT_TEXT_MAX - 1] = '\0';
    if (a.code != ERR_NONE)
        return err_set(e, a.code > ERR_NONE && a.code <= ERR_INTERNAL ? (enum err_code)a.code : ERR_INTERNAL, "%s",
                       a.text);
    if (peer_admit(&r->p, j->peer, a.incarnation, a.generation, e) < 0 ||
        remote_pushed(r, j, slot->versions, j->part->count, a.duplicate != 0, e) < 0)
        return -1;
    take_staged(r, j);
    return 0;
}

int share_finish(struct remote *r, const struct request *j, int64_t deadline_ms, struct err *e)
{
    struct peer *peer = j->peer;
    int k = j->part->slot;
    j->part->slot = -1;
    if (await_answer(r, peer, k, deadline_ms, e) < 0) {
        peer->doubtful = true; /* the slot stays busy until the memory is replaced */
        return -1;
    }
    peer->busy[k] = false;
    return take_answer(r, j, peer->slots[k], e);
}
