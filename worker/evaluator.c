/* The role evaluator: polls the checkpoints of the job, evaluates each new one, and reports the result to the chief.
 * A damaged checkpoint is skipped. */
#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/thread.h"
#include "chief/checkpoint.h"
#include "chief/output_dir.h"
#include "coord/coordinator_client.h"
#include "http_pages.h"
#include "job_end.h"
#include "roles.h"
#include "tfio/checkpoint_state.h"
#include "train/evaluate.h"
#include "trainer.h"

enum { POLL_MS = 1000, CALL_MS = 5000, LEAVE_MS = 1000 };

struct evaluator_role {
    struct replica *replica;
    struct coordinator_client *coord;
    struct evaluator *evaluator;
    char *checkpoints;
    float *vector;
    double *values;
    const char **names;
    int64_t step; /* of the last evaluation, -1: none */
    char *seen;   /* name of the newest checkpoint that was read, or NULL */
    bool registered;
    enum job_state state;
    struct mutex lock;
    struct cond changed;
    bool evaluating; /* under the lock */
};

static void evaluator_role_fini(struct evaluator_role *w)
{
    cond_fini(&w->changed);
    mutex_fini(&w->lock);
    evaluator_free(w->evaluator);
    coordinator_client_free(w->coord);
    free(w->checkpoints);
    free(w->seen);
    free(w->vector);
    free(w->values);
    free(w->names);
}
DEFINE_AUTO_FINI(evaluator_role, evaluator_role_fini);

static int evaluator_role_init(struct evaluator_role *w, struct err *e)
{
    struct replica *r = w->replica;
    void *memory;
    mutex_init(&w->lock);
    cond_init(&w->changed);
    if (r->data.validation == NULL)
        return err_set(e, ERR_INPUT, "an evaluator needs data.validation or fit.validationSplit");
    w->coord = replica_coordinator(r);
    w->checkpoints = output_dir_path(r->output_dir, "checkpoints");
    w->values = xcalloc(model_metrics(r->model), sizeof(*w->values));
    w->names = xcalloc(model_metrics(r->model), sizeof(*w->names));
    for (size_t i = 0; i < model_metrics(r->model); i++)
        w->names[i] = model_metric_name(r->model, i);
    w->step = -1;
    if (mem_alloc(model_size(r->model) * sizeof(float), "parameters", &memory, e) < 0)
        return -1;
    w->vector = memory;
    return evaluator_new(r->model, r->data.validation, r->job->fit.validation_batch_size, &w->evaluator, e);
}

static struct coordinator_sender sender_of(const struct replica *r)
{
    return (struct coordinator_sender){
        .job_uid = r->job_uid, .name = r->name, .role = ROLE_EVALUATOR, .incarnation = r->incarnation
    };
}

static int call_chief(struct evaluator_role *w, struct coordinator_reply *ret, struct err *e)
{
    const struct replica *r = w->replica;
    if (w->registered)
        return coordinator_client_heartbeat(w->coord, &(struct heartbeat_request){ .sender = sender_of(r) }, CALL_MS,
                                            ret, e);
    return coordinator_client_register(
        w->coord,
        &(struct register_request){ .sender = sender_of(r), .layout_hash = layout_register_hash(r->layout, r->model) },
        CALL_MS, ret, e);
}

/* Registers, or sends a heartbeat. A chief that does not answer is called again later. */
static int register_or_renew(struct evaluator_role *w, struct err *e)
{
    struct coordinator_reply reply;
    struct err cause = { 0 };
    if (call_chief(w, &reply, &cause) < 0) {
        w->registered = false;
        return err_is(&cause, ERR_REFUSED) || err_is(&cause, ERR_FENCED) ? err_set(e, cause.code, "%s", cause.msg) : 0;
    }
    if (!w->registered && w->replica->job_uid[0] == 0) {
        free(w->replica->job_uid);
        w->replica->job_uid = xstrdup(reply.job_uid);
    }
    if (!w->registered)
        http_pages_ready(w->replica->pages); /* from now on the chief waits for its results */
    w->registered = true;
    w->state = reply.state;
    return 0;
}

static void report_evaluation(struct evaluator_role *w, bool announce, int64_t step)
{
    struct evaluation_request q = { .sender = sender_of(w->replica), .step = step, .announce = announce };
    struct coordinator_reply reply;
    struct err e = { 0 };
    if (!announce) {
        q.names = w->names;
        q.values = w->values;
        q.nvalues = model_metrics(w->replica->model);
    }
    if (coordinator_client_report_evaluation(w->coord, &q, CALL_MS, &reply, &e) < 0)
        log_debug("%s", e.msg);
}

static void leave_job(struct evaluator_role *w)
{
    struct leave_request q = { .sender = sender_of(w->replica),
                               .reason = w->state == JOB_FINISHED ? "finished" : "stopped" };
    struct coordinator_reply reply;
    struct err e = { 0 };
    if (w->registered && coordinator_client_leave(w->coord, &q, LEAVE_MS, &reply, &e) < 0)
        log_debug("%s", e.msg);
}

