/* What client and service have in common. Unpacking has a budget of memory, because a small message can state a huge
 * number of elements. */
#include "params/parameters_codec.h"

char *codec_text(const char *s)
{
    union {
        const char *from;
        char *to;
    } u = { .from = s };
    return u.to;
}

void codec_pack(const ProtobufCMessage *m, struct buf *out)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    buf_clear(out);
    buf_reserve(out, n + 1);
    protobuf_c_message_pack(m, (uint8_t *)out->data);
    out->len = n;
    out->data[n] = '\0';
}

/* A message of many empty strings takes twenty times its size in memory. One of ours takes four times at most, except
 * the segments of many small variables: eight bytes each become a struct, a pointer and the parser's data. Those are
 * far fewer than fit in SMALL_BYTES. */
enum { UNPACKED_LEAST = 64 << 10, UNPACKED_TIMES = 6, SMALL_BYTES = 1 << 20, SMALL_TIMES = 24, ALLOCATION_BYTES = 16 };

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

int codec_unpack(const ProtobufCMessageDescriptor *kind, const struct rpc_message *m, ProtobufCMessage **ret,
                 struct err *e)
{
    size_t n;
    const void *head = rpc_message_head(m, &n);
    size_t left = UNPACKED_LEAST + UNPACKED_TIMES * n + (SMALL_TIMES - UNPACKED_TIMES) * MIN(n, (size_t)SMALL_BYTES);
    ProtobufCAllocator allocator = { .alloc = budget_alloc, .free = budget_free, .allocator_data = &left };
    ProtobufCMessage *message = protobuf_c_message_unpack(kind, &allocator, n, head);
    if (message == NULL)
        return err_set(e, ERR_INPUT, "malformed %s", kind->short_name);
    *ret = message;
    return 0;
}

void codec_ordinals(const struct ordinal_set *a, Trainyard__V1__OrdinalSet *ret, int64_t **ret_ranges)
{
    trainyard__v1__ordinal_set__init(ret);
    ret->low_water = a->low;
    ret->n_ranges = 2 * ordinal_set_ranges(a, ret_ranges);
    ret->ranges = *ret_ranges;
}

int codec_ordinal_set(const Trainyard__V1__OrdinalSet *m, struct ordinal_set *ret, struct err *e)
{
    if (m == NULL)
        return ordinal_set_from(0, NULL, 0, ret, e);
    return ordinal_set_from(m->low_water, m->ranges, m->n_ranges, ret, e);
}

static int walk_next(void *user, const void **ret, size_t *ret_size)
{
    struct payload_walk *w = user;
    return rpc_message_next(w->message, &w->pos, ret, ret_size);
}

static void walk_again(void *user)
{
    struct payload_walk *w = user;
    w->pos = 0;
}

struct bytes_in codec_payload(const struct rpc_message *m, struct payload_walk *walk)
{
    *walk = (struct payload_walk){ .message = m };
    return (struct bytes_in){
        .next = walk_next, .again = walk_again, .user = walk, .size = rpc_message_payload_size(m), .element = DT_FLOAT
    };
}

const char *ps_method_path(enum ps_method m)
{
    static const char *const PATHS[PS_METHODS] = {
        [PS_DESCRIBE] = "/trainyard.v1.Parameters/Describe", [PS_INIT] = "/trainyard.v1.Parameters/Init",
        [PS_RESTORE] = "/trainyard.v1.Parameters/Restore",   [PS_PULL] = "/trainyard.v1.Parameters/Pull",
        [PS_PUSH] = "/trainyard.v1.Parameters/Push",         [PS_SNAPSHOT] = "/trainyard.v1.Parameters/Snapshot",
        [PS_FINISH] = "/trainyard.v1.Parameters/Finish",     [PS_ATTACH] = "/trainyard.v1.Parameters/Attach",
    };
    return PATHS[m];
}
