/* The role worker: trains for a chief in another process. */
#include "base/log.h"
#include "member.h"
#include "net/address.h"
#include "params/parameters_codec.h"
#include "roles.h"
#include "trainer.h"

struct worker {
    struct replica *replica;
    struct coordinator_client *coord;
    struct own_member member; /* MultiWorkerMirrored */
    struct rpc_server *server;
};

static void worker_fini(struct worker *w)
{
    member_end(&w->member);
    rpc_server_free(w->server);
    member_fini(&w->member);
    coordinator_client_free(w->coord);
}
DEFINE_AUTO_FINI(worker, worker_fini);

/* Serves the other members. */
static int worker_serve(struct worker *w, struct err *e)
{
    const struct replica *r = w->replica;
    struct rpc_method methods[COLLECTIVE_METHODS];
    char address[128];
    const struct rpc_server_options options = { .threads = MEMBER_RPC_THREADS,
                                                .payload_max = PARAMETERS_PAYLOAD_MAX,
                                                .leader = cluster_leader(&r->cluster) };
    if (member_open(r, &w->member, e) < 0)
        return -1;
    collective_methods(w->member.collective, methods);
    address_to_listen_on(r->options->common.listen, replica_address(r), 0, address, sizeof(address));
    if (rpc_server_start(address, &r->credentials.rpc, methods, COUNT_OF(methods), &options, &w->server, e) < 0)
        return -1;
    member_serve(&w->member, w->server);
    return 0;
}

int run_worker(struct replica *r, struct err *e)
{
    AUTO_FINI(worker) w = { .replica = r, .coord = replica_coordinator(r) };
    if (replica_is_member(r) && worker_serve(&w, e) < 0)
        return -1;
    struct trainer t = { .replica = r,
                         .name = r->name,
                         .coord = w.coord,
                         .params = w.member.params,
                         .collective = w.member.collective,
                         .strategy = strategy_of(r->job, false),
                         .stats = r->stats };
    return trainer_run(&t, e);
}
