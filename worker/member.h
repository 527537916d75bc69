/* member - what a replica of MultiWorkerMirrored has beside its part in the job: the state of the training in a shard,
 * and the collective that keeps it equal to that of the other members. */
#ifndef TRAINYARD_WORKER_MEMBER_H
#define TRAINYARD_WORKER_MEMBER_H

#include "collective/collective.h"
#include "params/params.h"
#include "replica.h"

enum { MEMBER_RPC_THREADS = 4 }; /* of the server that has its methods */

struct own_member {
    struct shard *shard;
    struct params *params; /* local: the vector that the shard updates */
    struct collective *collective;
    struct rpc_server *server; /* borrowed, between member_serve and member_end */
    struct http_pages *pages;
};
/* Is it one that computes? A chief that does not train is none. */
bool replica_is_member(const struct replica *r);
MUST_USE int member_open(const struct replica *r, struct own_member *ret, struct err *e);
void member_serve(struct own_member *m, struct rpc_server *server);
void member_end(struct own_member *m);  /* before rpc_server_free */
void member_fini(struct own_member *m); /* after it */

#endif
