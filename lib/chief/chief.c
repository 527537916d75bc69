/* The loop of the chief: it polls the ps at most once a second, reads which batches they applied, and then decides
 * what is due: checkpoints, epochs, the restore of a ps, the end. Every wait is bounded and reported. */
#include "chief/chief.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "chief/chief_internal.h"
#include "chief/output_dir.h"
#include "collective/params_members.h"
#include "params/params_admin.h"

enum {
    POLL_MAX_MS = 1000, /* at most; POLL_PS_MS per ps, so that few ps are polled more often */
    POLL_PS_MS = 250,
    POLL_FIRST_MS = 50, /* the first polls are frequent, so that the first lines appear soon */
    POLL_CALL_MS = 2000,
    LEASE_MS = 10000,
    HEARTBEAT_MS = 1000,
    SYNC_HEARTBEAT_MS = 150, /* all workers wait for one that is gone */
    SYNC_SILENCE_MS = 600,   /* the threads of one process are gone together, or not at all */
    SYNC_POLL_MS = 50,
    FAILED_LINGER_MS = 2000, /* so that workers are notified why the job failed */
};

struct coordinator *chief_coordinator(struct chief *c)
{
    return c->coordinator;
}

static void open_coordinator(struct chief *c)
{
    const struct chief_config *k = &c->config;
    int64_t window = k->job->summaries.every_seconds > 0 ? 0 : k->job->summaries.every_steps * c->groups.size;
    bool sync = chief_synchronous(c);
    c->coordinator =
        coordinator_new(&(struct coordinator_config){ .model = k->model,
                                                      .job_uid = k->job_uid,
                                                      .incarnation = k->incarnation,
                                                      .space = k->space,
                                                      .layout_hash = layout_register_hash(k->layout, k->model),
                                                      .ps_count = (uint32_t)k->placement->nps,
                                                      .placement_hash = placement_hash(k->placement),
                                                      .batches_per_epoch = c->batches_per_epoch,
                                                      .total = c->total,
                                                      .window = window,
                                                      .lease_ms = LEASE_MS,
                                                      .heartbeat_ms = sync ? SYNC_HEARTBEAT_MS : HEARTBEAT_MS,
                                                      .silence_ms = k->local ? UINT32_MAX : SYNC_SILENCE_MS,
                                                      .views = k->members,
                                                      .one_arithmetic = chief_deterministic(c),
                                                      .groups = sync ? c->groups : (struct groups){ 0 },
                                                      .sharers = k->local ? job_towers(k->job) : 0,
                                                      .members_max = k->members_max });
}

static int reporter_open(struct chief *c, const struct checkpoint *ck, struct err *e)
{
    struct reporter_config config = { .job = c->config.job,
                                      .model = c->config.model,
                                      .output_dir = c->config.output_dir,
                                      .job_uid = c->config.job_uid,
                                      .batches_per_epoch = c->batches_per_epoch,
                                      .total = c->total,
                                      .space = c->config.space,
                                      .groups = c->groups,
                                      .step_offset = c->step_offset,
                                      .workers_wanted = c->config.workers_wanted,
                                      .rates = &c->decisions.now.rates,
                                      .report = c->config.report };
    return reporter_new(&config, ck != NULL ? checkpoint_step(ck) : -1, &c->reporter, e);
}

/* The folders and the event files. */
static int open_output(struct chief *c, const struct checkpoint *ck, struct err *e)
{
    struct err cause = { 0 };
    while (output_dir_prepare(c->config.output_dir, c->config.job->summaries.directory, &cause) < 0 ||
           reporter_open(c, ck, &cause) < 0)
        if (chief_await_space(c, &cause, e) < 0)
            return -1;
    chief_wait_over(c, &c->storage_wait);
    return 0;
}

/* The coordinator knows the workers, and params calls them and decides which of them train. */
static size_t list_members(void *user, struct known_member **ret)
{
    const struct chief *c = user;
    return coordinator_workers(c->coordinator, clock_ms(), ret);
}

