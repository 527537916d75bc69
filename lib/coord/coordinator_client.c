/* The client of a coordinator: a request goes over gRPC to the chief's process, or, when the chief is in this
 * process, directly to its coordinator. */
#include "coord/coordinator_client.h"

#include "base/clock.h"
#include "coord/coordinator_service.h"

struct coordinator_client {
    struct rpc_channel *channel; /* over gRPC, or */
    struct coordinator *local;
};

struct coordinator_client *coordinator_client_new_grpc(const char *chief_address, const char *leader,
                                                       const struct rpc_credentials *credentials)
{
    struct coordinator_client *c = xcalloc(1, sizeof(*c));
    c->channel =
        rpc_channel_new(chief_address, credentials, &(struct rpc_channel_options){ .lanes = 1, .peer = leader });
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

static int call_grpc(struct coordinator_client *c, enum coordinator_method method, const struct buf *request,
                     int64_t deadline_ms, struct coordinator_reply *ret, struct err *e)
{
    AUTO(rpc_message) *answer = NULL;
    if (rpc_unary(c->channel, coordinator_method_path(method), request->data, request->len, NULL, 0, deadline_ms,
                  &answer, e) < 0)
        return err_wrap(e, "chief (%s)", rpc_channel_target(c->channel));
    size_t n;
    const void *data = rpc_message_head(answer, &n);
    return coordinator_unpack_reply(data, n, ret, e);
}

int coordinator_client_register(struct coordinator_client *c, const struct register_request *q, int64_t deadline_ms,
                                struct coordinator_reply *ret, struct err *e)
{
    if (c->local != NULL)
        return coordinator_register(c->local, q, clock_ms(), ret, e);
    AUTO_FINI(buf) request = BUF_INIT;
    coordinator_pack_register(q, &request);
    return call_grpc(c, COORDINATOR_REGISTER, &request, deadline_ms, ret, e);
}

int coordinator_client_heartbeat(struct coordinator_client *c, const struct heartbeat_request *q, int64_t deadline_ms,
                                 struct coordinator_reply *ret, struct err *e)
{
    if (c->local != NULL)
        return coordinator_heartbeat(c->local, q, clock_ms(), ret, e);
    AUTO_FINI(buf) request = BUF_INIT;
    coordinator_pack_heartbeat(q, &request);
    return call_grpc(c, COORDINATOR_HEARTBEAT, &request, deadline_ms, ret, e);
}

int coordinator_client_lease(struct coordinator_client *c, const struct lease_request *q, int64_t deadline_ms,
                             struct coordinator_reply *ret, struct err *e)
{
    if (c->local != NULL)
        return coordinator_lease(c->local, q, clock_ms(), ret, e);
    AUTO_FINI(buf) request = BUF_INIT;
    coordinator_pack_lease(q, &request);
    return call_grpc(c, COORDINATOR_LEASE, &request, deadline_ms, ret, e);
}

int coordinator_client_leave(struct coordinator_client *c, const struct leave_request *q, int64_t deadline_ms,
                             struct coordinator_reply *ret, struct err *e)
{
    if (c->local != NULL)
        return coordinator_leave(c->local, q, clock_ms(), ret, e);
    AUTO_FINI(buf) request = BUF_INIT;
    coordinator_pack_leave(q, &request);
    return call_grpc(c, COORDINATOR_LEAVE, &request, deadline_ms, ret, e);
}

int coordinator_client_report_evaluation(struct coordinator_client *c, const struct evaluation_request *q,
                                         int64_t deadline_ms, struct coordinator_reply *ret, struct err *e)
{
    if (c->local != NULL)
        return coordinator_report_evaluation(c->local, q, clock_ms(), ret, e);
    AUTO_FINI(buf) request = BUF_INIT;
    coordinator_pack_report_evaluation(q, &request);
    return call_grpc(c, COORDINATOR_REPORT_EVALUATION, &request, deadline_ms, ret, e);
}
