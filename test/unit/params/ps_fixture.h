/* ps_fixture - the ps of a small job as gRPC servers of this process, and a worker's params that connect to them. The
 * servers can be stopped and started again empty. */
#ifndef TRAINYARD_PARAMS_PS_FIXTURE_H
#define TRAINYARD_PARAMS_PS_FIXTURE_H

#include "shard/job_fixture.h"

#include "base/clock.h"
#include "params/parameters_codec.h"
#include "params/params_admin.h"
#include "params/ps_set.h"
#include "params/shard_service.h"
#include "rpc/rpc.h"

enum { PS_COUNT = 2, PS_CALL_MS = 20000 };

struct ps_fixture {
    struct job_fixture job;
    struct placement *placement;
    struct shard *shard[PS_COUNT];
    struct shard_service *service[PS_COUNT];
    struct rpc_server *server[PS_COUNT];
    char host[PS_COUNT][32];
};

static inline void ps_serve(struct ps_fixture *w, size_t i, const struct rpc_method *methods)
{
    struct err e = { 0 };
    ck_ok_e(rpc_server_start(w->host[i][0] != 0 ? w->host[i] : "127.0.0.1:0", &RPC_INSECURE, methods, SHARD_METHODS,
                             &(struct rpc_server_options){ .threads = 2, .payload_max = PARAMETERS_PAYLOAD_MAX },
                             &w->server[i], &e));
    str_fmt(w->host[i], sizeof(w->host[i]), "127.0.0.1:%d", rpc_server_port(w->server[i]));
}

static inline void ps_start(struct ps_fixture *w, size_t i, uint64_t incarnation)
{
    struct rpc_method methods[SHARD_METHODS];
    w->shard[i] = shard_new(incarnation);
    w->service[i] = shard_service_new(w->shard[i]);
    shard_service_methods(w->service[i], methods);
    ps_serve(w, i, methods);
}

static inline void ps_stop(struct ps_fixture *w, size_t i)
{
    rpc_server_free(TAKE(w->server[i]));
    shard_service_free(TAKE(w->service[i]));
    shard_free(TAKE(w->shard[i]));
}

static inline void ps_open(struct ps_fixture *w, const char *optimizer, const char *fit)
{
    *w = (struct ps_fixture){ 0 };
    job_open(&w->job, optimizer, fit);
    rpc_init();
    w->placement = placement_new(w->job.layout, PLACEMENT_GREEDY, PS_COUNT);
    for (size_t i = 0; i < PS_COUNT; i++)
        ps_start(w, i, 100 + i);
}

static inline void ps_close(struct ps_fixture *w)
{
    for (size_t i = 0; i < PS_COUNT; i++)
        ps_stop(w, i);
    placement_free(w->placement);
    rpc_shutdown();
    job_close(&w->job);
}

static inline struct params *ps_params_as(struct ps_fixture *w, const char *name, const char *uid, uint64_t incarnation)
{
    char *hosts[PS_COUNT];
    struct params_identity id = { .job_uid = uid, .sender = name, .incarnation = incarnation };
    for (size_t i = 0; i < PS_COUNT; i++)
        hosts[i] = w->host[i];
    return params_new_grpc(w->job.layout, w->placement, hosts, &id, &RPC_INSECURE);
}

static inline struct params *ps_params(struct ps_fixture *w, const char *name, const char *uid)
{
    return ps_params_as(w, name, uid, 9);
}

/* Pushes batches [from, to) under a generation, with one gradient for all cells. */
static inline void ps_push_of(struct ps_fixture *w, struct params *p, uint64_t generation, int64_t from, int64_t to,
                              float gradient)
{
    struct err e = { 0 };
    struct push_result result;
    auto_free float *grads = xcalloc(model_size(w->job.model), sizeof(*grads));
    for (size_t i = 0; i < model_size(w->job.model); i++)
        grads[i] = gradient;
    params_set_generation(p, generation);
    for (int64_t ordinal = from; ordinal < to; ordinal++) {
        int pushed;
        ck_wait((pushed = params_push(p, ordinal, grads, PS_CALL_MS, &result, &e)) == 0 ||
                !(err_is(&e, ERR_LOST) || err_is(&e, ERR_NOT_READY))); /* it connects again */
        ck_assert_msg(pushed == 0, "%d %s", (int)e.code, e.msg);
    }
}

/* What they hold does not matter to Counting. */
static inline void ps_push(struct ps_fixture *w, struct params *p, uint64_t generation, int64_t from, int64_t to)
{
    ps_push_of(w, p, generation, from, to, 0);
}

static inline void ps_want_cells(struct ps_fixture *w, struct params *p, uint64_t generation, float wanted)
{
    struct err e = { 0 };
    params_set_generation(p, generation);
    ck_ok_e(params_pull(p, PS_CALL_MS, &e));
    want_cells(&w->job, params_vector(p), wanted);
}

#endif
