/* A received message as head and payload spans inside gRPC's slices, and a message to send as slices over the caller's
 * bytes. Neither copies the payload. A piece's done is called exactly once, also on failure. */
#include "rpc/message.h"

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <string.h>

#include "rpc/split.h"

struct rpc_message {
    grpc_byte_buffer *bytes; /* what the spans point into, or */
    void *copy;
    const void *head;
    void *head_copy; /* when it was not contiguous */
    size_t head_size, payload_size;
    struct rpc_span *payload; /* into spans */
    size_t npayload, n;
    struct rpc_span spans[];
};

static void copy_range(const struct rpc_span *spans, size_t offset, unsigned char *out, size_t n)
{
    for (; n > 0; spans++) {
        if (offset >= spans->size) {
            offset -= spans->size;
            continue;
        }
        size_t step = MIN(n, spans->size - offset);
        memcpy(out, spans->data + offset, step);
        out += step;
        n -= step;
        offset = 0;
    }
}

static int take_head(struct rpc_message *m, const struct rpc_split *at, struct err *e)
{
    m->head_size = at->field + (at->total - at->end);
    if (at->total == at->end && (m->n == 0 || at->field <= m->spans[0].size)) { /* the usual case: nothing to copy */
        m->head = m->n == 0 ? "" : (const char *)m->spans[0].data;
        return 0;
    }
    if (mem_alloc(m->head_size, "message head", &m->head_copy, e) < 0)
        return -1;
    copy_range(m->spans, 0, m->head_copy, at->field);
    copy_range(m->spans, at->end, (unsigned char *)m->head_copy + at->field, at->total - at->end);
    m->head = m->head_copy;
    return 0;
}

/* Narrows the spans to the payload. */
static void cut_payload(struct rpc_message *m, const struct rpc_split *at)
{
    m->payload_size = at->end - at->payload;
    m->payload = m->spans;
    m->npayload = 0;
    if (m->payload_size == 0)
        return;
    size_t offset = at->payload;
    while (offset >= m->payload->size)
        offset -= m->payload++->size;
    m->payload->data += offset;
    m->payload->size -= offset;
    for (size_t left = m->payload_size; left > 0; m->npayload++) {
        struct rpc_span *s = &m->payload[m->npayload];
        s->size = MIN(s->size, left);
        left -= s->size;
    }
}

static int split(struct rpc_message *m, struct err *e)
{
    struct rpc_split at;
    if (rpc_split(m->spans, m->n, &at, e) < 0 || take_head(m, &at, e) < 0)
        return -1;
    cut_payload(m, &at);
    return 0;
}

static struct rpc_message *message_new(size_t nspans)
{
    struct rpc_message *m = xmalloc(sizeof(*m) + nspans * sizeof(m->spans[0]));
    memset(m, 0, sizeof(*m));
    m->n = nspans;
    return m;
}

int rpc_message_take(grpc_byte_buffer *bytes, struct rpc_message **ret, struct err *e)
{
    if (bytes == NULL)
        return err_set(e, ERR_INPUT, "no message");
    const grpc_slice_buffer *slices = &bytes->data.raw.slice_buffer;
    AUTO(rpc_message) *m = message_new(slices->count);
    m->bytes = bytes;
    if (bytes->data.raw.compression != GRPC_COMPRESS_NONE)
        return err_set(e, ERR_INPUT, "compressed messages are not taken: send it without compression");
    for (size_t i = 0; i < m->n; i++)
        m->spans[i] =
            (struct rpc_span){ GRPC_SLICE_START_PTR(slices->slices[i]), GRPC_SLICE_LENGTH(slices->slices[i]) };
    if (split(m, e) < 0)
        return -1;
    *ret = TAKE(m);
    return 0;
}

int rpc_message_of(const void *data, size_t n, struct rpc_message **ret, struct err *e)
{
    AUTO(rpc_message) *m = message_new(1);
    if (mem_alloc(n, "message", &m->copy, e) < 0)
        return -1;
    if (n > 0)
        memcpy(m->copy, data, n);
    m->spans[0] = (struct rpc_span){ m->copy, n };
    if (split(m, e) < 0)
        return -1;
    *ret = TAKE(m);
    return 0;
}

