/* Finds the payload field across the pieces of a received message by its top-level tags alone. Every length is
 * checked against what is left, because the bytes are untrusted. */
#include "rpc/split.h"

#include "rpc/rpc.h"

/* A place in the spans. */
struct cursor {
    const struct rpc_span *span, *last; /* last: one behind */
    size_t offset;                      /* in *span */
    size_t at;                          /* in the message */
};

static bool at_end(struct cursor *c)
{
    while (c->span < c->last && c->offset == c->span->size) {
        c->span++;
        c->offset = 0;
    }
    return c->span == c->last;
}

static bool skip(struct cursor *c, uint64_t n)
{
    while (n > 0) {
        if (at_end(c))
            return false;
        size_t left = c->span->size - c->offset;
        size_t step = n < left ? (size_t)n : left;
        c->offset += step;
        c->at += step;
        n -= step;
    }
    return true;
}

/* LEB128 of at most 64 bits, as protobuf writes numbers. */
static bool varint(struct cursor *c, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (at_end(c))
            return false;
        unsigned char byte = c->span->data[c->offset];
        if (shift == 63 && byte > 1)
            return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        c->offset++;
        c->at++;
        if (byte < 0x80) {
            *ret = value;
            return true;
        }
    }
    return false;
}

/* The value of a field that is not the payload. Groups (wire types 3 and 4) are not of proto3. */
static bool skip_value(struct cursor *c, unsigned wire_type)
{
    uint64_t n;
    switch (wire_type) {
    case 0:
        return varint(c, &n);
    case 1:
        return skip(c, 8);
    case 2:
        return varint(c, &n) && skip(c, n);
    case 5:
        return skip(c, 4);
    default:
        return false;
    }
}

int rpc_split(const struct rpc_span *spans, size_t n, struct rpc_split *ret, struct err *e)
{
    struct cursor c = { .span = spans, .last = spans + n };
    struct rpc_split found = { 0 };
    bool payload = false;

    while (!at_end(&c)) {
        size_t start = c.at;
        uint64_t tag, size;
        if (!varint(&c, &tag) || tag >> 3 == 0 || tag >> 3 >= 1U << 29)
            return err_set(e, ERR_INPUT, "not a protobuf message: bad tag at byte %zu", start);
        if (tag != (RPC_PAYLOAD_FIELD << 3 | 2)) {
            if (!skip_value(&c, tag & 7))
                return err_set(e, ERR_INPUT, "not a protobuf message: bad value of field %u at byte %zu",
                               (unsigned)(tag >> 3), start);
            continue;
        }
        if (payload)
            return err_set(e, ERR_INPUT, "second payload field at byte %zu", start);
        payload = true;
        found.field = start;
        if (!varint(&c, &size))
            return err_set(e, ERR_INPUT, "not a protobuf message: bad payload size at byte %zu", start);
        found.payload = c.at;
        if (!skip(&c, size))
            return err_set(e, ERR_INPUT, "payload is cut off: %zu of %llu bytes", c.at - found.payload,
                           (unsigned long long)size);
        found.end = c.at;
    }
    found.total = c.at;
    if (!payload)
        found.field = found.payload = found.end = c.at;
    size_t head = found.field + (found.total - found.end);
    if (head > RPC_HEAD_MAX)
        return err_set(e, ERR_INPUT, "message head of %zu bytes, at most %d (tensors belong into the payload field)",
                       head, RPC_HEAD_MAX);
    *ret = found;
    return 0;
}
