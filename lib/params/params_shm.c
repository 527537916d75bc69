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
    SHM_MAX_BYTES = 512 << 20,
    VECTORS = PARAMS_GRADIENTS + 3, /* see above */
    ATTACH_MS = 2000,
    ATTACH_RETRY_MS = 5000,
    ALIVE_MS = 2000,
    SLICE_MS = 20,
    SLICE_MAX_MS = 1000
};

struct shm_memory {
    struct region *region;
    int refs;
};

static struct shm_memory *shm_memory_ref(struct shm_memory *m)
{
    m->refs++;
    return m;
}

static void shm_memory_unref(struct shm_memory *m)
{
    if (m == NULL || --m->refs > 0)
        return;
    region_free(m->region);
    free(m);
}

static float *floats_at(const struct shm_memory *m, size_t at)
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

static int slots_of(const struct ps_connection *conn)
{
    return (int)MIN(conn->nchunks, (size_t)SLOTS_MAX);
}

static size_t slot_segments_of(const struct ps_connection *conn)
{
    size_t most = 0;
    for (size_t k = 0; k < conn->nchunks; k++)
        most = MAX(most, conn->chunks[k].count);
    return most;
}

/* The vectors begin on a page of their own. */
static size_t first_vector(size_t at)
{
    return (at + REGION_START - 1) / REGION_START * REGION_START;
}

size_t shm_size_max(const struct remote *r)
{
    size_t at = REGION_START;
    if (vector_bytes(r) > SHM_MAX_BYTES)
        return 0;
    for (size_t i = 0; i < r->p.nps; i++)
        (void)place(&at, (size_t)slots_of(&r->conns[i]) * slot_size(slot_segments_of(&r->conns[i])));
    at = first_vector(at);
    for (int i = 0; i < VECTORS; i++)
        (void)place(&at, vector_bytes(r));
    return at;
}

static void plan_memory(struct remote *r)
{
    size_t at = REGION_START;
    for (size_t i = 0; i < r->p.nps; i++) {
        struct ps_connection *conn = &r->conns[i];
        if (!conn->shm_allowed)
            continue;
        conn->nslots = slots_of(conn);
        conn->slot_segments = slot_segments_of(conn);
        conn->slots_at = place(&at, (size_t)conn->nslots * slot_size(conn->slot_segments));
    }
    at = first_vector(at);
    for (int i = 0; i <= PARAMS_GRADIENTS; i++)
        r->gradients_at[i] = place(&at, vector_bytes(r));
    r->values_at = place(&at, vector_bytes(r));
    r->staged_at = place(&at, vector_bytes(r));
    r->memory_size = at;
}

static struct shm_memory *shm_memory_new(const struct remote *r)
{
    AUTO(region) *region = NULL;
    if (region_make(r->memory_size - REGION_START, &region, NULL) < 0)
        return NULL;
    struct shm_memory *m = xcalloc(1, sizeof(*m));
    *m = (struct shm_memory){ .region = TAKE(region), .refs = 1 };
    return m;
}

/* The vector moves into m; m NULL: to memory of its own, and nothing is shared any more. */
static void move_vector(struct remote *r, struct shm_memory *m)
{
    float *to = m != NULL ? floats_at(m, r->values_at) : xmalloc(MAX(vector_bytes(r), (size_t)1));
    memcpy(to, r->p.vector, vector_bytes(r));
    if (r->memory == NULL)
        free(r->p.vector);
    shm_memory_unref(r->memory);
    r->memory = m;
    r->p.vector = to;
}

void shm_setup(struct remote *r)
{
    bool any = false;
    for (size_t i = 0; i < r->p.nps; i++) {
        struct ps_connection *conn = &r->conns[i];
        conn->shm_allowed = conn->shm_allowed && conn->push > 0 && vector_bytes(r) <= SHM_MAX_BYTES;
        any = any || conn->shm_allowed;
    }
    if (!any)
        return;
    plan_memory(r);
    struct shm_memory *m = shm_memory_new(r);
    if (m != NULL)
        move_vector(r, m);
}

/* The ps unmaps the memory when it sees this. */
static void shm_close(struct ps_connection *conn)
{
    for (int k = 0; k < conn->nslots && conn->slots[k] != NULL; k++) {
        atomic_store(&conn->slots[k]->closed, 1);
        slot_wake(&conn->slots[k]->asked);
        conn->slots[k] = NULL;
        conn->busy[k] = false;
    }
    conn->shm_unsettled = false;
}

void shm_fini(struct remote *r)
{
    for (size_t i = 0; i < r->p.nps; i++)
        shm_close(&r->conns[i]);
    for (int i = 0; i < PARAMS_GRADIENTS; i++)
        shm_memory_unref(r->lent[i]);
    if (r->memory != NULL)
        r->p.vector = NULL; /* it goes with the memory */
    shm_memory_unref(r->memory);
}

int shm_gradients(struct params *p, int which, float **ret, struct err *e)
{
    struct remote *r = remote_of(p);
    if (r->memory == NULL)
        return params_own_gradients(p, which, ret, e);
    if (r->lent[which] != r->memory) {
        shm_memory_unref(r->lent[which]);
        r->lent[which] = shm_memory_ref(r->memory);
    }
    *ret = floats_at(r->memory, r->gradients_at[which]);
    return 0;
}

/* ---- offering ---- */

