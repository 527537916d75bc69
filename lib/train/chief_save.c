#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "train/checkpoint_state.h"
#include "train/chief_internal.h"
#include "train/output.h"

enum { LOOK_MS = 2000, PULL_MS = 60000, REPORTS_MS = 1000, LEAVE_MS = 5000, LINGER_MS = 1000, POLL_MS = 10 };

/* ---- checkpoints ---- */

static int snapshot(void *user, uint32_t segment, struct shard_snapshot *ret, struct err *e)
{
    struct chief *c = user;
    return fleet_snapshot(c->fleet, segment, ret, e);
}

/* Nobody newer may be in charge when files are published: neither the ps nor the volume name another chief. */
static int confirm_generation(struct chief *c, const struct fleet_view *view, struct err *e)
{
    return chief_confirm_fleet(c, view, e) < 0 ? -1 : chief_confirm_file(c, view->condition != FLEET_AWAY, e);
}

static int confirm(void *user, struct err *e)
{
    struct chief *c = user;
    AUTO_FINI(fleet_view) view = { 0 };
    fleet_look(c->fleet, LOOK_MS, &view);
    if (confirm_generation(c, &view, e) < 0)
        return -1;
    return view.condition == FLEET_AWAY ? err_set(e, ERR_LOST, "%s", view.message) : 0;
}

static void state_add_tally(void *user, struct tally *t)
{
    json_object_set_new(user, "tally", tally_to_json(t));
}

/* After the segments: a batch they hold was mostly reported by then, and one reported too early is counted once. */
static void complete(void *user, json_t *state)
{
    struct chief *c = user;
    coordinator_tally(c->desk, state_add_tally, state);
}

static int save_gated(struct chief *c, const struct checkpoint_save *save, char **ret_prefix, struct err *e)
{
    if (c->config.step_gate == NULL)
        return checkpoint_save(save, ret_prefix, e);
    MUTEX_GUARD(c->config.step_gate);
    return checkpoint_save(save, ret_prefix, e);
}

int chief_save(struct chief *c, int64_t step, struct err *e)
{
    struct coordinator_view desk;
    coordinator_view(c->desk, &desk);
    json_auto_t *state = state_new(&c->config.space, c->config.layout, c->config.job_uid, c->generation);
    json_object_set_new(state, "recordedEpochs", json_integer(c->recorded_epochs));
    json_object_set_new(state, "history", recorder_to_json(c->recorder));
    auto_free char *prefix = NULL;
    int64_t begun = clock_ms();
    struct checkpoint_save save = { .dir = c->checkpoints, .step = step, .keep = c->config.job->checkpoint.keep,
                                    .keep_step = desk.evaluating_step, .model = c->config.model, .layout = c->config.layout,
                                    .snapshot = snapshot, .complete = complete, .confirm = confirm, .user = c, .state = state };
    if (save_gated(c, &save, &prefix, e) < 0)
        return -1;
    c->saved_step = step;
    c->saved_ms = clock_ms();
    atomic_store(&c->checkpoint_step, step);
    recorder_checkpoint(c->recorder, step, prefix);
    log_debug("checkpoint %s saved in %lld ms", prefix, (long long)(c->saved_ms - begun));
    return 0;
}

/* A checkpoint in the middle of training that fails costs a warning; the next one is tried on time. */
bool chief_save_or_warn(struct chief *c, int64_t step)
{
    struct err e = { 0 };
    if (chief_save(c, step, &e) == 0)
        return true;
    log_warning("checkpoint of step %lld was not saved, will try again: %s", (long long)step, e.msg);
    c->saved_ms = clock_ms();
    return false;
}

/* ---- evaluation ---- */

static bool stop_asked(void *user)
{
    (void)user;
    return stop_count() > 0;
}

/* Of the values pulled last: training goes on meanwhile. */
static int evaluate(struct chief *c, int64_t step, struct err *e)
{
    const float *vector = params_vector(c->config.params);
    recorder_histograms(c->recorder, step, vector);
    if (c->evaluator == NULL)
        return 0;
    if (evaluator_run(c->evaluator, vector, stop_asked, NULL, c->final, e) < 0)
        return -1;
    c->has_final = true;
    c->final_step = step;
    return 0;
}

struct reports {
    int64_t epoch, batches;
    double *metrics;
};

static void count_reports(void *user, struct tally *t)
{
    struct reports *r = user;
    r->batches = tally_epoch(t, r->epoch, r->metrics);
}

static void count_reported(void *user, struct tally *t)
{
    *(int64_t *)user = tally_reported(t);
}

/* Before the last checkpoint: so that the metrics of the batches it holds are in it. Workers that left have reported. */
void chief_await_reports(struct chief *c, int64_t batches)
{
    int64_t deadline = clock_ms() + REPORTS_MS, reported = 0;
    struct coordinator_view desk;
    for (;; coordinator_wait(c->desk, clock_ms() + POLL_MS)) {
        coordinator_tally(c->desk, count_reported, &reported);
        coordinator_view(c->desk, &desk);
        if (reported >= batches || desk.members == 0 || clock_ms() >= deadline)
            return;
    }
}

