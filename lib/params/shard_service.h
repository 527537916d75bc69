/* shard_service - a shard as gRPC methods (lib/rpc/parameters.proto). Replies carry values in reused buffers; a push is
 * applied directly from the received slices. Thread-safe, as rpc_server requires.
 */
#ifndef TRAINYARD_PARAMS_SHARD_SERVICE_H
#define TRAINYARD_PARAMS_SHARD_SERVICE_H

#include "rpc/rpc.h"
#include "shard/shard.h"

enum { SHARD_METHODS = 9 };

struct shard_service;
struct shard_service *shard_service_new(struct shard *s); /* s is borrowed */
/* After the server is gone. */
void shard_service_free(struct shard_service *v);
DEFINE_AUTO(shard_service, shard_service_free);
/* For rpc_server_start(). */
void shard_service_methods(struct shard_service *v, struct rpc_method ret[SHARD_METHODS]);
/* Once the server has started: pulls that wait for a step are answered when it is there. NULL: before rpc_server_free.
 */
void shard_service_serve(struct shard_service *v, struct rpc_server *server);
/* Whether workers of this host may push through shared memory (params/push_slot.h); true at first. */
void shard_service_share(struct shard_service *v, bool allowed);
size_t shard_service_shared(struct shard_service *v); /* the number of workers that do so now */
/* A request has come by another service of this process. */
void shard_service_note(struct shard_service *v);
/* When the last request arrived, by clock_ms(); when the service was created if none has. */
int64_t shard_service_heard_ms(const struct shard_service *v);

#endif