static int attach(const struct remote *r, struct ps_connection *conn, struct err *e)
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
    q.slots_at = conn->slots_at;
    q.slots = (uint32_t)conn->nslots;
    q.slot_segments = (uint32_t)conn->slot_segments;
    q.slot_version = SLOT_VERSION;
    wire_pack(&q.base, &head);
    if (rpc_unary(conn->channel, wire_method(PS_ATTACH), head.data, head.len, NULL, 0, ATTACH_MS, &m, e) < 0 ||
        wire_unpack(&trainyard__v1__attach_reply__descriptor, m, &answer, e) < 0)
        return -1;
    const Trainyard__V1__AttachReply *a = (const void *)answer;
    if (ps_admit(&r->p, conn, a->incarnation, r->p.generation, e) < 0)
        return -1;
    conn->shm_incarnation = a->incarnation;
    return 0;
}

static void offer(const struct remote *r, struct ps_connection *conn)
{
    struct err e = { .code = ERR_NONE };
    if (shm_in_use(conn) || !conn->shm_allowed || clock_ms() < conn->shm_retry_ms)
        return;
    if (attach(r, conn, &e) < 0) {
        conn->shm_allowed = !err_is(&e, ERR_REFUSED);
        conn->shm_unsettled =
            conn->shm_allowed; /* it may have been attached all the same: a slot is not used for two lives */
        conn->shm_retry_ms = clock_ms() + ATTACH_RETRY_MS;
        return;
    }
    for (int k = 0; k < conn->nslots; k++) {
        conn->slots[k] = (struct slot *)(void *)(r->memory->region->data + conn->slots_at +
                                                 (size_t)k * slot_size(conn->slot_segments));
        conn->asked[k] = 0;
    }
}

static void replace_memory(struct remote *r)
{
    for (size_t i = 0; i < r->p.nps; i++)
        shm_close(&r->conns[i]);
    move_vector(r, shm_memory_new(r));
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

void shm_prepare(struct remote *r, bool direct)
{
    bool shm_unsettled = false, any = false;
    for (size_t i = 0; i < r->p.nps; i++)
        shm_unsettled = shm_unsettled || r->conns[i].shm_unsettled;
    if (r->memory != NULL && shm_unsettled)
        replace_memory(r);
    for (size_t i = 0; i < r->p.nps && r->memory != NULL; i++) {
        offer(r, &r->conns[i]);
        any = any || shm_in_use(&r->conns[i]);
    }
    if (any)
        find_places(r, direct);
}

/* ---- a push ---- */

static int free_slot(const struct ps_connection *conn)
{
    int k = 0;
    while (conn->busy[k])
        k++;
    return k; /* no more chunks are in flight than there are slots */
}

void shm_start(struct remote *r, const struct request *j)
{
    struct ps_connection *conn = j->conn;
    int k = free_slot(conn);
    struct slot *slot = conn->slots[k];
    slot->request = (struct slot_request){ .ordinal = r->ordinal,
                                           .generation = r->p.generation,
                                           .gradients_at = r->push_from,
                                           .values_at = r->push_to,
                                           .first = (uint32_t)j->chunk->first,
                                           .count = (uint32_t)j->chunk->count,
                                           .knows_versions = conn->pushed.known };
    if (conn->pushed.known)
        memcpy(slot->versions, conn->pushed.v + j->chunk->first, j->chunk->count * sizeof(int64_t));
    conn->busy[k] = true;
    j->chunk->slot = k;
    slot_post(&slot->asked, ++conn->asked[k]);
}

/* Whether who does not answer is slow, gone, or another process by now. */
static int check_alive(struct remote *r, const struct ps_connection *conn, int64_t deadline_ms, struct err *e)
{
    AUTO_FINI(shard_info) info = { 0 };
    struct err cause = { .code = ERR_NONE };
    if (remote_watch(r, conn, e) < 0)
        return -1;
    if (remote_describe(&r->p, conn->index, MIN(deadline_ms, (int64_t)ALIVE_MS), &info, &cause) < 0)
        return err_is(&cause, ERR_LOST) ? err_set(e, cause.code, "%s", cause.msg) : 0;
    return info.incarnation == conn->shm_incarnation ? 0 : err_set(e, ERR_LOST, "it was restarted");
}

static int await_answer(struct remote *r, struct ps_connection *conn, int k, int64_t deadline_ms, struct err *e)
{
    struct slot *slot = conn->slots[k];
    int64_t until = clock_ms() + deadline_ms;
    for (int64_t slice = SLICE_MS; !slot_wait(&slot->answered, conn->asked[k] - 1, slice);
         slice = MIN(2 * slice, SLICE_MAX_MS)) {
        int64_t left = until - clock_ms();
        if (left <= 0)
            return err_set(e, ERR_TIMEOUT, "it did not answer a push within %lld ms", (long long)deadline_ms);
        if (check_alive(r, conn, left, e) < 0)
            return -1;
    }
    return 0;
}

/* Values of a push that was in flight while the vector was read. */
static void take_staged(struct remote *r, const struct request *j)
{
    for (size_t i = 0; r->push_to != r->values_at && i < j->chunk->count; i++) {
        const struct segment_spec *s = j->conn->segments[j->chunk->first + i];
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
    if (ps_admit(&r->p, j->conn, a.incarnation, a.generation, e) < 0 ||
        remote_pushed(r, j, slot->versions, j->chunk->count, a.duplicate != 0, e) < 0)
        return -1;
    take_staged(r, j);
    return 0;
}

int shm_finish(struct remote *r, const struct request *j, int64_t deadline_ms, struct err *e)
{
    struct ps_connection *conn = j->conn;
    int k = j->chunk->slot;
    j->chunk->slot = -1;
    if (await_answer(r, conn, k, deadline_ms, e) < 0) {
        conn->shm_unsettled = true; /* the slot stays busy until the memory is replaced */
        return -1;
    }
    conn->busy[k] = false;
    return take_answer(r, j, conn->slots[k], e);
}
