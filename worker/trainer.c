/* Runs a session between registration and leave. The chief is notified of every end, so that the leases are free at
 * once. */
#include "trainer.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "job_end.h"
#include "nn/metrics/metrics.h"
#include "tensor/arithmetic.h"

struct coordinator_client *replica_coordinator(const struct replica *r)
{
    return coordinator_client_new_grpc(cluster_chief_address(&r->cluster), cluster_leader_name(&r->cluster),
                                       &r->credentials.rpc);
}

struct params *replica_params(const struct replica *r, const char *job_uid)
{
    struct params_identity id = { .job_uid = job_uid, .sender = r->name, .incarnation = r->incarnation };
    return params_new_grpc(r->layout, r->placement, r->cluster.hosts[ROLE_PS].items, &id, &r->credentials.rpc);
}

static struct register_request registration_of(const struct trainer *t, const char *arithmetic)
{
    const struct replica *r = t->replica;
    return (struct register_request){ .sender = { .job_uid = r->job_uid,
                                                  .name = t->name,
                                                  .role = r->cluster.configured ? r->cluster.role : ROLE_WORKER,
                                                  .incarnation = r->incarnation },
                                      .space = r->data.space,
                                      .shuffle_version = SHUFFLE_VERSION,
                                      .layout_hash = layout_register_hash(r->layout, r->model),
                                      .ps_count = (uint32_t)r->placement->nps,
                                      .placement_hash = placement_hash(r->placement),
                                      .arithmetic = arithmetic,
                                      .address = t->collective != NULL ? replica_address(r) : NULL };
}

static int run_member(const struct trainer *t, struct chief_client *m, struct err *e)
{
    const struct replica *r = t->replica;
    AUTO(params) *own = NULL;
    uint64_t generation;
    if (chief_client_generation(m, 0, &generation, e) < 0) /* registered: the job's uid is known */
        return -1;
    if (t->params == NULL)
        own = replica_params(r, chief_client_job_uid(m));
    struct session_config config = {
        .model = r->model,
        .dataset = r->data.train,
        .space = &r->data.space,
        .params = t->params != NULL ? t->params : own,
        .collective = t->collective,
        .chief = m,
        .class_weights = r->class_weights,
        .report = &REPORT_TO_LOG,
        .max_wait_ms = (int64_t)(r->job->limits.max_wait_seconds * 1000.0),
        .strategy = t->strategy,
        .overlap = t->params == NULL && r->job->strategy.overlap,
        .step_gate = t->step_gate,
        .claims = t->claims,
        .computed = t->computed,
    };
    return session_run(&config, t->stats, e);
}

static bool has_finished(void *user, const char *job_uid, int64_t *ret_step)
{
    return job_end_reached(user, job_uid, ret_step);
}

bool trainer_failed(const struct err *e)
{
    return e->code != ERR_NONE && !err_is(e, ERR_STOPPED) && !err_is(e, ERR_DIVERGED);
}

/* After a signal: the chief has time to go on without this member, or to save the state if no other member has it. */
static void trainer_await_saved(const struct trainer *t)
{
    enum { LOOK_MS = 20 };
    int64_t until = clock_ms() + (int64_t)(t->replica->job->limits.stop_grace_seconds * 1000.0);
    collective_terminating(t->collective);
    while (stop_count() < 2 && clock_ms() < until && !collective_may_leave(t->collective, clock_ms()))
        clock_sleep_ms(LOOK_MS);
}

int trainer_run(const struct trainer *t, struct err *e)
{
    const struct replica *r = t->replica;
    char arithmetic[ARITHMETIC_MAX];
    AUTO(chief_client) *m = NULL;
    struct job_end end = { .replica = r };
    struct chief_client_config config = { .coordinator = t->coord,
                                          .identity = registration_of(t, arithmetic),
                                          .ignores_signals = t->claims != NULL, /* a group is completed */
                                          .report = &REPORT_TO_LOG,
                                          .width = metrics_width(r->model),
                                          .max_wait_ms = (int64_t)(r->job->limits.max_wait_seconds * 1000.0),
                                          .has_finished = replica_leads(r) ? NULL : has_finished,
                                          .user = &end };
    arithmetic_describe(arithmetic);
    if (chief_client_start(&config, &m, e) < 0)
        return -1;
    struct err cause = { 0 };
    int result = run_member(t, m, &cause);
    if (result < 0 && err_is(&cause, ERR_STOPPED) && chief_client_finished(m))
        result = 0; /* the job finished while the session waited for another event */
    if (err_is(&cause, ERR_DIVERGED) && chief_client_await_stop(m)) /* the report must reach the chief first */
        err_put(&cause, ERR_DIVERGED, "training diverged; the chief says where, and what helps");
    if (t->collective != NULL && result < 0 && err_is(&cause, ERR_STOPPED) && stop_count() > 0 && !replica_leads(r))
        trainer_await_saved(t);
    if (t->collective != NULL)
        log_info("batches computed by this worker: %lld", (long long)atomic_load(&t->stats->steps));
    chief_client_leave(m, result == 0 ? "finished" : cause.msg);
    if (result < 0 && e != NULL)
        *e = cause;
    return result;
}