static void note_view(void *user, const struct view *v)
{
    const struct chief *c = user;
    coordinator_set_view(c->coordinator, v);
}

int chief_new(const struct chief_config *config, struct chief **ret, struct err *e)
{
    AUTO(chief) *c = xcalloc(1, sizeof(*c));
    AUTO(checkpoint) *ck = NULL;
    struct rebase rebase = { 0 };
    c->config = *config;
    c->checkpoints = output_dir_path(config->output_dir, "checkpoints");
    c->batches_per_epoch = ordinal_space_batches(&config->space);
    c->saved_step = c->final_step = -1;
    atomic_store(&c->checkpoint_step, -1);
    c->final = xcalloc(model_metrics(config->model), sizeof(*c->final));
    c->evaluation.values = xcalloc(model_metrics(config->model), sizeof(*c->evaluation.values));
    /* refused before this run makes its first file */
    if (output_dir_check_access(config->output_dir, e) < 0 || chief_find_checkpoint(c, true, &ck, e) < 0 ||
        chief_judge_rerun(c, ck, &rebase, e) < 0)
        return -1;
    c->ps_set = ps_set_new(config->params, config->layout, config->placement, model_optimizer(config->model),
                           config->job_uid, config->report);
    if (chief_synchronous(c)) {
        params_set_groups(config->params, &c->groups);
        report_info(config->report, "synchronous training: %lld batches of %lld examples make a step",
                    (long long)c->groups.size, (long long)config->space.batch_size);
    }
    open_coordinator(c);
    if (config->members)
        params_members_source(config->params, list_members, note_view, c);
    if (chief_callbacks_open(c, e) < 0)
        return -1;
    if (open_output(c, ck, e) < 0 || (ck != NULL && chief_resume_from(c, ck, &rebase, e) < 0))
        return -1;
    if (config->validation != NULL &&
        evaluator_new(config->model, config->validation, config->job->fit.validation_batch_size, &c->evaluator, e) < 0)
        return -1;
    *ret = TAKE(c);
    return 0;
}

void chief_free(struct chief *c)
{
    if (c == NULL)
        return;
    chief_evaluation_stop(c);
    chief_callbacks_fini(c);
    evaluator_free(c->evaluator);
    reporter_free(c->reporter);
    coordinator_free(c->coordinator);
    ps_set_free(c->ps_set);
    free(c->checkpoints);
    free(c->saved_name);
    free(c->final);
    free(c->evaluation.values);
    free(c);
}

/* ---- what the loop decides ---- */

static bool checkpoint_due(const struct chief *c, int64_t step, int64_t now_ms)
{
    int64_t every = c->config.job->checkpoint.every_steps;
    if (c->saved_step < 0)
        return true;
    if (step == c->saved_step)
        return false;
    if (every > 0)
        return step / every > c->saved_step / every;
    double seconds = c->config.job->checkpoint.every_seconds;
    return seconds > 0 && (double)(now_ms - c->saved_ms) >= seconds * 1000.0;
}

static int check_coordinator(const struct chief *c, const struct coordinator_view *coord, struct err *e)
{
    if (coord->diverged && coord->diverged_what[0] != '\0')
        return err_set(e, ERR_DIVERGED, "training diverged: %s reports %s for batch %lld (epoch %lld); %s",
                       coord->diverged_by, coord->diverged_what, (long long)coord->diverged_ordinal,
                       (long long)(coord->diverged_ordinal / c->batches_per_epoch) + 1, chief_divergence_cure(c));
    if (coord->diverged)
        return err_set(e, ERR_DIVERGED,
                       "training diverged: %s got a loss or gradient that is not finite at batch %lld (epoch %lld); %s",
                       coord->diverged_by, (long long)coord->diverged_ordinal,
                       (long long)(coord->diverged_ordinal / c->batches_per_epoch) + 1, chief_divergence_cure(c));
    if (coord->poisoned >= 0) {
        int64_t position = coord->poisoned % c->batches_per_epoch * c->config.space.batch_size;
        return err_set(
            e, ERR_INPUT, "batch %lld of data.train (epoch %lld, shuffled positions %lld to %lld) crashed %d workers",
            (long long)coord->poisoned, (long long)(coord->poisoned / c->batches_per_epoch) + 1, (long long)position,
            (long long)MIN(position + c->config.space.batch_size, c->config.space.examples) - 1, LEDGER_DEATHS_MAX);
    }
    if (c->superseded.code != ERR_NONE) /* seen when a checkpoint was due */
        return err_set(e, c->superseded.code, "%s", c->superseded.msg);
    return 0;
}

