#include "coord/coordinator_client.h"

#include "base/clock.h"
#include "coord/coordinator_service.h"

struct coordinator_client {
    struct rpc_channel *channel; /* over gRPC, or */
    struct coordinator *local;
};

struct coordinator_client *coordinator_client_new_grpc(const char *chief_address)
{
    struct coordinator_client *c = xcalloc(1, sizeof(*c));
    c->channel = rpc_channel_new(chief_address, &(struct rpc_channel_options){ .lanes = 1 });
    return c;
}

struct coordinator_client *coordinator_client_new_local(struct coordinator *coordinator)
{
    struct coordinator_client *c = xcalloc(1, sizeof(*c));
    c->local = coordinator;
    return c;
}

void coordinator_client_free(struct coordinator_client *c)
{
    if (c == NULL)
        return;
    rpc_channel_free(c->channel);
    free(c);
}

static int call_grpc(struct coordinator_client *c, const struct coord_request *q, int64_t deadline_ms,
                     struct coord_reply *ret, struct err *e)
{
    AUTO_FINI(buf) head = BUF_INIT;
    AUTO(rpc_message) *answer = NULL;
    coord_pack_request(q, &head);
    if (rpc_unary(c->channel, coord_method_path(q->kind), head.data, head.len, NULL, 0, deadline_ms, &answer, e) < 0)
        return err_wrap(e, "chief (%s)", rpc_channel_target(c->channel));
    size_t n;
    const void *data = rpc_message_head(answer, &n);
    return coord_unpack_reply(data, n, ret, e);
}

int coord_call(struct coordinator_client *c, const struct coord_request *q, int64_t deadline_ms,
               struct coord_reply *ret, struct err *e)
{
    return c->local != NULL ? coordinator_handle(c->local, q, clock_ms(), ret, e)
                            : call_grpc(c, q, deadline_ms, ret, e);
}
