/* protobuf-c's parser allocates for each field; a budget by the size of the message bounds that, because the bytes
 * come from the network or from untrusted files. */
#include "codec/protobuf.h"

void protobuf_append(const ProtobufCMessage *m, struct buf *out)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    buf_reserve(out, n);
    protobuf_c_message_pack(m, (uint8_t *)out->data + out->len);
    out->len += n;
    out->data[out->len] = '\0';
}

/* A message of many empty strings takes twenty times its size in memory. A Trainyard message takes a few times its
 * size, except lists of small messages: eight bytes each become a struct, a pointer and the parser's records. Those
 * are far fewer than fit in SMALL_BYTES. */
enum { UNPACKED_LEAST = 64 << 10, SMALL_BYTES = 1 << 20, SMALL_TIMES = 24, ALLOCATION_BYTES = 16 };

static void *budget_alloc(void *data, size_t size)
{
    size_t *left = data, need = size + ALLOCATION_BYTES;
    if (need < size || need > *left)
        return NULL;
    *left -= need;
    return malloc(size);
}

static void budget_free(void *data UNUSED, void *p)
{
    free(p);
}

int protobuf_unpack(const ProtobufCMessageDescriptor *kind, const void *data, size_t n, size_t large_times,
                    ProtobufCMessage **ret)
{
    size_t small = MIN(n, (size_t)SMALL_BYTES), large, left;
    if (size_mul(n - small, large_times, &large, NULL) < 0 ||
        size_add(large, UNPACKED_LEAST + SMALL_TIMES * small, &left, NULL) < 0)
        return -1;
    ProtobufCAllocator allocator = { .alloc = budget_alloc, .free = budget_free, .allocator_data = &left };
    ProtobufCMessage *message = protobuf_c_message_unpack(kind, &allocator, n, data);
    if (message == NULL)
        return -1;
    *ret = message;
    return 0;
}
