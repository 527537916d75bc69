/* The replica that hosts the chief: a chief pod, worker 0 of a cluster without one, or the only process. When it
 * trains, the main thread trains and the chief has a separate thread. */
#include <string.h>

#include "base/log.h"
#include "base/stop.h"
#include "base/thread.h"
#include "chief/chief.h"
#include "collective/params_members.h"
#include "coord/coordinator_service.h"
#include "http_pages.h"
#include "member.h"
#include "net/address.h"
#include "params/parameters_codec.h"
#include "roles.h"
#include "towers.h"

enum { CHIEF_RPC_THREADS = 4 };

struct leader {
    struct replica *replica;
    bool local; /* no ps: everything in this process */
    struct shard *shard;
    struct params *own;       /* local: the trainer's, whose vector the shard updates in place */
    struct own_member member; /* MultiWorkerMirrored, if this replica trains */
    struct params *params;    /* the chief's */
    struct mutex gate;        /* for one thread that trains */
    struct chief *chief;
    struct rpc_server *server;
    struct coordinator_client *coord;
    struct thread thread; /* the chief's, when this thread trains */
    int result;           /* of the chief */
    struct err error;
};

static void leader_fini(struct leader *l)
{
    http_pages_set_chief(l->replica->pages, NULL);
    http_pages_set_server(l->replica->pages, NULL);
    member_end(&l->member);
    rpc_server_free(l->server);
    coordinator_client_free(l->coord);
    chief_free(l->chief);
    params_free(l->params);
    params_free(l->own);
    member_fini(&l->member);
    shard_free(l->shard);
    mutex_fini(&l->gate);
}
DEFINE_AUTO_FINI(leader, leader_fini);

static int workers_wanted(const struct leader *l)
{
    const struct replica *r = l->replica;
    if (l->local)
        return MAX(replica_towers(r), 1);
    return MAX(cluster_workers(&r->cluster), (int)replica_trains(r));
}

/* The state is in the workers, and in this process if it trains. */
static int open_members(struct leader *l, const struct params_identity *id, struct err *e)
{
    const struct replica *r = l->replica;
    const struct members_config config = { .layout = r->layout,
                                           .id = *id,
                                           .credentials = &r->credentials.rpc,
                                           .wanted = (size_t)workers_wanted(l),
                                           .min_members = (size_t)MAX(r->job->strategy.min_replicas, 1),
                                           .report = &REPORT_TO_LOG };
    l->params = params_new_members(&config);
    return replica_is_member(r) ? member_open(r, &l->member, e) : 0;
}

static int open_params(struct leader *l, struct err *e)
{
    const struct replica *r = l->replica;
    struct params_identity id = { .job_uid = r->job_uid, .sender = r->name, .incarnation = r->incarnation };
    if (replica_is_collective(r))
        return open_members(l, &id, e);
    l->local = replica_ps_count(r) == 0;
    if (!l->local) {
        l->params = replica_params(r, r->job_uid);
        return 0;
    }
    if (replica_towers(r) > 0)
        log_info("Running %s training in %d threads", strategy_name(r->job->strategy.name), replica_towers(r));
    else
        log_info("Running single-machine training");
    l->shard = shard_new(r->incarnation);
    l->own = params_new_local(r->layout, l->shard, &id); /* the shard uses the vector of the first one */
    l->params = params_new_local(r->layout, l->shard, &id);
    return 0;
}

/* Without certificates anybody can call itself by any name. With them the operator may scale a job up. */
static size_t members_max(const struct replica *r)
{
    int trainers = cluster_workers(&r->cluster) + replica_towers(r);
    return r->credentials.rpc.security == RPC_PLAINTEXT ? (size_t)(16 + 4 * trainers) : 0;
}

static struct mutex *step_gate(struct leader *l)
{
    return l->local && replica_towers(l->replica) == 0 ? &l->gate : NULL;
}

