/* Memory of this process that ps of this host share. It holds the parameter vector itself and the gradients, so that a
 * ps reads a gradient where it was computed, and writes new values where they are used; a slot (params/push_slot.h)
 * carries the call.
 *
 *     nonce | slots of each ps | gradients, gradients, copy of a foreign gradient | values | values of a push in flight
 *
 * A request without an answer leaves the memory unsettled: the ps may still read or write it. Other memory then takes
 * its place; the unsettled memory stays mapped while a pointer of params_gradients() into it is in use. */
#include "params/params_grpc.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "params/shm_region.h"

enum {
    SHM_MAX_BYTES = 512 << 20,
    VECTORS = PARAMS_GRADIENTS + 3, /* see above */
    ATTACH_MS = 2000,
    ATTACH_RETRY_MS = 5000
};

struct shm_memory {
    struct shm_region *region;
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
    shm_region_free(m->region);
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

static size_t reserve(size_t *at, size_t bytes)
{
    size_t from = *at;
    *at += (bytes + SHM_SLOT_ALIGNMENT - 1) / SHM_SLOT_ALIGNMENT * SHM_SLOT_ALIGNMENT;
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

/* The vectors begin at a page boundary. */
static size_t first_vector(size_t at)
{
    return (at + SHM_REGION_START - 1) / SHM_REGION_START * SHM_REGION_START;
}

size_t shm_size_max(const struct remote *r)
{
    size_t at = SHM_REGION_START;
    if (vector_bytes(r) > SHM_MAX_BYTES)
        return 0;
    for (size_t i = 0; i < r->p.nps; i++)
        (void)reserve(&at, (size_t)slots_of(&r->conns[i]) * push_slot_size(slot_segments_of(&r->conns[i])));
    at = first_vector(at);
    for (int i = 0; i < VECTORS; i++)
        (void)reserve(&at, vector_bytes(r));
    return at;
}

static void plan_memory(struct remote *r)
{
    size_t at = SHM_REGION_START;
    for (size_t i = 0; i < r->p.nps; i++) {
        struct ps_connection *conn = &r->conns[i];
        if (!conn->shm_allowed)
            continue;
        conn->nslots = slots_of(conn);
        conn->slot_segments = slot_segments_of(conn);
        conn->slots_at = reserve(&at, (size_t)conn->nslots * push_slot_size(conn->slot_segments));
    }
    at = first_vector(at);
    for (int i = 0; i <= PARAMS_GRADIENTS; i++)
        r->gradients_at[i] = reserve(&at, vector_bytes(r));
    r->values_at = reserve(&at, vector_bytes(r));
    r->staged_at = reserve(&at, vector_bytes(r));
    r->memory_size = at;
}

static struct shm_memory *shm_memory_new(const struct remote *r)
{
    AUTO(shm_region) *region = NULL;
    if (shm_region_make(r->memory_size - SHM_REGION_START, &region, NULL) < 0)
        return NULL;
    struct shm_memory *m = xcalloc(1, sizeof(*m));
    *m = (struct shm_memory){ .region = TAKE(region), .refs = 1 };
    return m;
}

/* The vector moves into m; m NULL: into memory of this process alone, and nothing is shared any more. */
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
        shm_slot_close(&conn->slots[k]->base);
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
        shm_memory_unref(r->gradients_in[i]);
    if (r->memory != NULL)
        r->p.vector = NULL; /* it is part of the memory */
    shm_memory_unref(r->memory);
}

int shm_gradients(struct params *p, int which, float **ret, struct err *e)
{
    struct remote *r = remote_of(p);
    if (r->memory == NULL)
        return params_own_gradients(p, which, ret, e);
    if (r->gradients_in[which] != r->memory) {
        shm_memory_unref(r->gradients_in[which]);
        r->gradients_in[which] = shm_memory_ref(r->memory);
    }
    *ret = floats_at(r->memory, r->gradients_at[which]);
    return 0;
}

/* ---- offering ---- */

static int call_attach(const struct remote *r, struct ps_connection *conn, struct err *e)
{
    const struct shm_region *region = r->memory->region;
    Trainyard__V1__Header header;
    Trainyard__V1__AttachRequest q = TRAINYARD__V1__ATTACH_REQUEST__INIT;
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    PROTOBUF_AUTO *answer = NULL;
    remote_header(&r->p, &header);
    q.header = &header;
    q.pid = getpid();
    q.fd = region->fd;
    q.size = region->size;
    q.nonce = (ProtobufCBinaryData){ .data = region->data, .len = SHM_REGION_NONCE };
    q.slots_at = conn->slots_at;
    q.slots = (uint32_t)conn->nslots;
    q.slot_segments = (uint32_t)conn->slot_segments;
    q.slot_version = PUSH_SLOT_VERSION;
    codec_pack(&q.base, &head);
    if (rpc_unary(conn->channel, ps_method_path(PS_ATTACH), head.data, head.len, NULL, 0, ATTACH_MS, &m, e) < 0 ||
        codec_unpack(&trainyard__v1__attach_reply__descriptor, m, &answer, e) < 0)
        return -1;
    const Trainyard__V1__AttachReply *a = (const void *)answer;
    if (ps_admit(&r->p, conn, a->incarnation, r->p.generation, e) < 0)
        return -1;
    conn->shm_incarnation = a->incarnation;
    return 0;
}

static void offer_memory(const struct remote *r, struct ps_connection *conn)
{
    struct err e = { .code = ERR_NONE };
    if (shm_in_use(conn) || !conn->shm_allowed || clock_ms() < conn->shm_retry_ms)
        return;
    if (call_attach(r, conn, &e) < 0) {
        conn->shm_allowed = !err_is(&e, ERR_REFUSED);
        conn->shm_unsettled = conn->shm_allowed; /* the ps may have attached it: a slot is not used a second time */
        conn->shm_retry_ms = clock_ms() + ATTACH_RETRY_MS;
        return;
    }
    for (int k = 0; k < conn->nslots; k++) {
        conn->slots[k] = (struct push_slot *)(void *)(r->memory->region->data + conn->slots_at +
                                                      (size_t)k * push_slot_size(conn->slot_segments));
        conn->asked[k] = 0;
    }
}

static void replace_memory(struct remote *r)
{
    for (size_t i = 0; i < r->p.nps; i++)
        shm_close(&r->conns[i]);
    move_vector(r, shm_memory_new(r));
}

bool shm_any_in_use(const struct remote *r)
{
    for (size_t i = 0; i < r->p.nps; i++)
        if (shm_in_use(&r->conns[i]))
            return true;
    return false;
}

/* New values go into the vector, or, where it is read during the push, beside it. */
void shm_locate(struct remote *r, bool direct)
{
    if (!shm_any_in_use(r))
        return;
    r->push_to = direct ? r->values_at : r->staged_at;
    for (int i = 0; i < PARAMS_GRADIENTS; i++) {
        r->push_from = r->gradients_at[i];
        if (r->grads == floats_at(r->memory, r->push_from))
            return;
    }
    r->push_from = r->gradients_at[PARAMS_GRADIENTS];
    memcpy(floats_at(r->memory, r->push_from), r->grads, vector_bytes(r));
}

void shm_locate_values(struct remote *r)
{
    r->push_from = r->gradients_at[0]; /* not read */
    r->push_to = r->values_at;
}

void shm_prepare(struct remote *r)
{
    bool unsettled = false;
    for (size_t i = 0; i < r->p.nps; i++)
        unsettled = unsettled || r->conns[i].shm_unsettled;
    if (r->memory != NULL && unsettled)
        replace_memory(r);
    for (size_t i = 0; i < r->p.nps && r->memory != NULL; i++)
        offer_memory(r, &r->conns[i]);
}

void shm_take_values(struct remote *r, const struct request *q)
{
    for (size_t i = 0; r->push_to != r->values_at && i < q->chunk->count; i++) {
        const struct segment_spec *s = q->conn->segments[q->chunk->first + i];
        if (s->kind != VAR_CONST)
            memcpy(r->p.vector + s->offset, floats_at(r->memory, r->push_to) + s->offset, s->count * sizeof(float));
    }
}
