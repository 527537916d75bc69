/* fuzz_transfer_slot - gives a member of MultiWorkerMirrored requests that another member of its host writes into
 * shared memory. The input is a list of requests. Each has a byte with the slot and a flag (the next request may come
 * before this one is answered), then the bytes of struct transfer_slot_request. Small numbers in a request are offsets
 * near the limits.
 *
 * Whatever comes, the member reads and writes nothing beyond the memory, and its answer has a valid code. The first
 * page with the nonce does not change. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "collective/collective_internal.h"
#include "collective/transfer_slot.h"
#include "fuzz_must.h"
#include "params/parameters_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FLOATS = 80, REQUESTS_MAX = 64, ANSWER_MS = 10000 };
#define UID "u"

/* The member worker-0, in view 1 with worker-1, which writes the requests. */
struct target {
    struct layout *layout;
    float vector[FLOATS];
    struct shard *shard;
    struct collective *collective;
    struct rpc_method methods[COLLECTIVE_METHODS];
    struct shm_region *region;
    struct transfer_memory plan;
};

static struct layout *layout_make(void)
{
    static const struct variable V[] = {
        { .name = "a", .shape = { 2, { 5, 3 } }, .offset = 0, .count = 15, .kind = VAR_TRAINABLE },
        { .name = "m", .shape = { 1, { 4 } }, .offset = 32, .count = 4, .kind = VAR_MOVING, .momentum = 0.75f },
        { .name = "c", .shape = { 1, { 2 } }, .offset = 48, .count = 2, .kind = VAR_CONST },
        { .name = "b", .shape = { 1, { 1 } }, .offset = FLOATS - 1, .count = 1, .kind = VAR_TRAINABLE },
    };
    const struct variable *list[COUNT_OF(V)];
    for (size_t i = 0; i < COUNT_OF(V); i++)
        list[i] = &V[i];
    return layout_of(list, COUNT_OF(V), FLOATS);
}

static void shard_fill(struct target *t)
{
    static const struct shard_caller CHIEF = { .job_uid = UID, .sender = "chief-0", .generation = 1, .incarnation = 1 };
    static const struct groups GROUPS = { .size = 2, .batches = 10, .examples = 4, .rest = 3 };
    static const float ZEROS[FLOATS];
    t->shard = shard_new(1);
    shard_take_sums(t->shard);
    shard_use_vector(t->shard, t->vector);
    must(shard_init(t->shard, &CHIEF, "{\"Adam\":{}}", t->layout->segments, t->layout->n, t->layout->hash, NULL) == 0);
    must(shard_set_groups(t->shard, &CHIEF, &GROUPS, NULL) == 0);
    for (size_t i = 0; i < t->layout->n; i++) {
        AUTO_FINI(ordinal_set) none = ORDINAL_SET_INIT;
        const struct segment_spec *s = &t->layout->segments[i];
        struct one_range range = { .data = ZEROS, .size = s->count * sizeof(float) };
        struct bytes_in in = one_range(&range);
        must(shard_restore(t->shard, &CHIEF, s->id, false, 0, &none, &in, NULL) == 0);
    }
    must(shard_serve(t->shard, &CHIEF, NULL) == 0);
}

static void call(const struct rpc_method *method, const ProtobufCMessage *q)
{
    struct err e = { 0 };
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    struct rpc_reply reply = { .head = BUF_INIT };
    codec_pack(q, &head);
    must(rpc_message_of(head.data, head.len, &m, NULL) == 0);
    if (rpc_method_call(method, &(struct rpc_connection){ .leader = ROLE_CHIEF }, m, &reply, &e) < 0) {
        fprintf(stderr, "%s: %s\n", method->path, e.msg);
        abort();
    }
    buf_fini(&reply.head);
}

static const struct rpc_method *method_of(const struct target *t, const char *name)
{
    for (size_t i = 0; i < COLLECTIVE_METHODS; i++)
        if (strstr(t->methods[i].path, name) != NULL)
            return &t->methods[i];
    abort();
}

static Trainyard__V1__Header header_of(const char *sender, uint64_t incarnation)
{
    Trainyard__V1__Header h;
    trainyard__v1__header__init(&h);
    h.job_uid = unconst(UID);
    h.sender = unconst(sender);
    h.generation = 1;
    h.incarnation = incarnation;
    return h;
}

static void begin_view(struct target *t)
{
    Trainyard__V1__Header header = header_of("chief-0", 1);
    Trainyard__V1__ViewRequest q;
    Trainyard__V1__ViewMember wire[2], *list[2] = { &wire[0], &wire[1] };
    trainyard__v1__view_request__init(&q);
    q.header = &header;
    q.action = TRAINYARD__V1__VIEW_ACTION__VIEW_START;
    q.view = 1;
    q.members = list;
    q.n_members = COUNT_OF(list);
    for (size_t i = 0; i < COUNT_OF(list); i++) {
        trainyard__v1__view_member__init(&wire[i]);
        wire[i].name = unconst(i == 0 ? "worker-0" : "worker-1");
        wire[i].address = unconst("127.0.0.1:1");
        wire[i].incarnation = i + 1;
    }
    call(method_of(t, "/View"), &q.base);
}

