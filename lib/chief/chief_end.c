/* The end of a job: the state is saved, then evaluated while the chief keeps polling the ps, then the job is marked
 * finished. If a ps is restored meanwhile, the end begins again. After a storage failure the chief retries. */
#include "base/clock.h"
#include "base/file.h"
#include "base/stop.h"
#include "chief/chief_internal.h"
#include "chief/output_dir.h"
#include "nn/weights_hash.h"

enum { LEAVE_MS = 5000, LINGER_MS = 1000, POLL_MS = 10, EXPLAIN_FIRST_MS = 1000 };

/* Blocks until a member leaves or reports, for POLL_MS at most; members that stopped answering expire. */
static void await_members(struct chief *c, struct coordinator_view *coord)
{
    coordinator_wait(c->coordinator, clock_ms() + POLL_MS);
    coordinator_tick(c->coordinator, clock_ms());
    coordinator_view(c->coordinator, coord);
}

void chief_await_leave(struct chief *c, int64_t at_most_ms)
{
    int64_t deadline = clock_ms() + at_most_ms;
    struct coordinator_view coord;
    coordinator_view(c->coordinator, &coord);
    while (coord.members > 0 && clock_ms() < deadline)
        await_members(c, &coord);
}

static bool is_awaited(const struct coordinator_view *coord, int64_t step)
{
    return coord->members > coord->workers && coord->evaluated_step != step;
}

/* An evaluator has evaluationGraceSeconds to report the last checkpoint, also when it is still busy with an earlier
 * one. It is not waited for any longer once it has left or stopped answering. */
static void await_evaluation(struct chief *c)
{
    int64_t step = c->saved_step;
    int64_t deadline = clock_ms() + (int64_t)(c->config.job->limits.evaluation_grace_seconds * 1000.0);
    struct coordinator_view coord;
    coordinator_view(c->coordinator, &coord);
    if (!is_awaited(&coord, step))
        return;
    report_info(c->config.report, "waiting for the evaluator's result of step %lld", (long long)step);
    while (is_awaited(&coord, step) && clock_ms() < deadline && stop_count() == 0)
        await_members(c, &coord);
    if (coord.evaluated_step == step)
        report_info(c->config.report, "the evaluator has reported step %lld", (long long)step);
    else
        report_warning(c->config.report, "the evaluator did not report step %lld", (long long)step);
}

void chief_end_again(struct chief *c)
{
    c->ending = c->end_saved = false;
    c->final_step = -1;
    if (c->evaluation.running && c->evaluation.final)
        atomic_store(&c->evaluation.cancelled, true);
}

static void begin_end(struct chief *c)
{
    struct coordinator_view coord;
    if (c->ending)
        return;
    c->ending = true;
    coordinator_view(c->coordinator, &coord);
    reporter_state(c->reporter, "finishing", "");
    reporter_shares(c->reporter, &coord, c->apply_ns, (double)(c->done_ms - c->trained_ms) / 1000.0,
                    atomic_load(&c->step) - c->first_step);
}

static int save_final(struct chief *c, struct err *e)
{
    struct coordinator_view coord;
    struct epoch_values none = { 0 };
    if (c->end_saved)
        return 0;
    coordinator_view(c->coordinator, &coord);
    coordinator_set_wait_reason(c->coordinator, "the chief to save the last checkpoint");
    if (chief_record_epochs(c, chief_epochs_over(c, coord.done_low), &none, e) < 0 || chief_save(c, e) < 0)
        return -1;
    c->end_saved = true;
    return 0;
}

/* 1: the values that were saved have been evaluated. */
static int evaluate_final(struct chief *c, struct err *e)
{
    int64_t least, most;
    if (c->final_step >= 0)
        return 1;
    if (c->evaluation.running) {
        char text[COORDINATOR_TEXT_MAX];
        if (c->evaluation.final)
            str_fmt(text, sizeof(text), "the evaluation of the final model");
        else
            str_fmt(text, sizeof(text), "the evaluation of epoch %lld, before that of the final model",
                    (long long)c->evaluation.epoch + 1);
        chief_wait(c, &c->evaluation_wait, EXPLAIN_FIRST_MS, text);
        return 0;
    }
    if (chief_pull(c, &least, &most, e) < 0)
        return -1;
    bool whole = most == chief_epoch_step(c, c->recorded_epochs - 1);
    if (c->evaluator != NULL && chief_evaluation_begin(c, whole ? c->recorded_epochs - 1 : -1, least, true, e) < 0)
        return -1;
    reporter_histograms(c->reporter, least, params_vector(c->config.params));
    if (c->evaluator == NULL)
        c->final_step = least;
    return c->evaluator == NULL;
}

