/* chief_fixture - a chief in a thread of the test, on the ps of ps_fixture.h, and a worker that calls it. */
#ifndef TRAINYARD_CHIEF_CHIEF_FIXTURE_H
#define TRAINYARD_CHIEF_CHIEF_FIXTURE_H

#include "params/ps_fixture.h"

#include "chief/chief_internal.h"
#include "train/session.h"

enum { WAIT_MS = 20000 };

/* A chief as one process of the job has it. */
struct leader {
    struct params *params;
    struct chief *chief;
    struct thread thread;
    int result;
    struct err error;
};

static inline int leader_new(struct leader *l, struct ps_fixture *ps, const char *output, struct err *e)
{
    *l = (struct leader){ .result = -2 };
    l->params = ps_params_as(ps, "chief-0", JOB_UID, (uint64_t)(uintptr_t)l);
    struct chief_config config = { .job = ps->job.job,
                                   .model = ps->job.model,
                                   .layout = ps->job.layout,
                                   .placement = ps->placement,
                                   .train = ps->job.train,
                                   .validation = ps->job.validation,
                                   .space = ps->job.space,
                                   .params = l->params,
                                   .output_dir = output,
                                   .job_uid = JOB_UID,
                                   .incarnation = (uint64_t)(uintptr_t)l,
                                   .workers_wanted = 1 };
    return chief_new(&config, &l->chief, e);
}

static inline void leader_open(struct leader *l, struct ps_fixture *ps, const char *output)
{
    struct err e = { 0 };
    ck_ok_e(leader_new(l, ps, output, &e));
}

static inline void leader_close(struct leader *l)
{
    thread_join(&l->thread);
    chief_free(l->chief);
    params_free(l->params);
}

/* As in a process: its end is that of the worker in it, which would wait for a lease that is never granted. */
static inline void leader_thread(void *user)
{
    struct leader *l = user;
    l->result = chief_run(l->chief, &l->error);
    if (l->result < 0)
        coordinator_set(chief_coordinator(l->chief), JOB_STOPPING, 0, l->error.msg);
}

static inline void lead(struct leader *l)
{
    struct err e = { 0 };
    ck_ok_e(thread_start(&l->thread, "chief", leader_thread, l, &e));
}

/* A worker of the same process, connected to one chief. */
struct worker {
    struct ps_fixture *ps;
    struct leader *leader;
    struct thread thread;
    int result;
    struct err error;
    struct session_stats stats;
};

static inline void worker_thread(void *user)
{
    struct worker *w = user;
    const struct job_fixture *j = &w->ps->job;
    AUTO(coordinator_client) *coord = coordinator_client_new_local(chief_coordinator(w->leader->chief));
    AUTO(params) *params = ps_params(w->ps, "worker-0", JOB_UID);
    AUTO(chief_client) *m = NULL;
    struct chief_client_config config = {
        .coordinator = coord,
        .width = metrics_width(j->model),
        .max_wait_ms = WAIT_MS,
        .identity = { .sender = { .job_uid = JOB_UID, .name = "worker-0", .role = ROLE_WORKER, .incarnation = 11 },
                      .space = j->space,
                      .shuffle_version = SHUFFLE_VERSION,
                      .layout_hash = layout_register_hash(j->layout, j->model),
                      .ps_count = PS_COUNT,
                      .placement_hash = placement_hash(w->ps->placement) }
    };
    if (chief_client_start(&config, &m, &w->error) < 0)
        return;
    struct session_config session = { .model = j->model,
                                      .dataset = j->train,
                                      .space = &j->space,
                                      .params = params,
                                      .chief = m,
                                      .max_wait_ms = WAIT_MS,
                                      .overlap = true };
    w->result = session_run(&session, &w->stats, &w->error);
    chief_client_leave(m, "done");
}

static inline void work(struct worker *w, struct ps_fixture *ps, struct leader *l)
{
    struct err e = { 0 };
    *w = (struct worker){ .ps = ps, .leader = l, .result = -2 };
    ck_ok_e(thread_start(&w->thread, "worker", worker_thread, w, &e));
}

static inline void join(struct worker *w, struct leader *l)
{
    thread_join(&w->thread);
    if (w->result < 0 && err_is(&w->error, ERR_STOPPED)) /* by the chief */
        thread_join(&l->thread);
    ck_assert_msg(w->result == 0, "worker: %d %s; chief: %d %s", w->result, w->error.msg, l->result,
                  l->error.msg); /* the chief would wait for the other trainers */
    thread_join(&l->thread);
}

#endif
