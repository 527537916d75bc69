/* grpc.health.v1.Health/Check of a server, written by hand: two fields. A service that the server does not have is
 * NOT_FOUND. */
#include "rpc/health.h"

#include <string.h>

#include "codec/pb.h"

enum { SERVING = 1, NOT_SERVING = 2 }; /* HealthCheckResponse.ServingStatus */

static bool known(const struct health *h, const char *service, size_t n)
{
    if (n == 0)
        return true;
    for (size_t i = 0; i < h->nmethods; i++) {
        const char *path = h->methods[i].path; /* "/service/method" */
        if (strncmp(path + 1, service, n) == 0 && path[1 + n] == '/')
            return true;
    }
    return false;
}

/* HealthCheckRequest { string service = 1; } -> HealthCheckResponse { ServingStatus status = 1; } */
static int check(void *user, const struct rpc_caller *caller, const struct rpc_message *request,
                 struct rpc_reply *reply, struct err *e)
{
    (void)caller;
    const struct health *h = user;
    size_t n;
    const void *head = rpc_message_head(request, &n);
    struct reader r = reader_of(head, n);
    struct pb_field f, service = { .data = "", .size = 0 };
    int rc;
    while ((rc = pb_next(&r, &f)) > 0)
        if (f.number == 1 && f.type == PB_BYTES)
            service = f;
    if (rc < 0)
        return err_set(e, ERR_INPUT, "malformed HealthCheckRequest");
    if (!known(h, service.data, service.size))
        return err_set(e, ERR_NOT_FOUND, "no service '%.*s' here", (int)MIN(service.size, 200U),
                       (const char *)service.data);
    pb_put_varint(&reply->head, 1, atomic_load(&h->serving) ? SERVING : NOT_SERVING);
    return 0;
}

struct rpc_method health_method(struct health *h)
{
    return (struct rpc_method){
        .path = "/grpc.health.v1.Health/Check", .handle = check, .user = h, .no_header = true, .callers = RPC_MEMBERS
    };
}