/* Of the values that were pulled at the end, or of an earlier checkpoint that is the job's result. */
static int hash_result(const struct chief *c, struct job_result *end, struct err *e)
{
    const struct model *m = c->config.model;
    if (end->checkpoint == NULL)
        return weights_hash(m, params_vector(c->config.params), end->weights_sha256, e);
    AUTO(checkpoint) *best = NULL;
    auto_free char *prefix = path_join(c->checkpoints, end->checkpoint);
    void *memory;
    if (checkpoint_open(prefix, &best, e) < 0 ||
        mem_alloc(model_size(m) * sizeof(float), "the weights of the result", &memory, e) < 0)
        return -1;
    auto_free float *values = memory;
    return checkpoint_values(best, m, values, e) < 0 ? -1 : weights_hash(m, values, end->weights_sha256, e);
}

static int write_files(struct chief *c, int64_t step, struct err *e)
{
    json_auto_t *model = model_to_json(c->config.model);
    AUTO_FINI(decided) last = { .stopped = -1 };
    size_t metrics = model_metrics(c->config.model) * sizeof(*c->final);
    auto_free double *final = xmemdup(c->final, metrics);
    struct job_result end = { .step = step, .stopped_epoch = -1 };
    chief_callbacks_end(c, &last, final, &end);
    if (hash_result(c, &end, e) < 0 || output_dir_json(c->config.output_dir, "model.json", model, e) < 0 ||
        reporter_finish(c->reporter, &end, c->coordinator, c->evaluator != NULL ? final : NULL, e) < 0)
        return -1;
    if (chief_confirm(c, e) < 0) /* the last checkpoint may be long ago */
        return -1;
    return output_dir_set_finished(c->config.output_dir, c->config.job_uid, &end, e);
}

/* Workers that come now say it, too. */
static void announce_finished(struct chief *c, int64_t step)
{
    char text[64];
    str_fmt(text, sizeof(text), "the job has finished, at step %lld", (long long)step);
    coordinator_set(c->coordinator, JOB_FINISHED, c->generation, text);
}

static void notify_finished(struct chief *c, int64_t step)
{
    reporter_state(c->reporter, "finished", "");
    announce_finished(c, step);
    chief_await_leave(c, LEAVE_MS);
    await_evaluation(c);
    ps_set_finish(c->ps_set, step);
}

static int advance_end(struct chief *c, bool *ret, struct err *e)
{
    begin_end(c);
    if (save_final(c, e) < 0)
        return -1;
    int evaluated = evaluate_final(c, e);
    if (evaluated <= 0)
        return evaluated;
    chief_wait_over(c, &c->evaluation_wait);
    if (write_files(c, c->final_step, e) < 0)
        return -1;
    notify_finished(c, c->final_step);
    *ret = true;
    return 0;
}

int chief_finish(struct chief *c, bool *ret, struct err *e)
{
    struct err cause = { 0 };
    bool finished = false;
    if (clock_ms() >= c->storage_retry_ms) {
        if (advance_end(c, &finished, &cause) == 0)
            chief_wait_over(c, &c->storage_wait);
        else if (!chief_blames_storage(c, &cause))
            return err_set(e, cause.code, "%s", cause.msg);
        else if (chief_await_storage(c, "at the end of the job", &cause, e) < 0)
            return -1;
    }
    *ret = finished;
    return 0;
}

int chief_already_finished(struct chief *c, int64_t step, struct err *e)
{
    char weights[SHA256_TEXT];
    output_dir_weights_sha256(c->config.output_dir, weights);
    report_info(c->config.report, "the job has already finished, at step %lld", (long long)step);
    reporter_finished_before(c->reporter, step, weights);
    struct err cause = { 0 };
    if (chief_take_lead(c, 0, &cause) < 0) /* another chief that started just now does it */
        return err_is(&cause, ERR_FENCED) ? 0 : err_set(e, cause.code, "%s", cause.msg);
    announce_finished(c, step);
    ps_set_fence(c->ps_set, c->generation);
    ps_set_finish(c->ps_set, step);
    int64_t until = clock_ms() + LINGER_MS;
    while (clock_ms() < until) /* so that workers which are just starting are notified, too */
        coordinator_wait(c->coordinator, until);
    chief_await_leave(c, LEAVE_MS);
    return 0;
}
