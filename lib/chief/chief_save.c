/* Checkpoints of the chief: when one may be published, and what happens when storage fails. Nothing is published
 * before the ps and the generation file confirm that this chief is in charge. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "chief/chief_internal.h"
#include "chief/output_dir.h"
#include "chief/training_state.h"

enum { POLL_CALL_MS = 2000, REPORTS_MS = 1000, POLL_MS = 10, STORAGE_RETRY_MS = 500 };

static int snapshot_segment(void *user, uint32_t segment, struct shard_snapshot *ret, struct err *e)
{
    struct chief *c = user;
    const struct segment_spec *s = &c->config.layout->segments[segment];
    if ((chief_synchronous(c) ? ps_set_snapshot_at(c->ps_set, segment, c->save_at, ret, e)
                              : ps_set_snapshot(c->ps_set, segment, ret, e)) < 0)
        return -1;
    return chief_check_finite(c, model_variable(c->config.model, s->variable), ret->data, ret->count, ret->version, e);
}

/* No newer chief may be in charge when files are published: neither the ps nor the volume name another one. */
static int confirm_generation(struct chief *c, const struct ps_set_view *view, struct err *e)
{
    return chief_confirm_ps_set(c, view, e) < 0 ? -1 : chief_confirm_file(c, view->condition != PS_SET_UNREACHABLE, e);
}

static int confirm_in_charge(void *user, struct err *e)
{
    struct chief *c = user;
    AUTO_FINI(ps_set_view) view = { 0 };
    ps_set_poll(c->ps_set, POLL_CALL_MS, &view);
    if (confirm_generation(c, &view, e) < 0)
        return -1;
    return view.condition == PS_SET_UNREACHABLE ? err_set(e, ERR_LOST, "%s", view.message) : 0;
}

int chief_confirm(struct chief *c, struct err *e)
{
    return confirm_in_charge(c, e);
}

static void state_add_metrics(void *user, struct epoch_metrics *t)
{
    json_object_set_new(user, "tally", epoch_metrics_to_json(t));
}

static void chief_add_arithmetic(const struct chief *c, json_t *state)
{
    char text[ARITHMETIC_MAX];
    coordinator_arithmetic(c->coordinator, text);
    if (chief_deterministic(c) && text[0] != '\0')
        json_object_set_new(state, "arithmetic", json_string(text));
}

/* After the segments: a batch they hold was mostly reported by then, and one reported too early is counted once. The
 * arithmetic of a gradient that they hold is known by then. */
static void add_training_state(void *user, const char *prefix, json_t *state)
{
    struct chief *c = user;
    chief_add_arithmetic(c, state);
    coordinator_metrics(c->coordinator, state_add_metrics, state);
    chief_callbacks_save(c, prefix, state);
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
    if (chief_synchronous(c) && chief_await_step(c, e) < 0)
        return -1;
    return chief_save_step(c, e);
}

int chief_save_step(struct chief *c, struct err *e)
{
    int64_t step;
    struct coordinator_view coord;
    coordinator_view(c->coordinator, &coord);
    json_auto_t *state = training_state_new(&c->config.space, c->config.layout, c->config.job_uid, c->generation);
    if (column_names_any(dataset_columns(c->config.train)))
        json_object_set_new(state, "columns", column_names_json(dataset_columns(c->config.train)));
    if (chief_synchronous(c))
        json_object_set_new(state, "groupSize", json_integer(c->groups.size));
    if (c->step_offset != 0)
        json_object_set_new(state, "stepOffset", json_integer(c->step_offset));
    json_object_set_new(state, "recordedEpochs", json_integer(c->recorded_epochs));
    json_object_set_new(state, "history", reporter_to_json(c->reporter));
    auto_free char *prefix = NULL;
    int64_t begun = clock_ms();
    struct checkpoint_save save = { .dir = c->checkpoints,
                                    .keep = c->config.job->checkpoint.keep,
                                    .keep_step = coord.evaluating_step,
                                    .keep_names = &c->decisions.kept,
                                    .model = c->config.model,
                                    .layout = c->config.layout,
                                    .snapshot = snapshot_segment,
                                    .complete = add_training_state,
                                    .confirm = confirm_in_charge,
                                    .user = c,
                                    .state = state };
    if (save_gated(c, &save, &step, &prefix, e) < 0)
        return -1;
    ps_set_confirm_snapshots(c->ps_set);
    free(c->saved_name);
    c->saved_name = xstrdup(strrchr(prefix, '/') + 1);
    c->saved_step = step;
    c->saved_ms = clock_ms();
    atomic_store(&c->checkpoint_step, step);
    reporter_checkpoint(c->reporter, step, prefix);
    log_debug("checkpoint %s saved in %lld ms", prefix, (long long)(c->saved_ms - begun));
    return 0;
}

