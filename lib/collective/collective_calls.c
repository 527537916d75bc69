/* Calls to other members. The thread that waits for one moves its bytes; a change of the view cancels those that wait,
 * because their member may be gone. */
#include <string.h>

#include "base/str.h"
#include "collective/collective_internal.h"
#include "params/params.h"

enum { LANES = 4 };

static const char TRANSFER[] = "/trainyard.v1.Peer/Transfer";

struct peer *collective_peer(struct collective *c, const struct view_member *m)
{
    MUTEX_GUARD(&c->calls_lock);
    for (struct peer *p = c->peers; p != NULL; p = p->next)
        if (str_eq(p->name, m->name) && str_eq(p->address, m->address))
            return p;
    struct peer *p = xcalloc(1, sizeof(*p));
    const struct rpc_channel_options options = { .lanes = LANES,
                                                 .payload_max = PARAMETERS_PAYLOAD_MAX,
                                                 .peer = p->name };
    str_fmt(p->name, sizeof(p->name), "%s", m->name);
    str_fmt(p->address, sizeof(p->address), "%s", m->address);
    p->channel = rpc_channel_new(m->address, c->config.credentials, &options);
    p->next = c->peers;
    c->peers = p;
    return p;
}

void collective_peers_free(struct collective *c)
{
    while (c->peers != NULL) {
        struct peer *p = c->peers;
        c->peers = p->next;
        rpc_channel_free(p->channel);
        free(p);
    }
}

/* ---- calls that may be cancelled ---- */

struct peer_call *peer_calls_new(size_t n)
{
    struct peer_call *calls = xcalloc(n, sizeof(*calls));
    for (size_t i = 0; i < n; i++)
        calls[i].head = (struct buf)BUF_INIT;
    return calls;
}

void peer_calls_free(struct peer_call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        buf_fini(&calls[i].head);
    free(calls);
}

/* Under calls_lock. */
static void call_link(struct collective *c, struct peer_call *k)
{
    k->next = c->calls;
    k->link = &c->calls;
    if (k->next != NULL)
        k->next->link = &k->next;
    c->calls = k;
}

static void call_unlink(struct collective *c, struct peer_call *k)
{
    MUTEX_GUARD(&c->calls_lock);
    *k->link = k->next;
    if (k->next != NULL)
        k->next->link = k->link;
    k->next = NULL;
    k->link = NULL;
}

Trainyard__V1__Header peer_header(const struct collective *c, const char *job_uid, uint64_t generation)
{
    Trainyard__V1__Header header;
    trainyard__v1__header__init(&header);
    header.job_uid = unconst(job_uid);
    header.generation = generation;
    header.sender = unconst(c->config.name);
    header.incarnation = c->config.incarnation;
    return header;
}

bool peer_start_call(struct collective *c, struct peer_call *k, const struct peer_method *m)
{
    MUTEX_GUARD(&c->calls_lock);
    if (c->calls_epoch != m->epoch)
        return false;
    k->call = rpc_start(k->peer->channel, (int)(m->lane % LANES), m->path, k->head.data, k->head.len, &k->piece,
                        k->piece.data != NULL, m->deadline_ms);
    call_link(c, k);
    return true;
}

bool peer_start(struct collective *c, struct peer_call *k, const struct transfer *t)
{
    Trainyard__V1__Header header = peer_header(c, t->job_uid, t->generation);
    Trainyard__V1__TransferRequest q = t->request;
    const struct peer_method m = { .path = TRANSFER,
                                   .lane = q.index,
                                   .epoch = t->epoch,
                                   .deadline_ms = CALL_MS + q.wait_ms + (int64_t)t->before / PARAMS_FLOOR_BYTES_A_MS };
    q.header = &header;
    codec_pack(&q.base, &k->head);
    k->piece = t->piece;
    return peer_start_call(c, k, &m);
}

int peer_finish_call(struct collective *c, struct peer_call *k, const ProtobufCMessageDescriptor *kind,
                     struct rpc_message **ret_message, ProtobufCMessage **ret, struct err *e)
{
    AUTO(rpc_message) *m = NULL;
    rpc_await(k->call);
    call_unlink(c, k);
    if (rpc_wait(TAKE(k->call), &m, e) < 0 || codec_unpack(kind, m, ret, e) < 0)
        return err_wrap(e, "%s (%s)", k->peer->name, k->peer->address);
    *ret_message = TAKE(m);
    return 0;
}

int peer_finish(struct collective *c, struct peer_call *k, struct rpc_message **ret_message, ProtobufCMessage **ret,
                struct err *e)
{
    return peer_finish_call(c, k, &trainyard__v1__transfer_reply__descriptor, ret_message, ret, e);
}

void peer_cancel(struct peer_call *calls, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (calls[i].call != NULL)
            rpc_cancel(calls[i].call);
}

bool peer_calls_over(struct collective *c, uint64_t epoch)
{
    MUTEX_GUARD(&c->calls_lock);
    return c->calls_epoch != epoch;
}

void peer_cancel_all(struct collective *c, uint64_t epoch)
{
    MUTEX_GUARD(&c->calls_lock);
    c->calls_epoch = epoch;
    for (struct peer_call *k = c->calls; k != NULL; k = k->next)
        rpc_cancel(k->call);
}

bool peer_worth_retry(const struct err *e)
{
    return err_is(e, ERR_LOST) || err_is(e, ERR_TIMEOUT) || err_is(e, ERR_NOT_READY) || err_is(e, ERR_FENCED) ||
           err_is(e, ERR_STOPPED) || err_is(e, ERR_PENDING);
}