/* A worker reports a newer generation. That alone does not end this chief: the generation file decides. */
static int check_reported_generation(struct chief *c, const struct coordinator_view *coord, struct err *e)
{
    struct err cause = { 0 };
    if (coord->highest_generation <= c->generation || chief_confirm_file(c, false, &cause) == 0 ||
        !err_is(&cause, ERR_FENCED))
        return 0;
    return err_set(e, cause.code, "%s", cause.msg);
}

/* ---- what the loop does ---- */

/* Saves with every push fenced, so that nothing is trained that the checkpoint does not hold. Workers keep running: a
 * rescheduled chief comes back. To stop everything, stop the workers too. */
static int stop_and_save(struct chief *c, struct err *e)
{
    AUTO_FINI(ps_set_view) ps_set = { 0 };
    struct err cause = { 0 };
    reporter_state(c->reporter, "stopping", "saving a checkpoint");
    if (chief_synchronous(c))
        chief_settle_step(c);
    coordinator_set(c->coordinator, c->config.local ? JOB_STOPPING : JOB_STARTING, c->generation,
                    "the chief to come back: it saves a checkpoint and stops");
    if (!chief_exact(c) && chief_raise_generation(c, 0, &cause) == 0)
        ps_set_fence(c->ps_set, c->generation);
    ps_set_poll(c->ps_set, POLL_CALL_MS, &ps_set);
    chief_await_reports(c, ordinal_set_count(&ps_set.done));
    int saved = chief_synchronous(c) && chief_find_step(c, &cause) < 0 ? -1 : chief_save_step(c, &cause);
    chief_evaluation_stop(c);
    struct err ignored;
    (void)!reporter_save_history(c->reporter, clock_ms(), true, &ignored);
    if (saved < 0)
        return err_set(e, chief_blames_storage(c, &cause) ? ERR_IO : cause.code,
                       "stopped by a signal, and the last checkpoint was not saved: %s", cause.msg);
    report_info(c->config.report, "checkpoint of step %lld saved", (long long)c->saved_step);
    return err_set(e, ERR_STOPPED, "stopped by a signal");
}

/* A ps is gone: reports it and waits, for maxWaitSeconds at most. */
static int wait_for_ps_set(struct chief *c, const struct ps_set_view *ps_set, struct err *e)
{
    int64_t now = clock_ms();
    wait_begin(&c->ps_wait, now, 0);
    if ((double)wait_ms(&c->ps_wait, now) > c->config.job->limits.max_wait_seconds * 1000.0)
        return err_set(e, ERR_LOST, "%s", ps_set->message);
    reporter_waits(c->reporter, c->ps_wait.since_ms, ps_set->message);
    wait_report(&c->ps_wait, now, c->config.report, ps_set->message);
    return 0;
}

static void end_ps_wait(struct chief *c)
{
    int64_t waited_ms;
    if (!wait_end(&c->ps_wait, clock_ms(), &waited_ms))
        return;
    report_info(c->config.report, "%s again after %.1f s", c->config.members ? "workers train" : "all ps answer",
                (double)waited_ms / 1000.0);
    reporter_state(c->reporter, "training", "");
}