static int open_chief(struct leader *l, struct err *e)
{
    const struct replica *r = l->replica;
    struct chief_config config = {
        .job = r->job,
        .model = r->model,
        .layout = r->layout,
        .placement = r->placement,
        .train = r->data.train,
        .validation = r->data.validation,
        .space = r->data.space,
        .params = l->params,
        .output_dir = r->output_dir,
        .job_uid = r->job_uid,
        .data_dir = r->data_dir,
        .incarnation = r->incarnation,
        .workers_wanted = workers_wanted(l),
        .members_max = members_max(r),
        .members = replica_is_collective(r),
        .local = l->local,
        .step_gate = step_gate(l),
        .report = &REPORT_TO_LOG,
    };
    return chief_new(&config, &l->chief, e);
}

static int open_service(struct leader *l, struct err *e)
{
    struct rpc_method methods[COORDINATOR_METHODS + COLLECTIVE_METHODS];
    char address[128];
    bool member = l->member.collective != NULL;
    const struct rpc_server_options options = { .threads = CHIEF_RPC_THREADS + (member ? MEMBER_RPC_THREADS : 0),
                                                .payload_max = member ? PARAMETERS_PAYLOAD_MAX : 0,
                                                .leader = cluster_leader(&l->replica->cluster) };
    if (!l->replica->cluster.configured)
        return 0;
    coordinator_service_methods(chief_coordinator(l->chief), methods);
    address_to_listen_on(l->replica->options->common.listen, cluster_chief_address(&l->replica->cluster), 0, address,
                         sizeof(address));
    if (member)
        collective_methods(l->member.collective, methods + COORDINATOR_METHODS);
    if (rpc_server_start(address, &l->replica->credentials.rpc, methods,
                         COORDINATOR_METHODS + (member ? COLLECTIVE_METHODS : 0), &options, &l->server, e) < 0)
        return -1;
    if (member)
        member_serve(&l->member, l->server);
    return 0;
}

static void chief_thread(void *user)
{
    struct leader *l = user;
    l->result = chief_run(l->chief, &l->error);
    if (l->result < 0) { /* who trains would wait for a lease that is never granted */
        coordinator_stop(chief_coordinator(l->chief), l->error.msg);
        stop_request();
    }
}

/* A failure that is not the chief's stops it, too. */
static int leader_train(struct leader *l, struct err *e)
{
    struct replica *r = l->replica;
    struct trainer t = { .replica = r,
                         .name = r->name,
                         .coord = l->coord,
                         .params = l->own != NULL ? l->own : l->member.params,
                         .collective = l->member.collective,
                         .strategy = strategy_of(r->job, l->local),
                         .step_gate = step_gate(l),
                         .stats = r->stats };
    if (replica_towers(r) > 0)
        return towers_run(&t, l->shard, e);
    int trained = trainer_run(&t, e);
    if (trained < 0 && trainer_failed(e))
        stop_request();
    return trained;
}

/* Trains in this thread while the chief runs in a separate one. The job's result is that of the chief, unless
 * training failed for another reason (a damaged record, for example). That failure then ends the chief, too. */
static int lead_and_train(struct leader *l, struct err *e)
{
    if (thread_start(&l->thread, "chief", chief_thread, l, e) < 0)
        return -1;
    struct err own = { 0 };
    bool own_fault = leader_train(l, &own) < 0 && trainer_failed(&own);
    thread_join(&l->thread);
    if (own_fault && (l->result == 0 || err_is(&l->error, ERR_STOPPED)))
        return err_set(e, own.code, "%s", own.msg);
    return l->result < 0 ? err_set(e, l->error.code, "%s", l->error.msg) : 0;
}

/* Writes the last progress of the job as the pod's termination message. */
static void write_termination_message(const struct leader *l)
{
    AUTO_FINI(buf) progress = BUF_INIT;
    chief_progress(l->chief, &progress);
    termination_write_json(l->replica->options->common.termination_log, progress.data);
}

int run_leader(struct replica *r, struct err *e)
{
    AUTO_FINI(leader) l = { .replica = r };
    mutex_init(&l.gate);
    if (open_params(&l, e) < 0 || open_chief(&l, e) < 0 || open_service(&l, e) < 0)
        return -1;
    l.coord = coordinator_client_new_local(chief_coordinator(l.chief));
    http_pages_set_chief(r->pages, l.chief);
    http_pages_set_server(r->pages, l.server);
    if ((replica_trains(r) ? lead_and_train(&l, e) : chief_run(l.chief, e)) < 0)
        return -1;
    write_termination_message(&l);
    return 0;
}
