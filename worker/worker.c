/* The role worker: trains for a chief in another process. */
#include "base/log.h"
#include "roles.h"
#include "trainer.h"

int run_worker(struct replica *r, struct err *e)
{
    AUTO(coordinator_client) *coord = replica_coordinator(r);
    struct trainer t = { .replica = r, .name = r->name, .coord = coord, .stats = r->stats };
    return trainer_run(&t, e);
}