/* No worker trains: none was started, or all have left. */
static void report_no_workers(struct chief *c, const struct coordinator_view *coord, int64_t now_ms)
{
    if (coord->workers > 0 || coord->done_low >= c->limit || coord->finished) {
        wait_end(&c->worker_wait, now_ms, NULL);
        return;
    }
    wait_begin(&c->worker_wait, now_ms, WAIT_EXPLAIN_MS);
    if (wait_due(&c->worker_wait, now_ms))
        report_info(c->config.report, "no worker connected for %lld s; waiting",
                    (long long)wait_ms(&c->worker_wait, now_ms) / 1000);
}

/* A ps was lost during a call, or a signal came: the next poll, or the loop, handles it. */
static int ignore_transient(int result, const struct err *e)
{
    return result < 0 && (chief_worth_waiting(e) || err_is(e, ERR_STOPPED)) ? 0 : result;
}

static int save_if_due(struct chief *c, const struct ps_set_view *ps_set, int64_t now_ms, struct err *e)
{
    bool leaving = ps_set->condition == PS_SET_TERMINATING;
    c->saved_terminating = c->saved_terminating && leaving;
    if (c->saved_step < 0)
        return ignore_transient(chief_save_first(c, e), e);
    if ((!leaving || c->saved_terminating) && !checkpoint_due(c, ps_set->step, now_ms))
        return 0;
    bool saved;
    if (chief_save_or_warn(c, &saved, e) < 0)
        return -1;
    c->saved_terminating = saved && leaving;
    return 0;
}

static void extend_limit(struct chief *c, int64_t over, int64_t done_low)
{
    if (c->stop_told) /* the limit is where the job stops */
        return;
    c->limit = chief_next_limit(c, over, done_low);
    coordinator_allow_below(c->coordinator, c->limit);
}

/* A decision saves a checkpoint soon; before it one is due only for a ps that terminates, or if there is none yet. */
static bool decision_saves_soon(const struct chief *c, const struct ps_set_view *ps_set)
{
    return c->decision_wait.on && c->saved_step >= 0 && ps_set->condition != PS_SET_TERMINATING;
}

/* What the workers wait for comes first, then what runs beside the training. On a single machine a checkpoint that is
 * due falls between two steps. */
static int pass_epochs(struct chief *c, const struct ps_set_view *ps_set, const struct coordinator_view *coord,
                       int64_t now_ms, struct err *e)
{
    struct epoch_values values;
    int64_t over = chief_epochs_over(c, coord->done_low);
    int taken = chief_take_values(c, over, &values, e);
    if (taken < 0)
        return ignore_transient(-1, e);
    if (taken > 0 && !chief_exact(c))
        extend_limit(c, over, coord->done_low);
    if (taken > 0 && chief_record_epochs(c, over, &values, e) < 0)
        return -1;
    int decided = taken > 0 ? chief_decide(c, e) : 0;
    if (decided < 0)
        return ignore_transient(-1, e);
    if (!decision_saves_soon(c, ps_set) && save_if_due(c, ps_set, now_ms, e) < 0)
        return -1;
    if (decided > 0)
        extend_limit(c, over, coord->done_low);
    return 0;
}

/* Epochs that the ps do not hold are trained, and recorded, again. */
static int begin_records(struct chief *c, const struct ps_set_view *ps_set, int64_t now_ms, struct err *e)
{
    c->trained_ms = c->done_ms = now_ms;
    c->first_step = ps_set->step;
    c->recorded_epochs = reporter_resume(c->reporter, chief_epochs_over(c, ps_set->done.low), c->coordinator);
    chief_callbacks_begin(c, ps_set->step);
    struct err cause = { 0 };
    while (reporter_begin(c->reporter, c->begin_step >= 0 ? c->begin_step : ps_set->step + 1, &cause) < 0)
        if (chief_await_space(c, &cause, e) < 0)
            return -1;
    chief_wait_over(c, &c->storage_wait);
    return 0;
}