static void attach(struct target *t)
{
    Trainyard__V1__Header header = header_of("worker-1", 2);
    Trainyard__V1__TransferRequest q;
    Trainyard__V1__AttachRequest offer = TRAINYARD__V1__ATTACH_REQUEST__INIT;
    trainyard__v1__transfer_request__init(&q);
    q.header = &header;
    q.view = 1;
    q.kind = TRAINYARD__V1__TRANSFER_KIND__TRANSFER_ATTACH;
    q.offer = &offer;
    offer.pid = getpid();
    offer.fd = t->region->fd;
    offer.size = t->region->size;
    offer.nonce = (ProtobufCBinaryData){ .data = t->region->data, .len = SHM_REGION_NONCE };
    offer.slots_at = t->plan.slots_at;
    offer.slots = TRANSFER_SLOTS;
    offer.slot_version = TRANSFER_SLOT_VERSION;
    call(method_of(t, "/Transfer"), &q.base);
}

static void target_open(struct target *t)
{
    static bool initialized;
    if (!initialized)
        rpc_init();
    initialized = true;
    *t = (struct target){ .layout = layout_make(), .plan = transfer_memory_plan(FLOATS) };
    shard_fill(t);
    const struct collective_config config = { .layout = t->layout,
                                              .shard = t->shard,
                                              .name = "worker-0",
                                              .incarnation = 1,
                                              .credentials = &RPC_INSECURE,
                                              .share = true };
    must(collective_new(&config, &t->collective, NULL) == 0);
    collective_methods(t->collective, t->methods);
    must(shm_region_make(t->plan.size - SHM_REGION_START, &t->region, NULL) == 0);
    begin_view(t);
    attach(t);
}

static void target_close(struct target *t)
{
    collective_free(t->collective);
    shard_free(t->shard);
    layout_free(t->layout);
    shm_region_free(t->region);
}

/* Offsets that mutation would hardly find. */
static uint64_t offset_of(const struct target *t, uint64_t v)
{
    const uint64_t whole = FLOATS * sizeof(float), end = t->plan.size;
    const uint64_t near[] = { t->plan.gradient_at,
                              t->plan.sums_at,
                              t->plan.slots_at,
                              0,
                              SHM_REGION_NONCE,
                              SHM_REGION_START,
                              end - whole,
                              end - whole + 4,
                              end - 4,
                              end,
                              end + 4,
                              UINT64_MAX - 3,
                              UINT64_MAX,
                              2 };
    return v < COUNT_OF(near) ? near[v] : v;
}

static int next_request(const struct target *t, struct reader *r, uint8_t *how, struct transfer_slot_request *ret)
{
    const void *bytes;
    if (reader_u8(r, how) < 0 || reader_bytes(r, sizeof(*ret), &bytes) < 0)
        return -1;
    memcpy(ret, bytes, sizeof(*ret));
    ret->gradient_at = offset_of(t, ret->gradient_at);
    ret->sums_at = offset_of(t, ret->sums_at);
    ret->wait_ms %= 3;
    return 0;
}

static struct transfer_slot *slot_of(const struct target *t, size_t k)
{
    return (struct transfer_slot *)(void *)(t->region->data + transfer_slots_at(&t->plan, 0)) + k;
}

static void await(struct transfer_slot *slot, uint32_t number)
{
    int64_t until = clock_ms() + ANSWER_MS;
    while (!shm_slot_wait(&slot->base.answered, number - 1, 100))
        must(clock_ms() < until);
    must(slot->base.code >= ERR_NONE && slot->base.code <= ERR_INTERNAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader r = reader_of(data, size);
    uint8_t how;
    struct transfer_slot_request q;
    struct target t;
    unsigned char before[SHM_REGION_START];
    bool intact = true; /* sums in a slot may change any word of it: no answer can be awaited any more */
    target_open(&t);
    memcpy(before, t.region->data, sizeof(before));
    for (int i = 0; i < REQUESTS_MAX && next_request(&t, &r, &how, &q) == 0; i++) {
        struct transfer_slot *slot = slot_of(&t, how / 2 % TRANSFER_SLOTS);
        uint32_t number = atomic_load(&slot->base.asked) + 1;
        intact = intact && (q.sums_at >= t.plan.gradient_at || q.sums_at + FLOATS * sizeof(float) <= t.plan.slots_at);
        memcpy(&slot->request, &q, sizeof(q));
        atomic_store(&slot->base.answered, number - 1);
        shm_slot_post(&slot->base.asked, number);
        if (how % 2 == 0 && intact)
            await(slot, number);
    }
    bool same = memcmp(before, t.region->data, sizeof(before)) == 0;
    target_close(&t);
    must(same || !intact);
    return 0;
}
