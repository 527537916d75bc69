/* shard_service_internal - what the files of the service share: shard_service.c (the table, and the chief's calls)
 * and shard_bulk.c (pull, push), shard_shm.c (pushes through shared memory), shard_reduce_service.c (batch statistics).
 */
#ifndef TRAINYARD_PARAMS_SHARD_SERVICE_INTERNAL_H
#define TRAINYARD_PARAMS_SHARD_SERVICE_INTERNAL_H

#include <stdatomic.h>

#include "base/thread.h"
#include "params/buffer_pool.h"
#include "params/parameters_codec.h"
#include "params/shard_service.h"
#include "params/slot_server.h"

enum { PULL_WAIT_MAX_MS = 10000 }; /* a pull waits for its step, at most */

struct method;
struct bound { /* what rpc_method.user points to */
    struct shard_service *service;
    const struct method *method;
};
struct shard_service {
    struct shard *shard;
    struct buffer_pool *pool;
    atomic_bool share;
    atomic_size_t share_max; /* bytes that a worker may offer, set by the chief (Init) */
    struct mutex server_lock;
    struct rpc_server *server;   /* under the lock; NULL: there is none, or it stops */
    struct slot_server *sharers; /* shard_shm.c */
    atomic_int_fast64_t heard_ms;
    struct bound bound[SHARD_METHODS];
};
/* A request, unpacked, and the place of its answer. */
struct exchange {
    struct shard_service *service;
    struct shard *shard;
    struct buffer_pool *pool;
    const struct rpc_caller *caller;
    const ProtobufCMessage *request;
    const struct rpc_message *message;
    struct rpc_reply *reply;
};
/* The request as the type that its row of the table names. */
#define REQUEST(x, type) ((const type *)(const void *)(x)->request)

static inline struct shard_caller exchange_caller(const struct exchange *x)
{
    return (struct shard_caller){ .job_uid = x->caller->job_uid,
                                  .sender = x->caller->name,
                                  .generation = x->caller->generation,
                                  .incarnation = x->caller->incarnation };
}
static inline uint64_t exchange_incarnation(const struct exchange *x)
{
    return shard_incarnation(x->shard);
}

/* The bytes of answers that may wait to be read; for a push, or for a call that may be repeated at once. client: of
 * struct rpc_caller, or 0 for a caller without a separate limit (the chief). */
struct buffer_pool_limit answers_limit(const struct shard_sizes *sizes, bool push, uint64_t client);
int on_pull(const struct exchange *x, struct err *e);
int on_push(const struct exchange *x, struct err *e);
int on_attach(const struct exchange *x, struct err *e);
int on_reduce(const struct exchange *x, struct err *e);
slot_serve_fn serve_push_slot;

#endif
