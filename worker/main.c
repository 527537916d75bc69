/* trainyard-worker: computes gradients as a worker, leads the job as its chief, evaluates its checkpoints, or,
 * without a cluster, trains alone. It logs an error once, here; the error's code determines the exit code. */
#include <stdio.h>

#include "base/stop.h"
#include "http_pages.h"
#include "roles.h"
#include "rpc/rpc.h"
#include "tensor/gemm.h"
#include "tensor/gemm_core.h"

static void log_start(const struct replica *r)
{
    if (r->options->common.insecure)
        log_warning("%s", REPLICA_INSECURE_WARNING);
    /* model and data are the same for all replicas: the leader logs them */
    if (replica_leads(r))
        log_info("trainyard-worker %s: %zu parameters, %lld examples, batch size %lld", TRAINYARD_VERSION,
                 model_params(r->model), (long long)r->data.space.examples, (long long)r->data.space.batch_size);
    else
        log_info("trainyard-worker %s: BLAS core %s", TRAINYARD_VERSION, gemm_core());
    if (replica_leads(r) && replica_trains(r))
        log_info("BLAS core %s", gemm_core());
    const char *forced = getenv("OPENBLAS_CORETYPE"), *replaced = getenv(GEMM_CORE_REPLACED);
    if (forced != NULL && replaced != NULL)
        log_info("OpenBLAS took this processor for %s; using %s", replaced, forced);
    else if (forced != NULL)
        log_info("OPENBLAS_CORETYPE=%s is set: without it OpenBLAS uses the fastest kernels of this processor", forced);
}

static int run_role(const struct worker_options *o, struct err *e)
{
    struct session_stats stats = { 0 };
    AUTO_FINI(replica) r = { 0 };
    AUTO(http_pages) *pages = NULL;
    if (stop_install(e) < 0 || replica_open(o, &r, e) < 0 || http_pages_open(&r, &stats, &pages, e) < 0 ||
        replica_open_data(&r, e) < 0)
        return -1;
    r.stats = &stats;
    r.pages = pages;
    log_start(&r);
    if (r.cluster.role == ROLE_EVALUATOR && !replica_leads(&r))
        return run_evaluator(&r, e);
    http_pages_ready(pages);
    return replica_leads(&r) ? run_leader(&r, e) : run_worker(&r, e);
}

int main(int argc, char **argv)
{
    struct worker_options o;
    enum opt_result parsed;
    struct err e = { .code = ERR_NONE };
    gemm_core_choose(argv);
    mem_keep_pages();
    if (worker_options_parse(argc, argv, &o, &parsed, &e) < 0)
        return replica_end(NULL, &e);
    if (parsed == OPT_DONE)
        return 0;
    rpc_init();
    int result = run_role(&o, &e);
    rpc_shutdown();
    return replica_end(&o.common, result < 0 ? &e : NULL);
}
