/* The role worker: trains for a chief in another process. */
#include "base/log.h"
#include "roles.h"
#include "rpc/rpc.h"
#include "trainer.h"

int run_worker(struct replica *r, struct err *e)
{
    AUTO(coordinator_client) *coord = coordinator_client_new_grpc(cluster_chief_address(&r->cluster), &RPC_INSECURE);
    struct trainer t = { .replica = r, .coord = coord, .stats = r->stats };
    return trainer_run(&t, e);
}
