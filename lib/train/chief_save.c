#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "train/checkpoint_state.h"
#include "train/chief_internal.h"
#include "train/output.h"

enum { LOOK_MS = 2000, REPORTS_MS = 1000, POLL_MS = 10 };

static int snapshot(void *user, uint32_t segment, struct shard_snapshot *ret, struct err *e)
{
    struct chief *c = user;
    const struct segment_spec *s = &c->config.layout->segments[segment];
    if (fleet_snapshot(c->fleet, segment, ret, e) < 0)
        return -1;
    return chief_check_finite(c, model_variable(c->config.model, s->variable), ret->data, ret->count, ret->version, e);
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

int chief_confirm(struct chief *c, struct err *e)
{
    return confirm(c, e);
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

static int save_gated(struct chief *c, const struct checkpoint_save *save, int64_t *ret_step, char **ret_prefix,
                      struct err *e)
{
    if (c->config.step_gate == NULL)
        return checkpoint_save(save, ret_step, ret_prefix, e);
    MUTEX_GUARD(c->config.step_gate);
    return checkpoint_save(save, ret_step, ret_prefix, e);
}

int chief_save(struct chief *c, struct err *e)
{
    int64_t step;
    struct coordinator_view desk;
    coordinator_view(c->desk, &desk);
    json_auto_t *state = state_new(&c->config.space, c->config.layout, c->config.job_uid, c->generation);
    json_object_set_new(state, "recordedEpochs", json_integer(c->recorded_epochs));
    json_object_set_new(state, "history", recorder_to_json(c->recorder));
    auto_free char *prefix = NULL;
    int64_t begun = clock_ms();
    struct checkpoint_save save = { .dir = c->checkpoints, .keep = c->config.job->checkpoint.keep,
                                    .keep_step = desk.evaluating_step, .model = c->config.model, .layout = c->config.layout,
                                    .snapshot = snapshot, .complete = complete, .confirm = confirm, .user = c, .state = state };
    if (save_gated(c, &save, &step, &prefix, e) < 0)
        return -1;
    c->saved_step = step;
    c->saved_ms = clock_ms();
    atomic_store(&c->checkpoint_step, step);
    recorder_checkpoint(c->recorder, step, prefix);
    log_debug("checkpoint %s saved in %lld ms", prefix, (long long)(c->saved_ms - begun));
    return 0;
}

/* Names the files, the folder, or no space on it; not another job that writes there. */
bool chief_blames_storage(const struct chief *c, const struct err *e)
{
    return c->superseded.code == ERR_NONE && (err_is(e, ERR_IO) || err_is(e, ERR_INPUT) || err_is(e, ERR_NOT_FOUND));
}

/* The next one is tried on time; a folder that was deleted is made again for it. */
int chief_save_or_warn(struct chief *c, bool *ret_saved, struct err *e)
{
    struct err cause = { 0 }, ignored;
    *ret_saved = chief_save(c, &cause) == 0;
    if (*ret_saved)
        return 0;
    if (err_is(&cause, ERR_DIVERGED))
        return err_set(e, cause.code, "%s", cause.msg);
    log_warning("the checkpoint was not saved, will try again: %s", cause.msg);
    c->saved_ms = clock_ms();
    if (chief_blames_storage(c, &cause))
        (void)!output_prepare(c->config.output_dir, c->config.job->summaries.directory, &ignored);
    return 0;
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
