/* The replica that hosts the chief: a chief pod, worker 0 of a cluster without one, or the only process. When it
 * trains, the main thread trains and the chief has a separate thread. */
#include <string.h>

#include "base/log.h"
#include "base/stop.h"
#include "base/thread.h"
#include "chief/chief.h"
#include "coord/coordinator_service.h"
#include "http_pages.h"
#include "net/address.h"
#include "roles.h"
#include "trainer.h"

enum { CHIEF_RPC_THREADS = 4 };

struct leader {
    struct replica *replica;
    bool local; /* no ps: everything in this process */
    struct shard *shard;
    struct params *own;    /* local: the trainer's, whose vector the shard updates in place */
    struct params *params; /* the chief's */
    struct mutex gate;
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
    rpc_server_free(l->server);
    coordinator_client_free(l->coord);
    chief_free(l->chief);
    params_free(l->params);
    params_free(l->own);
    shard_free(l->shard);
    mutex_fini(&l->gate);
}
DEFINE_AUTO_FINI(leader, leader_fini);

static void open_params(struct leader *l)
{
    const struct replica *r = l->replica;
    struct params_identity id = { .job_uid = r->job_uid, .sender = r->name, .incarnation = r->incarnation };
    l->local = replica_ps_count(r) == 0;
    if (!l->local) {
        l->params = replica_params(r, r->job_uid);
        return;
    }
    log_info("Running single-machine training");
    l->shard = shard_new(r->incarnation);
    l->own = params_new_local(r->layout, l->shard, &id); /* the shard uses the vector of the first one */
    l->params = params_new_local(r->layout, l->shard, &id);
}

/* Without certificates anybody can call itself by any name. With them the operator may scale a job up. */
static size_t members_max(const struct replica *r)
{
    return r->credentials.rpc.security == RPC_PLAINTEXT ? (size_t)(16 + 4 * cluster_workers(&r->cluster)) : 0;
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
        .workers_wanted = l->local ? 1 : MAX(cluster_workers(&r->cluster), (int)replica_trains(r)),
        .members_max = members_max(r),
        .local = l->local,
        .step_gate = l->local ? &l->gate : NULL,
        .report = &REPORT_TO_LOG,
    };
    return chief_new(&config, &l->chief, e);
}

static int open_service(struct leader *l, struct err *e)
{
    struct rpc_method methods[COORDINATOR_METHODS];
    char address[128];
    const struct rpc_server_options options = { .threads = CHIEF_RPC_THREADS,
                                                .leader = cluster_leader(&l->replica->cluster) };
    if (!l->replica->cluster.configured)
        return 0;
    coordinator_service_methods(chief_coordinator(l->chief), methods);
    address_to_listen_on(l->replica->options->common.listen, cluster_chief_address(&l->replica->cluster), 0, address,
                         sizeof(address));
    return rpc_server_start(address, &l->replica->credentials.rpc, methods, COUNT_OF(methods), &options, &l->server, e);
}

static void chief_thread(void *user)
{
    struct leader *l = user;
    l->result = chief_run(l->chief, &l->error);
    if (l->result < 0)
        stop_request(); /* the main thread would wait for a lease that is never granted */
}

/* Trains in this thread while the chief runs in a separate one. The job's result is that of the chief, unless
 * training failed for another reason (a damaged record, for example). That failure then ends the chief, too. */
static int lead_and_train(struct leader *l, struct err *e)
{
    struct trainer t = { .replica = l->replica,
                         .coord = l->coord,
                         .params = l->own,
                         .step_gate = l->local ? &l->gate : NULL,
                         .stats = l->replica->stats };
    if (thread_start(&l->thread, "chief", chief_thread, l, e) < 0)
        return -1;
    struct err own = { 0 };
    int trained = trainer_run(&t, &own);
    bool own_fault = trained < 0 && !err_is(&own, ERR_STOPPED) && !err_is(&own, ERR_DIVERGED);
    if (own_fault)
        stop_request();
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
    open_params(&l);
    if (open_chief(&l, e) < 0 || open_service(&l, e) < 0)
        return -1;
    l.coord = coordinator_client_new_local(chief_coordinator(l.chief));
    http_pages_set_chief(r->pages, l.chief);
    http_pages_set_server(r->pages, l.server);
    if ((replica_trains(r) ? lead_and_train(&l, e) : chief_run(l.chief, e)) < 0)
        return -1;
    write_termination_message(&l);
    return 0;
}
