/* health - part of rpc.h: grpc.health.v1.Health/Check, which the probes of kubelet and other tools call. */
#ifndef TRAINYARD_RPC_HEALTH_H
#define TRAINYARD_RPC_HEALTH_H

#include <stdatomic.h>

#include "rpc/rpc.h"

struct health {
    atomic_bool serving;
    const struct rpc_method *methods; /* the server's services are known; "" is the whole server */
    size_t nmethods;
};

struct rpc_method health_method(struct health *h);

#endif
