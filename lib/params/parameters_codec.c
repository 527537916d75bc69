/* What client and service have in common. Unpacking has a budget of memory, because a small message can state a huge
 * number of elements. */
#include "params/parameters_codec.h"

#include <string.h>

void codec_pack(const ProtobufCMessage *m, struct buf *out)
{
    buf_clear(out);
    protobuf_append(m, out);
}

/* In memory a Trainyard message takes at most four times its size; the rest is a reserve. */
enum { LARGE_TIMES = 6 };

int codec_unpack(const ProtobufCMessageDescriptor *kind, const struct rpc_message *m, ProtobufCMessage **ret,
                 struct err *e)
{
    size_t n;
    const void *head = rpc_message_head(m, &n);
    if (protobuf_unpack(kind, head, n, LARGE_TIMES, ret) < 0)
        return err_set(e, ERR_INPUT, "malformed %s", kind->short_name);
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

void codec_segment(const struct segment_spec *s, Trainyard__V1__Segment *ret)
{
    trainyard__v1__segment__init(ret);
    ret->id = s->id;
    ret->offset = s->offset;
    ret->count = s->count;
    ret->kind = (Trainyard__V1__Segment__Kind)s->kind; /* of the same order */
    ret->momentum = s->momentum;
}

void codec_groups(const struct groups *g, Trainyard__V1__Groups *ret)
{
    trainyard__v1__groups__init(ret);
    ret->size = g->size;
    ret->batches = g->batches;
    ret->examples = g->examples;
    ret->rest = g->rest;
}

struct groups codec_groups_of(const Trainyard__V1__Groups *m)
{
    if (m == NULL)
        return (struct groups){ 0 };
    return (struct groups){ .size = m->size, .batches = m->batches, .examples = m->examples, .rest = m->rest };
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

bool codec_copy(const struct bytes_in *in, void *out)
{
    const void *from;
    size_t at = 0, size;
    for (; at < in->size && in->next(in->user, &from, &size) == 1 && size <= in->size - at; at += size)
        memcpy((char *)out + at, from, size);
    return at == in->size;
}

const char *ps_method_path(enum ps_method m)
{
    static const char *const PATHS[PS_METHODS] = {
        [PS_DESCRIBE] = "/trainyard.v1.Parameters/Describe", [PS_INIT] = "/trainyard.v1.Parameters/Init",
        [PS_RESTORE] = "/trainyard.v1.Parameters/Restore",   [PS_PULL] = "/trainyard.v1.Parameters/Pull",
        [PS_PUSH] = "/trainyard.v1.Parameters/Push",         [PS_SNAPSHOT] = "/trainyard.v1.Parameters/Snapshot",
        [PS_FINISH] = "/trainyard.v1.Parameters/Finish",     [PS_ATTACH] = "/trainyard.v1.Parameters/Attach",
        [PS_REDUCE] = "/trainyard.v1.Parameters/Reduce",
    };
    return PATHS[m];
}

struct slot_offer codec_offer(const Trainyard__V1__AttachRequest *q, const struct rpc_caller *caller)
{
    return (struct slot_offer){ .pid = q->pid,
                                .fd = q->fd,
                                .size = q->size,
                                .nonce = q->nonce.data,
                                .nonce_size = q->nonce.len,
                                .slots_at = q->slots_at,
                                .slots = q->slots,
                                .sender = caller->name,
                                .job_uid = caller->job_uid,
                                .incarnation = caller->incarnation };
}
