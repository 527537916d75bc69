#include "train/chief.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "train/chief_internal.h"
#include "train/output.h"

enum {
    LOOK_EVERY_MS = 1000, /* at most; LOOK_PS_MS a ps, so that few ps are looked at more often */
    LOOK_PS_MS = 250,
    LOOK_FIRST_MS = 50,   /* early looks, so that the first lines come soon; how long one waits before there is a job */
    LOOK_CALL_MS = 2000,
    LEASE_MS = 10000,
    HEARTBEAT_MS = 1000,
    EXPLAIN_MS = 5000,
    EXPLAIN_MOST_MS = 60000,
    FAREWELL_MS = 2000,   /* for workers to hear why the job failed */
};

struct coordinator *chief_coordinator(struct chief *c)
{
    return c->desk;
}

static int64_t total_of(const struct job *job, int64_t batches_per_epoch)
{
    return job->fit.steps > 0 ? job->fit.steps : job->fit.epochs * batches_per_epoch;
}

static void desk_open(struct chief *c)
{
    const struct chief_config *k = &c->config;
    int64_t window = k->job->summaries.every_seconds > 0 ? 0 : k->job->summaries.every_steps;
    c->desk = coordinator_new(&(struct coordinator_config){
        .model = k->model, .job_uid = k->job_uid, .incarnation = k->incarnation, .space = k->space,
        .layout_hash = layout_register_hash(k->layout, k->model), .ps_count = (uint32_t)k->placement->nps,
        .batches_per_epoch = c->batches_per_epoch, .total = c->total, .window = window, .lease_ms = LEASE_MS,
        .heartbeat_ms = HEARTBEAT_MS });
}

static int recorder_open(struct chief *c, struct err *e)
{
    AUTO(checkpoint) *ck = NULL;
    if (chief_open_checkpoint(c, false, &ck, e) < 0) /* refused before this run makes its first file */
        return -1;
    struct recorder_config config = { .job = c->config.job, .model = c->config.model, .output_dir = c->config.output_dir,
                                      .batches_per_epoch = c->batches_per_epoch, .total = c->total, .space = c->config.space,
                                      .workers_wanted = c->config.workers_wanted };
    return recorder_new(&config, ck != NULL ? checkpoint_step(ck) : -1, &c->recorder, e);
}

