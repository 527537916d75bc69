/* A worker that follows a chief somewhere else. */
#include "base/log.h"
#include "roles.h"
#include "status.h"
#include "trainer.h"

int run_worker(struct replica *r, struct err *e)
{
    AUTO(coord) *coord = coord_new_grpc(cluster_chief_address(&r->cluster));
    AUTO(status) *status = NULL;
    struct session_stats stats = { 0 };
    if (status_open(r, NULL, &stats, &status, e) < 0)
        return -1;
    struct trainer t = { .replica = r, .coord = coord, .stats = &stats };
    return trainer_run(&t, e);
}