void rpc_message_drop_payload(struct rpc_message *m)
{
    void *head = NULL;
    struct err e;
    if (m->payload_size == 0 || (m->head_copy == NULL && mem_alloc(m->head_size, "message head", &head, &e) < 0))
        return;
    if (m->head_copy == NULL) {
        memcpy(head, m->head, m->head_size);
        m->head = m->head_copy = head;
    }
    if (m->bytes != NULL)
        grpc_byte_buffer_destroy(m->bytes);
    free(m->copy);
    m->bytes = NULL;
    m->copy = NULL;
    m->npayload = m->payload_size = 0;
}

void rpc_message_free(struct rpc_message *m)
{
    if (m == NULL)
        return;
    if (m->bytes != NULL)
        grpc_byte_buffer_destroy(m->bytes);
    free(m->head_copy);
    free(m->copy);
    free(m);
}

const void *rpc_message_head(const struct rpc_message *m, size_t *ret_size)
{
    *ret_size = m->head_size;
    return m->head;
}

size_t rpc_message_payload_size(const struct rpc_message *m)
{
    return m->payload_size;
}

int rpc_message_next(const struct rpc_message *m, size_t *pos, const void **ret, size_t *ret_size)
{
    if (*pos >= m->npayload)
        return 0;
    *ret = m->payload[*pos].data;
    *ret_size = m->payload[*pos].size;
    ++*pos;
    return 1;
}

bool rpc_message_copy(const struct rpc_message *m, size_t offset, void *out, size_t n)
{
    if (offset > m->payload_size || n > m->payload_size - offset)
        return false;
    copy_range(m->payload, offset, out, n);
    return true;
}

/* ---- sending ---- */

/* The head's bytes and, when there is a payload, its tag and length. */
static grpc_slice head_slice(const void *head, size_t head_size, size_t payload_size)
{
    unsigned char tag[11] = { RPC_PAYLOAD_FIELD << 3 | 2 };
    size_t n = 0;
    if (payload_size > 0) {
        n = 1;
        for (; payload_size >= 0x80; payload_size >>= 7)
            tag[n++] = (unsigned char)(payload_size | 0x80);
        tag[n++] = (unsigned char)payload_size;
    }
    grpc_slice s = grpc_slice_malloc(head_size + n);
    if (head_size > 0)
        memcpy(GRPC_SLICE_START_PTR(s), head, head_size);
    memcpy(GRPC_SLICE_START_PTR(s) + head_size, tag, n);
    return s;
}

static void nothing(void *user UNUSED)
{
}

int rpc_bytes_of(const void *head, size_t head_size, const struct rpc_piece *pieces, size_t npieces,
                 void (*fallback)(void *user), void *user, grpc_byte_buffer **ret, struct err *e)
{
    size_t payload = 0;
    bool fits = true;
    for (size_t i = 0; i < npieces; i++)
        fits = fits && !__builtin_add_overflow(payload, pieces[i].size, &payload);
    fits = fits && payload < RPC_MESSAGE_MAX - 16 && head_size < RPC_MESSAGE_MAX - 16 - payload;

    grpc_byte_buffer *bytes = grpc_raw_byte_buffer_create(NULL, 0);
    grpc_slice_buffer *slices = &bytes->data.raw.slice_buffer;
    if (fits)
        grpc_slice_buffer_add(slices, head_slice(head, head_size, payload));
    for (size_t i = 0; i < npieces; i++) {
        void (*done)(void *) = pieces[i].done != NULL ? pieces[i].done : fallback != NULL ? fallback : nothing;
        void *done_user = pieces[i].done != NULL ? pieces[i].user : user;
        if (!fits || pieces[i].size == 0)
            done(done_user);
        else
            grpc_slice_buffer_add_indexed(slices, grpc_slice_new_with_user_data((void *)(uintptr_t)pieces[i].data,
                                                                                pieces[i].size, done, done_user));
    }
    if (!fits) {
        grpc_byte_buffer_destroy(bytes);
        return err_set(e, ERR_INPUT, "message of more than 4 GiB; send it in parts");
    }
    *ret = bytes;
    return 0;
}