int chief_new(const struct chief_config *config, struct chief **ret, struct err *e)
{
    AUTO(chief) *c = xcalloc(1, sizeof *c);
    c->config = *config;
    c->checkpoints = output_path(config->output_dir, "checkpoints");
    c->batches_per_epoch = ordinal_space_batches(&config->space);
    c->total = total_of(config->job, c->batches_per_epoch);
    c->saved_step = c->final_step = -1;
    atomic_store(&c->checkpoint_step, -1);
    c->final = xcalloc(model_metrics(config->model), sizeof *c->final);
    c->evaluation.values = xcalloc(model_metrics(config->model), sizeof *c->evaluation.values);
    c->fleet = fleet_new(config->params, config->layout, config->placement, model_optimizer(config->model), config->job_uid);
    desk_open(c);
    if (output_prepare(config->output_dir, config->job->summaries.directory, e) < 0 || recorder_open(c, e) < 0 || chief_adopt_checkpoint(c, e) < 0)
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
    evaluator_free(c->evaluator);
    recorder_free(c->recorder);
    coordinator_free(c->desk);
    fleet_free(c->fleet);
    free(c->checkpoints);
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

static int check_desk(const struct chief *c, const struct coordinator_view *desk, struct err *e)
{
    if (desk->diverged)
        return err_set(e, ERR_DIVERGED,
                       "training diverged: %s got a loss or gradient that is not finite at batch %lld (epoch %lld); %s",
                       desk->diverged_by, (long long)desk->diverged_ordinal,
                       (long long)(desk->diverged_ordinal / c->batches_per_epoch) + 1, chief_divergence_cure(c));
    if (desk->poisoned >= 0) {
        int64_t position = desk->poisoned % c->batches_per_epoch * c->config.space.batch_size;
        return err_set(e, ERR_INPUT, "%d workers died on batch %lld (epoch %lld, examples %lld to %lld of its order) of data.train",
                       LEDGER_DEATHS_MAX, (long long)desk->poisoned, (long long)(desk->poisoned / c->batches_per_epoch) + 1,
                       (long long)position, (long long)MIN(position + c->config.space.batch_size, c->config.space.examples) - 1);
    }
    if (c->superseded.code != ERR_NONE) /* seen when a checkpoint was due */
        return err_set(e, c->superseded.code, "%s", c->superseded.msg);
    if (desk->highest_generation > c->generation)
        return err_set(e, ERR_FENCED, "a worker knows generation %llu, this chief is of %llu: a newer chief is in charge",
                       (unsigned long long)desk->highest_generation, (unsigned long long)c->generation);
    return 0;
}

/* ---- what the loop does ---- */

/* Saves with every push fenced off, so that nothing is trained that the checkpoint does not hold. The workers are not sent
 * home: a chief that is moved to another machine comes back, and who wants all to stop stops them, too. */
static int stop_and_save(struct chief *c, struct err *e)
{
    AUTO_FINI(fleet_view) fleet = { 0 };
    struct err cause = { 0 };
    recorder_state(c->recorder, "stopping", "saving a checkpoint");
    coordinator_set(c->desk, c->config.local ? JOB_STOPPING : JOB_STARTING, c->generation,
                    "the chief, which saves a checkpoint and leaves, to come back");
    if (!c->config.local && chief_raise_generation(c, 0, &cause) == 0)
        fleet_fence(c->fleet, c->generation);
    fleet_look(c->fleet, LOOK_CALL_MS, &fleet);
    chief_await_reports(c, applied_count(&fleet.done));
    int saved = chief_save(c, &cause);
    chief_evaluation_stop(c);
    struct err ignored;
    (void)!recorder_save_history(c->recorder, clock_ms(), true, &ignored);
    if (saved < 0)
        return err_set(e, chief_blames_storage(c, &cause) ? ERR_IO : cause.code,
                       "stopped by a signal, and the last checkpoint was not saved: %s", cause.msg);
    log_info("checkpoint of step %lld saved", (long long)c->saved_step);
    return err_set(e, ERR_STOPPED, "stopped by a signal");
}

/* A ps is gone: says so, gives it time. */
static int wait_for_fleet(struct chief *c, const struct fleet_view *fleet, struct err *e)
{
    int64_t now = clock_ms();
    if (c->away_since_ms == 0) {
        c->away_since_ms = now;
        c->explained_ms = 0;
    }
    if ((double)(now - c->away_since_ms) > c->config.job->limits.max_wait_seconds * 1000.0)
        return err_set(e, ERR_LOST, "%s", fleet->message);
    recorder_state(c->recorder, "waiting", fleet->message);
    if (now - c->explained_ms >= EXPLAIN_MS) {
        c->explained_ms = now;
        log_info("waiting %lld s for %s", (long long)(now - c->away_since_ms) / 1000, fleet->message);
    }
    return 0;
}

static void fleet_is_back(struct chief *c)
{
    if (c->away_since_ms == 0)
        return;
    log_info("all ps answer again after %.1f s", (double)(clock_ms() - c->away_since_ms) / 1000.0);
    c->away_since_ms = 0;
    recorder_state(c->recorder, "training", "");
}

/* Nobody trains: workers that were never started, or all that were there are gone. Said less often as time goes. */
static void say_alone(struct chief *c, const struct coordinator_view *desk, int64_t now_ms)
{
    if (desk->workers > 0 || desk->done_low >= c->limit || desk->finished) {
        c->alone_since_ms = 0;
        return;
    }
    if (c->alone_since_ms == 0)
        c->alone_since_ms = c->alone_said_ms = now_ms;
    if (now_ms - c->alone_said_ms < MIN(MAX(c->alone_said_ms - c->alone_since_ms, EXPLAIN_MS), EXPLAIN_MOST_MS))
        return;
    c->alone_said_ms = now_ms;
    log_info("waiting %lld s for a worker: none is here", (long long)(now_ms - c->alone_since_ms) / 1000);
}

/* A ps was lost in the middle of something, or a signal came: the next look, or the loop, deals with it. */
static int passing(int result, const struct err *e)
{
    return result < 0 && (chief_worth_waiting(e) || err_is(e, ERR_STOPPED)) ? 0 : result;
}

static int save_if_due(struct chief *c, const struct fleet_view *fleet, int64_t now_ms, struct err *e)
{
    bool leaving = fleet->condition == FLEET_LEAVING;
    c->saved_leaving = c->saved_leaving && leaving;
    if (c->saved_step < 0) /* the first one shows whether the storage works */
        return passing(chief_save(c, e), e);
    if ((!leaving || c->saved_leaving) && !checkpoint_due(c, fleet->step, now_ms))
        return 0;
    bool saved;
    if (chief_save_or_warn(c, &saved, e) < 0)
        return -1;
    c->saved_leaving = saved && leaving;
    return 0;
}

static void open_next(struct chief *c, int64_t over, int64_t done_low)
{
    c->limit = chief_next_limit(c, over, done_low);
    coordinator_open(c->desk, c->limit);
}

/* What the workers wait for comes first, then what runs beside the training. Single machine: a checkpoint that is due
 * falls between two steps. */
static int pass_epochs(struct chief *c, const struct fleet_view *fleet, const struct coordinator_view *desk,
                       int64_t now_ms, struct err *e)
{
    struct epoch_values values;
    int64_t over = chief_epochs_over(c, desk->done_low);
    int taken = chief_take_values(c, over, &values, e);
    if (taken < 0)
        return passing(-1, e);
    if (taken > 0 && !c->config.local)
        open_next(c, over, desk->done_low);
    if ((taken > 0 && chief_record_epochs(c, over, &values, e) < 0) || save_if_due(c, fleet, now_ms, e) < 0)
        return -1;
    if (taken > 0 && c->config.local)
        open_next(c, over, desk->done_low);
    return 0;
}

/* Epochs that the ps do not hold are trained, and recorded, again. */
static int begin_records(struct chief *c, const struct fleet_view *fleet, int64_t now_ms, struct err *e)
{
    c->trained_ms = c->done_ms = now_ms;
    c->first_step = fleet->step;
    c->recorded_epochs = recorder_resume(c->recorder, chief_epochs_over(c, fleet->done.low), c->desk);
    return recorder_begin(c->recorder, c->begin_step >= 0 ? c->begin_step : fleet->step + 1, e);
}

static void note_progress(struct chief *c, const struct fleet_view *fleet, const struct coordinator_view *desk,
                          int64_t now_ms)
{
    struct err e = { 0 };
    if (desk->done != atomic_load(&c->done))
        c->done_ms = now_ms;
    c->apply_ns = fleet->apply_ns;
    atomic_store(&c->step, fleet->step);
    atomic_store(&c->done, desk->done);
    recorder_look(c->recorder, fleet, desk, c->desk, now_ms);
    if (recorder_save_history(c->recorder, now_ms, false, &e) < 0)
        log_debug("%s", e.msg);
}

static int after_look(struct chief *c, const struct fleet_view *fleet, struct err *e)
{
    struct coordinator_view desk;
    int64_t now = clock_ms();
    coordinator_observe(c->desk, &fleet->done, fleet->begun_ms);
    coordinator_tick(c->desk, now);
    coordinator_view(c->desk, &desk);
    say_alone(c, &desk, now);
    if (c->trained_ms == 0 && begin_records(c, fleet, now, e) < 0)
        return -1;
    note_progress(c, fleet, &desk, now);
    if (chief_evaluation_take(c, e) < 0)
        return -1;
    if (!desk.finished && !desk.stop_requested && pass_epochs(c, fleet, &desk, now, e) < 0)
        return -1;
    c->looked = true;
    return 0;
}

static int look(struct chief *c, struct err *e)
{
    AUTO_FINI(fleet_view) fleet = { 0 };
    c->looked = false;
    fleet_look(c->fleet, LOOK_CALL_MS, &fleet);
    if (chief_confirm_fleet(c, &fleet, e) < 0)
        return -1;
    switch (fleet.condition) {
    case FLEET_AWAY:
        return wait_for_fleet(c, &fleet, e);
    case FLEET_EMPTY:
        log_info("%s: restoring it", fleet.message);
        fleet_is_back(c);
        return chief_bring_up(c, fleet.highest_generation, e);
    case FLEET_LEAVING:
    case FLEET_WELL:
    default:
        fleet_is_back(c);
        return after_look(c, &fleet, e);
    }
}

/* Ends training for another reason than success. */
static int abandon(struct chief *c, struct err *e)
{
    if (e->code == ERR_DIVERGED || e->code == ERR_INPUT) {
        coordinator_set(c->desk, JOB_STOPPING, c->generation, e->msg);
        recorder_state(c->recorder, "failed", e->msg);
        struct err ignored;
        (void)!recorder_finish(c->recorder, atomic_load(&c->step), c->desk, NULL, &ignored);
        chief_await_leave(c, FAREWELL_MS);
    }
    return -1;
}

/* What workers hold they finish first. */
static void lend_no_more(struct chief *c, const struct coordinator_view *desk)
{
    log_info("stop requested by %s", desk->stop_reason);
    c->limit = 0;
    coordinator_open(c->desk, 0);
    coordinator_waits_for(c->desk, "the chief to end the job, as was asked");
}

static int lead(struct chief *c, struct err *e)
{
    int64_t pause = LOOK_FIRST_MS;
    for (;;) {
        struct coordinator_view desk;
        if (stop_count() > 0)
            return stop_and_save(c, e);
        coordinator_view(c->desk, &desk);
        if (check_desk(c, &desk, e) < 0 || look(c, e) < 0)
            return -1;
        coordinator_view(c->desk, &desk);
        if (desk.stop_requested && !desk.finished && c->limit > 0)
            lend_no_more(c, &desk);
        if (c->looked && (desk.finished || (desk.stop_requested && !desk.working))) {
            struct err cause = { 0 };
            bool finished;
            if (chief_finish(c, &finished, &cause) < 0 && passing(-1, &cause) < 0)
                return err_set(e, cause.code, "%s", cause.msg);
            if (finished)
                return 0;
            if (cause.code != ERR_NONE)
                log_info("the end has to wait: %s", cause.msg);
        }
        coordinator_wait(c->desk, clock_ms() + (desk.settling ? 1 : pause));
        pause = MIN(2 * pause, MIN((int64_t)fleet_size(c->fleet) * LOOK_PS_MS, LOOK_EVERY_MS));
    }
}

/* The newest one that a ps knows which answers now: the volume may have been lost. */
static uint64_t generation_seen(const struct chief *c)
{
    AUTO_FINI(fleet_view) fleet = { 0 };
    fleet_look(c->fleet, LOOK_FIRST_MS, &fleet);
    return fleet.highest_generation;
}

int chief_run(struct chief *c, struct err *e)
{
    int64_t step;
    struct err failure = { 0 };
    int finished = output_finished(c->config.output_dir, c->config.job_uid, &step, e);
    if (finished != 0)
        return finished < 0 ? -1 : chief_already_finished(c, step, e);
    if (chief_bring_up(c, generation_seen(c), &failure) == 0 && lead(c, &failure) == 0)
        return 0;
    if (err_is(&failure, ERR_REFUSED) && output_finished(c->config.output_dir, c->config.job_uid, &step, NULL) == 1)
        (void)err_set(&failure, ERR_FENCED, "another chief has ended the job meanwhile");
    if (e != NULL)
        *e = failure;
    return abandon(c, &failure);
}

void chief_progress(struct chief *c, struct buf *out)
{
    recorder_progress(c->recorder, out);
}

void chief_numbers(struct chief *c, struct chief_numbers *ret)
{
    struct coordinator_view desk;
    coordinator_view(c->desk, &desk);
    *ret = (struct chief_numbers){ .step = atomic_load(&c->step), .done = desk.done, .total = desk.total,
                                   .checkpoint_step = atomic_load(&c->checkpoint_step), .workers = desk.workers,
                                   .examples_per_second = recorder_examples_per_second(c->recorder),
                                   .generation = atomic_load(&c->shown_generation), .restored = atomic_load(&c->restored) };
}
