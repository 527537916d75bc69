/* fuzz_ps - sends a ps any requests, one after the other: [method][size, 2 bytes little-endian][message]... The first
 * byte of the input selects whether the shard is fresh or already serves a small model. Whatever comes, nothing breaks,
 * and a segment's version stays the number of ordinals that it applied. */
#include <stdlib.h>
#include <string.h>

#include "params/parameters_codec.h"
#include "params/shard_service.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 16 << 20, LAST_METHOD = PS_METHODS };

static const struct segment_spec SEGMENTS[] = {
    { .id = 0, .count = 3, .kind = VAR_TRAINABLE },
    { .id = 2, .count = 2, .kind = VAR_MOVING, .momentum = 0.5f },
    { .id = 5, .count = 1, .kind = VAR_CONST },
};

static void make_serving(struct shard *s)
{
    const struct shard_caller who = { .job_uid = "u", .sender = "chief-0", .generation = 1 };
    if (shard_init(s, &who, "{\"Adam\":{}}", SEGMENTS, COUNT_OF(SEGMENTS), 7, NULL) < 0)
        abort();
    for (size_t i = 0; i < COUNT_OF(SEGMENTS); i++) {
        Trainyard__V1__Header header;
        Trainyard__V1__RestoreRequest q = TRAINYARD__V1__RESTORE_REQUEST__INIT;
        uint8_t zeros[12] = { 0 };
        AUTO_FINI(buf) packed = BUF_INIT;
        AUTO(rpc_message) *m = NULL;
        struct payload_walk walk;
        AUTO_FINI(ordinal_set) none = ORDINAL_SET_INIT;
        trainyard__v1__header__init(&header);
        q.payload = (ProtobufCBinaryData){ .data = zeros, .len = SEGMENTS[i].count * sizeof(float) };
        codec_pack(&q.base, &packed);
        if (rpc_message_of(packed.data, packed.len, &m, NULL) < 0)
            abort();
        struct bytes_in in = codec_payload(m, &walk);
        if (shard_restore(s, &who, SEGMENTS[i].id, false, 0, &none, &in, NULL) < 0)
            abort();
    }
    if (shard_serve(s, &who, NULL) < 0)
        abort();
}

/* A chief may request more memory than a fuzzer has. */
static bool too_large(const struct rpc_message *m)
{
    PROTOBUF_AUTO *message = NULL;
    if (codec_unpack(&trainyard__v1__init_request__descriptor, m, &message, NULL) < 0)
        return false;
    const Trainyard__V1__InitRequest *q = (const void *)message;
    uint64_t total = 0;
    for (size_t i = 0; i < q->n_segments; i++)
        total += MIN(q->segments[i]->count, BYTES_MAX);
    return total * 4 * sizeof(float) > BYTES_MAX;
}

static void call(struct rpc_method methods[SHARD_METHODS], enum ps_method id, const struct rpc_message *m)
{
    struct err e = { .code = ERR_NONE };
    struct rpc_reply reply = { .head = BUF_INIT };
    if (id == PS_INIT && too_large(m))
        return;
    int rc = rpc_method_call(&methods[id], &(struct rpc_connection){ .leader = ROLE_CHIEF }, m, &reply, &e);
    if ((rc == 0) != (e.code == ERR_NONE) || (rc < 0 && reply.npieces > 0))
        abort();
    for (size_t i = 0; i < reply.npieces; i++)
        reply.pieces[i].done(reply.pieces[i].user);
    buf_fini(&reply.head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rpc_method methods[SHARD_METHODS];
    AUTO(shard) *s = shard_new(1);
    AUTO(shard_service) *v = shard_service_new(s);
    struct reader r = reader_of(data, size);
    uint8_t first, id, low, high;
    const void *bytes;

    shard_service_methods(v, methods);
    if (reader_u8(&r, &first) < 0)
        return 0;
    if (first % 2 == 1)
        make_serving(s);
    while (reader_u8(&r, &id) == 0 && reader_u8(&r, &low) == 0 && reader_u8(&r, &high) == 0) {
        AUTO(rpc_message) *m = NULL;
        size_t n = MIN((size_t)low | (size_t)high << 8, reader_left(&r));
        if (reader_bytes(&r, n, &bytes) < 0 || rpc_message_of(bytes, n, &m, NULL) < 0)
            continue;
        call(methods, (enum ps_method)(id % LAST_METHOD), m);
    }
    struct shard_info info;
    shard_describe(s, &info);
    if (info.version_min > info.version_max)
        abort();
    shard_info_fini(&info);
    return 0;
}
