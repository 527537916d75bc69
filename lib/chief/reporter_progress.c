/* What GET /progress shows: the progress of the job, its latest metrics, and what it waits for. */
#include <math.h>
#include <string.h>

#include "chief/history.h"
#include "chief/reporter_internal.h"

int64_t reporter_epochs(const struct reporter *r)
{
    return (r->config.total + r->config.batches_per_epoch - 1) / r->config.batches_per_epoch;
}

json_t *reporter_metrics_json(const struct reporter *r, const double *values)
{
    json_t *o = json_object();
    for (size_t i = 0; i < r->nmetrics; i++)
        json_object_set_new(o, model_metric_name(r->config.model, i), json_number(values[i]));
    return o;
}

void reporter_all_done(struct reporter *r)
{
    r->now.done = r->now.end;
    r->now.epoch = MAX(r->now.end - 1, 0) / r->config.batches_per_epoch;
    r->now.epoch_done = r->config.batches_per_epoch;
}

void reporter_ends(struct reporter *r, int64_t batches)
{
    MUTEX_GUARD(&r->lock);
    r->now.end = batches;
}

void reporter_show_history(struct reporter *r)
{
    for (size_t i = 0; i < r->nmetrics; i++) {
        auto_free char *val = xasprintf("val_%s", model_metric_name(r->config.model, i));
        r->now.metrics[i] = history_last(r->history, model_metric_name(r->config.model, i));
        r->now.validation[i] = history_last(r->history, val);
        r->now.has_validation |= !isnan(r->now.validation[i]);
    }
}

void reporter_finished_before(struct reporter *r, int64_t step, const char *weights_sha256)
{
    MUTEX_GUARD(&r->lock);
    str_fmt(r->now.weights_sha256, sizeof(r->now.weights_sha256), "%s", weights_sha256);
    str_fmt(r->now.state, sizeof(r->now.state), "finished");
    r->now.step = step;
    reporter_all_done(r);
    reporter_show_history(r);
}

static void set_state(struct reporter *r, const char *state, const char *message, int64_t waits_ms)
{
    MUTEX_GUARD(&r->lock);
    str_fmt(r->now.state, sizeof(r->now.state), "%s", state);
    str_fmt(r->now.message, sizeof(r->now.message), "%s", message);
    r->now.waits_ms = waits_ms;
}

void reporter_state(struct reporter *r, const char *state, const char *message)
{
    set_state(r, state, message, 0);
}

void reporter_waits(struct reporter *r, int64_t since_ms, const char *message)
{
    set_state(r, "waiting", message, since_ms);
}

/* Rounded down, so that 100 means done. */
static int percent_done(const struct reporter *r)
{
    return r->now.end > 0 ? (int)(MIN(r->now.done, r->now.end) * 100 / r->now.end) : 0;
}

/* At the rate of the last poll; NaN while nothing is trained. */
static double remaining_seconds(const struct reporter *r)
{
    double per_batch = (double)r->config.space.examples / (double)r->config.batches_per_epoch;
    double left = (double)MAX(r->now.end - r->now.done, 0) * per_batch;
    return left <= 0 ? 0 : r->examples_per_second > 0 ? ceil(left / r->examples_per_second) : (double)NAN;
}

void reporter_progress(struct reporter *r, int64_t now_ms, struct buf *out)
{
    MUTEX_GUARD(&r->lock);
    int64_t waited_ms = r->now.waits_ms > 0 ? MAX(now_ms - r->now.waits_ms, 0) : 0;
    json_auto_t *v = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:i, s:i, s:I, s:o, s:o}", "state", r->now.state,
        "message", r->now.message, "step", (json_int_t)r->now.step, "epoch", (json_int_t)r->now.epoch + 1, "epochs",
        (json_int_t)reporter_epochs(r), "batches_done", (json_int_t)r->now.done, "batches_total",
        (json_int_t)r->now.end, "epoch_batches_done", (json_int_t)MIN(r->now.epoch_done, r->config.batches_per_epoch),
        "epoch_batches_total", (json_int_t)r->config.batches_per_epoch, "loss", json_number(r->now.metrics[0]),
        "metrics", reporter_metrics_json(r, r->now.metrics), "examples_per_second", json_number(r->examples_per_second),
        "workers", r->now.workers, "workers_wanted", MAX(r->config.workers_wanted, r->now.connected),
        "last_checkpoint_step", (json_int_t)r->now.checkpoint_step, "last_update_time", json_number(r->now.updated),
        "last_step_time", json_number(r->now.stepped));
    json_object_set_new(v, "waiting_seconds", json_integer(waited_ms / 1000));
    json_object_set_new(v, "percent", json_integer(percent_done(r)));
    json_object_set_new(v, "remaining_seconds", json_number(remaining_seconds(r)));
    if (r->now.has_validation)
        json_object_set_new(v, "validation", reporter_metrics_json(r, r->now.validation));
    if (r->now.weights_sha256[0] != '\0')
        json_object_set_new(v, "weights_sha256", json_string(r->now.weights_sha256));
    json_emit(v, out);
}

double reporter_examples_per_second(struct reporter *r)
{
    MUTEX_GUARD(&r->lock);
    return r->examples_per_second;
}