static void update_progress(struct chief *c, const struct ps_set_view *ps_set, const struct coordinator_view *coord,
                            int64_t now_ms)
{
    struct err e = { 0 };
    if (coord->done != atomic_load(&c->done))
        c->done_ms = now_ms;
    c->apply_ns = ps_set->apply_ns;
    atomic_store(&c->step, ps_set->step);
    atomic_store(&c->done, coord->done);
    reporter_poll(c->reporter, ps_set, coord, c->coordinator, now_ms);
    if (reporter_save_history(c->reporter, now_ms, false, &e) < 0)
        log_debug("%s", e.msg);
}

/* A callback has ended training, and every ps has applied all batches until then. */
static bool stop_reached(const struct chief *c, const struct coordinator_view *coord)
{
    return chief_stopped(c) && coord->done_low >= chief_decided_end(c);
}

static int act_on_poll(struct chief *c, const struct ps_set_view *ps_set, struct err *e)
{
    struct coordinator_view coord;
    int64_t now = clock_ms();
    coordinator_observe(c->coordinator, &ps_set->done, ps_set->begun_ms);
    coordinator_tick(c->coordinator, now);
    coordinator_view(c->coordinator, &coord);
    report_no_workers(c, &coord, now);
    if (c->trained_ms == 0 && begin_records(c, ps_set, now, e) < 0)
        return -1;
    update_progress(c, ps_set, &coord, now);
    if (chief_evaluation_take(c, e) < 0)
        return -1;
    if (!coord.finished && !coord.stop_requested && !stop_reached(c, &coord) &&
        pass_epochs(c, ps_set, &coord, now, e) < 0)
        return -1;
    c->polled = true;
    return 0;
}

static int poll_ps_set(struct chief *c, struct err *e)
{
    AUTO_FINI(ps_set_view) ps_set = { 0 };
    c->polled = false;
    ps_set_poll(c->ps_set, POLL_CALL_MS, &ps_set);
    if (chief_confirm_ps_set(c, &ps_set, e) < 0)
        return -1;
    switch (ps_set.condition) {
    case PS_SET_UNREACHABLE:
        return wait_for_ps_set(c, &ps_set, e);
    case PS_SET_NEEDS_RESTORE:
        report_info(c->config.report,
                    c->config.members      ? "%s: going back to the last checkpoint"
                    : chief_synchronous(c) ? "%s: all go back to the last checkpoint"
                                           : "%s: restoring it",
                    ps_set.message);
        end_ps_wait(c);
        return chief_initialise_ps(c, ps_set.highest_generation, e);
    case PS_SET_TERMINATING:
    case PS_SET_READY:
    default:
        end_ps_wait(c);
        return act_on_poll(c, &ps_set, e);
    }
}

/* Ends training that failed. */
static int end_failed(struct chief *c, struct err *e)
{
    if (e->code == ERR_DIVERGED || e->code == ERR_INPUT || e->code == ERR_NO_SPACE) {
        coordinator_set(c->coordinator, JOB_STOPPING, c->generation, e->msg);
        reporter_state(c->reporter, "failed", e->msg);
        struct err ignored;
        const struct job_result end = { .step = atomic_load(&c->step), .stopped_epoch = -1 };
        (void)!reporter_finish(c->reporter, &end, c->coordinator, NULL, &ignored);
        chief_await_leave(c, FAILED_LINGER_MS);
    }
    return -1;
}

/* Workers finish the batches that they have leased. */
static void stop_leasing(struct chief *c, const struct coordinator_view *coord)
{
    report_info(c->config.report, "stop requested by %s", coord->stop_reason);
    c->stop_told = true;
    c->limit = chief_synchronous(c) ? coordinator_hold(c->coordinator) : 0; /* a group that was begun is completed */
    coordinator_allow_below(c->coordinator, c->limit);
    coordinator_set_wait_reason(c->coordinator, "the chief to end the job, as requested");
}

