/* fuzz_slot - gives a ps requests that a worker of its host writes into shared memory. The input is one byte with the
 * number of slots, then requests. Each has a byte with the slot and a flag (the next request may come before this one
 * is answered). 64 bits follow, which select the segments with negative versions, and the bytes of struct
 * push_slot_request. Small numbers in a request are offsets near the limits.
 *
 * Whatever comes, the ps reads and writes nothing beyond the memory, and its answer has a valid code. The first page
 * with the nonce does not change, and a segment's version stays the number of ordinals that it applied. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fuzz_must.h"
#include "params/push_slot.h"
#include "params/shard_service.h"
#include "params/shard_service_internal.h"
#include "params/shm_region.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    FLOATS = 80,
    SLOTS_AT = 2 * SHM_REGION_START,
    BYTES = 4 * SHM_REGION_START,
    REQUESTS_MAX = 64,
    ANSWER_MS = 10000
};

static const struct segment_spec SEGMENTS[] = {
    { .id = 0, .offset = 0, .count = 15, .kind = VAR_TRAINABLE },
    { .id = 2, .offset = 32, .count = 4, .kind = VAR_MOVING, .momentum = 0.5f },
    { .id = 5, .offset = 48, .count = 2, .kind = VAR_CONST },
    { .id = 6, .offset = FLOATS - 1, .count = 1, .kind = VAR_TRAINABLE },
};
static const struct shard_caller CHIEF = { .job_uid = "u", .sender = "chief-0", .generation = 1 };

static struct shard *serving(void)
{
    static const float zeros[FLOATS];
    struct shard *s = shard_new(1);
    must(shard_init(s, &CHIEF, "{\"Adam\":{}}", SEGMENTS, COUNT_OF(SEGMENTS), 7, NULL) == 0);
    for (size_t i = 0; i < COUNT_OF(SEGMENTS); i++) {
        AUTO_FINI(ordinal_set) none = ORDINAL_SET_INIT;
        struct one_range range = { .data = zeros, .size = SEGMENTS[i].count * sizeof(float) };
        struct bytes_in in = one_range(&range);
        must(shard_restore(s, &CHIEF, SEGMENTS[i].id, false, 0, &none, &in, NULL) == 0);
    }
    must(shard_serve(s, &CHIEF, NULL) == 0);
    return s;
}

static void attach(const struct rpc_method *method, const struct shm_region *r, uint32_t slots)
{
    Trainyard__V1__Header header;
    Trainyard__V1__AttachRequest q = TRAINYARD__V1__ATTACH_REQUEST__INIT;
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    struct rpc_reply reply = { .head = BUF_INIT };
    trainyard__v1__header__init(&header);
    header.job_uid = unconst("u");
    header.sender = unconst("worker-0");
    header.generation = 1;
    q.header = &header;
    q.pid = getpid();
    q.fd = r->fd;
    q.size = r->size;
    q.nonce = (ProtobufCBinaryData){ .data = r->data, .len = SHM_REGION_NONCE };
    q.slots_at = SLOTS_AT;
    q.slots = slots;
    q.slot_segments = COUNT_OF(SEGMENTS);
    q.slot_version = PUSH_SLOT_VERSION;
    codec_pack(&q.base, &head);
    must(rpc_message_of(head.data, head.len, &m, NULL) == 0);
    must(rpc_method_call(method, &(struct rpc_connection){ .leader = ROLE_CHIEF }, m, &reply, NULL) == 0);
    buf_fini(&reply.head);
}

/* Offsets that mutation would hardly find. */
static uint64_t offset_of(uint64_t v)
{
    const uint64_t whole = FLOATS * sizeof(float), end = BYTES + SHM_REGION_START;
    const uint64_t near[] = { 0,        SHM_REGION_NONCE, SHM_REGION_START,  SLOTS_AT,       3 * SHM_REGION_START,
                              SLOTS_AT, end - whole,      end - whole + 4,   end - 4,        end,
                              end + 4,  UINT64_MAX - 3,   (uint64_t)1 << 63, end - whole - 4 };
    return v < COUNT_OF(near) ? near[v] : v;
}

static void await(struct push_slot *slot, uint32_t number)
{
    int64_t until = clock_ms() + ANSWER_MS;
    while (!shm_slot_wait(&slot->base.answered, number - 1, 100))
        must(clock_ms() < until);
}

static int next_request(struct reader *r, uint8_t *how, uint64_t *negative, struct push_slot_request *ret)
{
    const void *bytes, *mask;
    if (reader_u8(r, how) < 0 || reader_bytes(r, sizeof(*negative), &mask) < 0 ||
        reader_bytes(r, sizeof(*ret), &bytes) < 0)
        return -1;
    memcpy(negative, mask, sizeof(*negative));
    memcpy(ret, bytes, sizeof(*ret));
    ret->gradients_at = offset_of(ret->gradients_at);
    ret->values_at = offset_of(ret->values_at);
    return 0;
}

/* True when values of this request are outside all slots. Other values may change any word of a slot, so that no answer
 * can be awaited any more. */
static bool spares_slots(const struct push_slot_request *q)
{
    return q->values_at >= SLOTS_AT + SHM_REGION_START || q->values_at <= SLOTS_AT - FLOATS * sizeof(float);
}

static void post(const struct shm_region *region, size_t k, const struct push_slot_request *q, uint64_t negative,
                 bool wait, bool intact)
{
    struct push_slot *slot =
        (struct push_slot *)(void *)(region->data + SLOTS_AT + k * push_slot_size(COUNT_OF(SEGMENTS)));
    uint32_t number = atomic_load(&slot->base.asked) + 1;
    memcpy(&slot->request, q, sizeof(*q));
    for (size_t i = 0; i < COUNT_OF(SEGMENTS); i++)
        slot->versions[i] = (negative >> i & 1) != 0 ? INT64_MIN : (int64_t)(negative >> 8);
    atomic_store(&slot->base.answered, number - 1);
    shm_slot_post(&slot->base.asked, number);
    if (!wait || !intact)
        return;
    await(slot, number);
    must(slot->base.code >= ERR_NONE && slot->base.code <= ERR_INTERNAL);
}

static void check_shard(struct shard *s, bool intact)
{
    AUTO_FINI(shard_info) info = { 0 };
    shard_describe(s, &info);
    must(info.version_min >= 0 && info.version_min <= info.version_max);
    must(!intact || info.version_max <= REQUESTS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rpc_method methods[SHARD_METHODS];
    struct reader r = reader_of(data, size);
    uint8_t first, how;
    uint64_t negative;
    struct push_slot_request q;
    unsigned char before[SHM_REGION_START];
    if (reader_u8(&r, &first) < 0)
        return 0;
    AUTO(shm_region) *region = NULL;
    AUTO(shard) *s = serving();
    AUTO(shard_service) *v = shard_service_new(s);
    uint32_t slots = 1 + first % SLOTS_MAX;
    must(shm_region_make(BYTES, &region, NULL) == 0);
    shard_service_methods(v, methods);
    atomic_store(&v->share_max, region->size);
    memcpy(before, region->data, sizeof(before));
    attach(&methods[PS_ATTACH], region, slots);
    bool intact = true;
    for (int i = 0; i < REQUESTS_MAX && next_request(&r, &how, &negative, &q) == 0; i++) {
        intact = intact && spares_slots(&q);
        post(region, how / 2 % slots, &q, negative, how % 2 == 0, intact);
    }
    shard_service_free(TAKE(v));
    must(memcmp(before, region->data, sizeof(before)) == 0);
    check_shard(s, intact);
    return 0;
}