/* True when the error is about the files, the folder, or its free space, and not about another job that writes there.
 */
bool chief_blames_storage(const struct chief *c, const struct err *e)
{
    static const enum err_code CODES[] = { ERR_IO, ERR_INPUT, ERR_NOT_FOUND, ERR_NO_SPACE, ERR_LIMIT };
    for (size_t i = 0; i < COUNT_OF(CODES); i++)
        if (err_is(e, CODES[i]))
            return c->superseded.code == ERR_NONE;
    return false;
}

/* The next one is tried on time; a folder that was deleted is made again for it. */
int chief_save_or_warn(struct chief *c, bool *ret_saved, struct err *e)
{
    struct err cause = { 0 }, ignored;
    if (chief_save(c, &cause) == 0) {
        *ret_saved = true;
        return 0;
    }
    if (err_is(&cause, ERR_DIVERGED))
        return err_set(e, cause.code, "%s", cause.msg);
    report_warning(c->config.report, "the checkpoint was not saved; will retry: %s", cause.msg);
    c->saved_ms = clock_ms();
    if (chief_blames_storage(c, &cause))
        (void)!output_dir_prepare(c->config.output_dir, c->config.job->summaries.directory, &ignored);
    *ret_saved = false;
    return 0;
}

/* The trained model justifies a wait. The ps keep it meanwhile, also if this chief ends and another one replaces it.
 */
int chief_await_storage(struct chief *c, const char *what, const struct err *cause, struct err *e)
{
    char text[ERR_TEXT_MAX + 16];
    struct err ignored;
    str_fmt(text, sizeof(text), "storage: %s", cause->msg);
    int64_t waited = chief_wait(c, &c->storage_wait, 0, text);
    if ((double)waited > c->config.job->limits.max_wait_seconds * 1000.0)
        return err_set(e, ERR_IO, "waited %lld s for storage %s: %s", (long long)waited / 1000, what, cause->msg);
    (void)!output_dir_prepare(c->config.output_dir, c->config.job->summaries.directory,
                              &ignored); /* the folder may have been deleted */
    c->storage_retry_ms = clock_ms() + STORAGE_RETRY_MS;
    return 0;
}

int chief_await_space(struct chief *c, const struct err *cause, struct err *e)
{
    if (!err_is(cause, ERR_NO_SPACE))
        return err_set(e, cause->code, "%s", cause->msg);
    if (chief_await_storage(c, "to begin", cause, e) < 0)
        return -1;
    while (clock_ms() < c->storage_retry_ms && stop_count() == 0)
        coordinator_wait(c->coordinator, c->storage_retry_ms);
    return stop_count() > 0 ? err_set(e, ERR_STOPPED, "stopped while waiting for storage") : 0;
}

int chief_save_first(struct chief *c, struct err *e)
{
    struct err cause = { 0 };
    if (clock_ms() < c->storage_retry_ms)
        return 0;
    if (chief_save(c, &cause) == 0) {
        chief_wait_over(c, &c->storage_wait);
        return 0;
    }
    return err_is(&cause, ERR_NO_SPACE) ? chief_await_storage(c, "to save the first checkpoint", &cause, e)
                                        : err_set(e, cause.code, "%s", cause.msg);
}

static void count_reported(void *user, struct epoch_metrics *t)
{
    *(int64_t *)user = epoch_metrics_reported(t);
}

/* Before the last checkpoint: so that the metrics of the batches it holds are in it. Workers that left have reported.
 */
void chief_await_reports(struct chief *c, int64_t batches)
{
    int64_t deadline = clock_ms() + REPORTS_MS, reported = 0;
    struct coordinator_view coord;
    for (;; coordinator_wait(c->coordinator, clock_ms() + POLL_MS)) {
        coordinator_metrics(c->coordinator, count_reported, &reported);
        coordinator_view(c->coordinator, &coord);
        if (reported >= batches || coord.members == 0 || clock_ms() >= deadline)
            return;
    }
}