/* Once for each time that it happens. */
static void tell_stalls(struct chief *c, const struct coordinator_view *coord)
{
    if (coord->stalls == c->stalls_told)
        return;
    c->stalls_told = coord->stalls;
    report_warning(c->config.report, "%s: other workers compute what it holds", coord->stalled);
}

static int64_t longest_pause(const struct chief *c)
{
    if (chief_synchronous(c))
        return SYNC_POLL_MS;
    return MIN((int64_t)ps_set_size(c->ps_set) * POLL_PS_MS, (int64_t)POLL_MAX_MS);
}

static int run_loop(struct chief *c, struct err *e)
{
    int64_t pause = POLL_FIRST_MS;
    for (;;) {
        struct coordinator_view coord;
        if (stop_count() > 0)
            return stop_and_save(c, e);
        coordinator_view(c->coordinator, &coord);
        if (check_coordinator(c, &coord, e) < 0 || check_reported_generation(c, &coord, e) < 0 || poll_ps_set(c, e) < 0)
            return -1;
        coordinator_view(c->coordinator, &coord);
        tell_stalls(c, &coord);
        if (coord.stop_requested && !coord.finished && !c->stop_told)
            stop_leasing(c, &coord);
        bool stopped = c->stop_told && coord.done_low >= c->limit;
        bool ended = coord.finished || ((stopped || stop_reached(c, &coord)) && !coord.working);
        if (c->polled && ended) {
            struct err cause = { 0 };
            bool finished = false;
            if (chief_finish(c, &finished, &cause) < 0 && ignore_transient(-1, &cause) < 0)
                return err_set(e, cause.code, "%s", cause.msg);
            if (finished)
                return 0;
            if (cause.code != ERR_NONE)
                report_info(c->config.report, "cannot finish yet: %s; retrying", cause.msg);
        }
        coordinator_wait(c->coordinator, clock_ms() + (coord.drained ? 1 : pause));
        pause = MIN(2 * pause, longest_pause(c));
    }
}

/* The newest generation that a reachable ps knows: the file of the volume may have been lost. */
static uint64_t generation_seen(const struct chief *c)
{
    AUTO_FINI(ps_set_view) ps_set = { 0 };
    ps_set_poll(c->ps_set, POLL_FIRST_MS, &ps_set);
    return ps_set.highest_generation;
}

int chief_run(struct chief *c, struct err *e)
{
    int64_t step;
    struct err failure = { 0 };
    int finished = output_dir_finished(c->config.output_dir, c->config.job_uid, &step, e);
    if (finished < 0 || (finished == 1 && !c->reopened))
        return finished < 0 ? -1 : chief_already_finished(c, step, e);
    if (chief_initialise_ps(c, generation_seen(c), &failure) == 0 && run_loop(c, &failure) == 0)
        return 0;
    if (err_is(&failure, ERR_FENCED) && c->superseded.code == ERR_NONE) /* a ps has refused a call */
        (void)!chief_superseded(c, &failure, &failure);
    if (err_is(&failure, ERR_REFUSED) && output_dir_finished(c->config.output_dir, c->config.job_uid, &step, NULL) == 1)
        (void)err_set(&failure, ERR_FENCED, "another chief has ended the job in the meantime");
    if (e != NULL)
        *e = failure;
    return end_failed(c, &failure);
}

void chief_progress(struct chief *c, struct buf *out)
{
    reporter_progress(c->reporter, clock_ms(), out);
}

void chief_numbers(struct chief *c, struct chief_numbers *ret)
{
    struct coordinator_view coord;
    coordinator_view(c->coordinator, &coord);
    *ret = (struct chief_numbers){ .step = atomic_load(&c->step),
                                   .done = coord.done,
                                   .total = coord.total,
                                   .checkpoint_step = atomic_load(&c->checkpoint_step),
                                   .workers = coord.workers,
                                   .examples_per_second = reporter_examples_per_second(c->reporter),
                                   .generation = atomic_load(&c->shown_generation),
                                   .restored = atomic_load(&c->restored) };
}