static bool stop_requested(void *user)
{
    (void)user;
    return stop_count() > 0;
}

static void log_result(const struct evaluator_role *w, int64_t step)
{
    struct log_field f[16];
    int n = 0;
    f[n++] = (struct log_field)LOG_INT("step", step);
    for (size_t i = 0; i < model_metrics(w->replica->model) && n < (int)COUNT_OF(f); i++)
        f[n++] = (struct log_field)LOG_NUM(w->names[i], w->values[i]);
    log_fields(LOG_INFO, "evaluated", n, f);
}

/* Runs while the other thread evaluates, because that may take longer than the chief waits for a heartbeat. */
static void heartbeat_thread(void *user)
{
    struct evaluator_role *w = user;
    for (;;) {
        struct err e = { 0 };
        {
            MUTEX_GUARD(&w->lock);
            int64_t next = clock_ms() + POLL_MS;
            while (w->evaluating && cond_wait_until(&w->changed, &w->lock, next))
                continue;
            if (!w->evaluating)
                return;
        }
        if (register_or_renew(w, &e) < 0) {
            log_debug("%s", e.msg); /* the main thread gets the same answer after the evaluation */
            return;
        }
    }
}

static int evaluate_checkpoint(struct evaluator_role *w, const struct checkpoint *c, struct err *e)
{
    if (checkpoint_values(c, w->replica->model, w->vector, e) < 0)
        return -1;
    return evaluator_run(w->evaluator, w->vector, stop_requested, NULL, w->values, e);
}

static int evaluate_with_heartbeat(struct evaluator_role *w, const struct checkpoint *c, struct err *e)
{
    struct thread heartbeat = { .started = false };
    w->evaluating = true;
    if (thread_start(&heartbeat, "heartbeat", heartbeat_thread, w, e) < 0)
        return -1;
    int result = evaluate_checkpoint(w, c, e);
    {
        MUTEX_GUARD(&w->lock);
        w->evaluating = false;
        cond_broadcast(&w->changed);
    }
    thread_join(&heartbeat);
    return result;
}

/* The newest complete checkpoint. Why it is not the one that should be is logged, once. */
static int open_whole(const struct evaluator_role *w, struct checkpoint **ret, struct err *e)
{
    auto_free char *warning = NULL;
    *ret = NULL;
    if (checkpoint_open_whole(w->checkpoints, ret, &warning, e) < 0 && !err_is(e, ERR_INPUT))
        return -1;
    if (*ret == NULL) {
        log_warning("%s", e->msg);
        return 0;
    }
    if (warning != NULL)
        log_warning("%s", warning);
    return 0;
}

/* *ret NULL: no checkpoint is new, or none is complete. A file may be deleted while it is read: the next poll finds
 * another one. */
static int open_newest(struct evaluator_role *w, struct checkpoint **ret, struct err *e)
{
    AUTO_FINI(strlist) all = { 0 };
    auto_free char *latest = NULL;
    *ret = NULL;
    if (checkpoint_state_read(w->checkpoints, &all, &latest, e) < 0)
        return -1;
    if (str_eq(w->seen, latest))
        return 0;
    if (open_whole(w, ret, e) < 0)
        return -1;
    free(w->seen);
    w->seen = TAKE(latest);
    return 0;
}

static int evaluate_newest(struct evaluator_role *w, struct err *e)
{
    AUTO(checkpoint) *c = NULL;
    struct err cause = { 0 };
    if (open_newest(w, &c, &cause) < 0) {
        log_debug("%s", cause.msg);
        return 0;
    }
    if (c == NULL || checkpoint_step(c) == w->step)
        return 0;
    int64_t step = checkpoint_step(c);
    report_evaluation(w, true, step);
    if (evaluate_with_heartbeat(w, c, e) < 0 || register_or_renew(w, e) < 0)
        return -1;
    w->step = step;
    log_result(w, step);
    report_evaluation(w, false, step);
    return 0;
}

int run_evaluator(struct replica *r, struct err *e)
{
    AUTO_FINI(evaluator_role) w = { .replica = r };
    struct job_end end = { .replica = r };
    if (evaluator_role_init(&w, e) < 0)
        return -1;
    http_pages_set_wait_reason(r->pages, "waiting for the chief");
    while (stop_count() == 0) {
        if (register_or_renew(&w, e) < 0)
            return -1;
        int64_t step; /* also when the last answer of the chief was lost */
        bool ended = job_end_reached(&end, r->job_uid, &step);
        bool finished = w.state == JOB_FINISHED || ended;
        if (evaluate_newest(&w, e) < 0)
            return -1;
        if (finished) {
            if (ended && !w.registered)
                log_info("the job has finished, at step %lld", (long long)step);
            leave_job(&w);
            return 0;
        }
        clock_sleep_ms(POLL_MS);
    }
    leave_job(&w);
    return err_set(e, ERR_STOPPED, "stopped by a signal");
}