/* The workers' last reports of an epoch may still be on their way. */
static void await_reports(struct chief *c, int64_t epoch, int64_t deadline)
{
    auto_free double *metrics = xcalloc(model_metrics(c->config.model), sizeof *metrics);
    struct reports r = { .epoch = epoch, .metrics = metrics };
    int64_t end = MIN((epoch + 1) * c->batches_per_epoch, c->total), wanted = end - epoch * c->batches_per_epoch;
    for (;; coordinator_wait(c->desk, clock_ms() + POLL_MS)) {
        coordinator_tally(c->desk, count_reports, &r);
        if (r.batches >= wanted || clock_ms() >= deadline)
            return;
    }
}

static int64_t chief_epochs_begun(const struct chief *c, int64_t ordinals)
{
    return (ordinals + c->batches_per_epoch - 1) / c->batches_per_epoch;
}

int64_t chief_epochs_over(const struct chief *c, int64_t done_low)
{
    return done_low >= c->total ? chief_epochs_begun(c, c->total) : done_low / c->batches_per_epoch;
}

int chief_pull(struct chief *c, struct err *e)
{
    return params_pull(c->config.params, PULL_MS, e);
}

int chief_end_epochs(struct chief *c, int64_t over, int64_t step, struct err *e)
{
    int64_t deadline = clock_ms() + REPORTS_MS; /* for all of them: those that an earlier chief saw end may be many */
    while (c->recorded_epochs < over) {
        int64_t epoch = c->recorded_epochs;
        bool last = epoch + 1 == over;
        await_reports(c, epoch, deadline);
        if (last && evaluate(c, step, e) < 0)
            return err_wrap(e, "evaluation after epoch %lld", (long long)epoch + 1);
        recorder_epoch(c->recorder, epoch, step, c->desk, last && c->has_final ? c->final : NULL);
        c->recorded_epochs = epoch + 1;
    }
    return 0;
}

/* ---- the end ---- */

void chief_await_leave(struct chief *c, int64_t at_most_ms)
{
    int64_t deadline = clock_ms() + at_most_ms;
    struct coordinator_view desk;
    for (coordinator_view(c->desk, &desk); desk.members > 0 && clock_ms() < deadline; coordinator_view(c->desk, &desk)) {
        coordinator_wait(c->desk, clock_ms() + POLL_MS);
        coordinator_tick(c->desk, clock_ms());
    }
}

/* An evaluator that announced itself at the last checkpoint has its grace to report. */
static void await_evaluation(struct chief *c)
{
    int64_t deadline = clock_ms() + (int64_t)(c->config.job->limits.evaluation_grace_seconds * 1000.0);
    struct coordinator_view desk;
    coordinator_view(c->desk, &desk);
    if (desk.evaluating_step >= 0)
        log_info("waiting for the evaluation of step %lld", (long long)desk.evaluating_step);
    for (; desk.evaluating_step >= 0 && desk.members > desk.workers && clock_ms() < deadline && stop_count() == 0;
         coordinator_view(c->desk, &desk)) {
        coordinator_wait(c->desk, clock_ms() + POLL_MS);
        coordinator_tick(c->desk, clock_ms()); /* one that fell silent is not waited for */
    }
}

int chief_finish(struct chief *c, int64_t step, struct err *e)
{
    struct coordinator_view desk;
    recorder_state(c->recorder, "finishing", "");
    coordinator_view(c->desk, &desk);
    recorder_shares(c->recorder, &desk, c->apply_ns, (double)(c->done_ms - c->trained_ms) / 1000.0, step - c->first_step);
    if (c->final_step != step && (chief_pull(c, e) < 0 || evaluate(c, step, e) < 0))
        return -1;
    if (c->saved_step != step && chief_save(c, step, e) < 0)
        return -1;
    json_auto_t *model = model_to_json(c->config.model);
    if (output_json(c->config.output_dir, "model.json", model, e) < 0)
        return -1;
    recorder_finish(c->recorder, step, c->desk, c->has_final ? c->final : NULL);
    AUTO_FINI(fleet_view) view = { 0 };
    fleet_look(c->fleet, LOOK_MS, &view); /* also when the last checkpoint was there already */
    if (confirm_generation(c, &view, e) < 0 || output_set_finished(c->config.output_dir, c->config.job_uid, step, e) < 0)
        return -1;
    recorder_state(c->recorder, "finished", "");
    coordinator_set(c->desk, JOB_FINISHED, c->generation, "the job has finished");
    chief_await_leave(c, LEAVE_MS);
    await_evaluation(c);
    fleet_finish(c->fleet, step);
    return 0;
}

int chief_already_finished(struct chief *c, int64_t step, struct err *e)
{
    log_info("the job finished before, at step %lld", (long long)step);
    recorder_finished_before(c->recorder, step);
    struct err cause = { 0 };
    if (chief_raise_generation(c, 0, &cause) < 0) /* another one that started now tells it */
        return err_is(&cause, ERR_FENCED) ? 0 : err_set(e, cause.code, "%s", cause.msg);
    coordinator_set(c->desk, JOB_FINISHED, c->generation, "the job has finished");
    fleet_fence(c->fleet, c->generation);
    fleet_finish(c->fleet, step);
    int64_t until = clock_ms() + LINGER_MS;
    while (clock_ms() < until) /* workers that are just starting learn it, too */
        coordinator_wait(c->desk, until);
    chief_await_leave(c, LEAVE_MS);
    return 0;
}
