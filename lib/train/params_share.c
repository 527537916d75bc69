/* Gradients and values of a push through memory that a ps of this host shares: the call still goes over gRPC, its bytes
 * do not. After a call that failed the memory is given up, since the ps may look at it later. */
#include "base/clock.h"
#include "train/params_grpc.h"

#include <unistd.h>

enum { SHARE_MAX = 64 << 20, SHARE_CALL_MS = 2000, SHARE_AGAIN_MS = 5000, ALIGNMENT = 64 };

uint64_t peer_gradients_at(const struct part *part)
{
    return REGION_START + part->push_at;
}

static size_t half(const struct peer *peer)
{
    return (peer->push + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

uint64_t peer_values_at(const struct peer *peer, const struct part *part)
{
    return REGION_START + half(peer) + part->push_at;
}

void peer_unshare(struct peer *peer)
{
    region_free(peer->region);
    peer->region = NULL;
    peer->region_id = 0;
    peer->region_doubtful = false;
}

static int offer(const struct params *p, struct peer *peer, const struct region *region, uint64_t *ret_id, struct err *e)
{
    Trainyard__V1__Header header;
    Trainyard__V1__AttachRequest q = TRAINYARD__V1__ATTACH_REQUEST__INIT;
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *m = NULL;
    WIRE_AUTO *answer = NULL;
    remote_header(p, &header);
    q.header = &header;
    q.pid = getpid();
    q.fd = region->fd;
    q.size = region->size;
    q.nonce = (ProtobufCBinaryData){ .data = region->data, .len = REGION_NONCE };
    wire_pack(&q.base, &head);
    if (rpc_unary(peer->channel, wire_method(PS_ATTACH), head.data, head.len, NULL, 0, SHARE_CALL_MS, &m, e) < 0 ||
        wire_unpack(&trainyard__v1__attach_reply__descriptor, m, &answer, e) < 0)
        return -1;
    const Trainyard__V1__AttachReply *a = (const void *)answer;
    if (a->region == 0)
        return err_set(e, ERR_REFUSED, "no region");
    *ret_id = a->region;
    return 0;
}

void peer_share(const struct params *p, struct peer *peer)
{
    struct err e;
    int64_t now = clock_ms();
    if (peer->region_doubtful)
        peer_unshare(peer);
    if (peer->region != NULL || !peer->may_share || peer->push == 0 || peer->push > SHARE_MAX || now < peer->share_after_ms)
        return;
    AUTO(region) *region = NULL;
    if (region_make(2 * half(peer), &region, &e) == 0 && offer(p, peer, region, &peer->region_id, &e) == 0) {
        peer->region = TAKE(region);
        return;
    }
    peer->may_share = !err_is(&e, ERR_REFUSED);
    peer->share_after_ms = clock_ms() + SHARE_AGAIN_MS;
}
