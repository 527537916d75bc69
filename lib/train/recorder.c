#include "train/recorder.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/thread.h"
#include "train/events.h"
#include "train/history.h"
#include "train/output.h"

enum {
    METRICS_MAX = 64,
    NAME_MAX_LEN = 64,
    RATE_MS = 500,        /* rates are means over at least so long */
    RATE_FIRST_MS = 10,
    SYNC_MS = 1000,       /* between two fsyncs of the event files */
    HISTORY_MS = 1000,    /* between two writes of history.json */
    HISTORY_MAX = 64 << 20,
};

struct recorder {
    struct recorder_config config;
    struct events_writer *train, *validation;
    bool warned;
    size_t nmetrics;
    json_t *history;               /* train/history.h */
    bool history_changed;          /* since it was written */
    int64_t history_ms;            /* when it was written */
    int64_t logged_step;           /* of the last log line */
    int64_t rate_ms, rate_step;    /* where the rates were measured last */
    int64_t summary_ms, synced_ms;
    uint64_t rate_pushes, rate_staleness;
    double steps_per_second, examples_per_second, staleness;
    struct mutex lock;             /* of what /progress shows */
    struct {
        char state[32], message[240];
        int64_t step, done, checkpoint_step, epoch;
        int64_t epoch_done;
        int workers;
        double metrics[METRICS_MAX], validation[METRICS_MAX];
        bool has_validation;
        double updated, stepped;   /* wall clock; stepped: the step grew; 0: not yet */
    } now;
};

/* ---- summaries ---- */

static void warn_once(struct recorder *r, int result, const struct err *e)
{
    if (result == 0 || r->warned)
        return;
    r->warned = true;
    log_warning("summaries cannot be written: %s", e->msg);
}

static void scalar(struct recorder *r, struct events_writer *w, int64_t step, const char *tag, double value)
{
    struct err e = { 0 };
    if (w != NULL)
        warn_once(r, events_scalar(w, clock_wall(), step, tag, (float)value, &e), &e);
}

/* Points are in the file at once; that they survive a crash of the machine is made sure of now and then, since it may
 * take longer than a short epoch. */
static void sync_events(struct recorder *r, int64_t now_ms, bool at_once)
{
    struct err e = { 0 };
    if (!at_once && now_ms - r->synced_ms < SYNC_MS)
        return;
    r->synced_ms = now_ms;
    if (r->train != NULL)
        warn_once(r, events_flush(r->train, &e), &e);
    if (r->validation != NULL)
        warn_once(r, events_flush(r->validation, &e), &e);
}

static json_t *hparams_of(const struct recorder *r)
{
    const struct optimizer *o = model_optimizer(r->config.model);
    json_t *h = optimizer_config(o);
    json_object_set_new(h, "optimizer", json_string(optimizer_name(o)));
    json_object_set_new(h, "batch_size", json_integer(r->config.job->fit.batch_size));
    json_object_set_new(h, "epochs", json_integer(r->config.job->fit.epochs));
    json_object_set_new(h, "seed", json_integer((json_int_t)r->config.job->fit.seed));
    json_object_set_new(h, "workers", json_integer(r->config.workers_wanted));
    return h;
}

static int write_hparams(struct recorder *r, struct err *e)
{
    json_auto_t *h = hparams_of(r);
    char tags[METRICS_MAX][NAME_MAX_LEN];
    const char *names[METRICS_MAX];
    for (size_t i = 0; i < r->nmetrics; i++) {
        str_fmt(tags[i], sizeof tags[i], "epoch_%s", model_metric_name(r->config.model, i));
        names[i] = tags[i];
    }
    return events_hparams(r->train, clock_wall(), h, names, r->nmetrics, r->config.job->name, e);
}

static int open_events(struct recorder *r, struct err *e)
{
    char host[64] = "localhost";
    (void)!gethostname(host, sizeof host - 1);
    auto_free char *summaries = output_summaries(r->config.output_dir, r->config.job->summaries.directory);
    auto_free char *train = output_path(summaries, "train");
    auto_free char *validation = output_path(summaries, "validation");
    double now = clock_wall();
    if (events_open(train, now, host, &r->train, e) < 0)
        return -1;
    if (r->config.job->validation.present && events_open(validation, now, host, &r->validation, e) < 0)
        return -1;
    return 0;
}

/* Also in a job's first life: TensorBoard takes only a folder's second START and later ones for restarts. */
int recorder_begin(struct recorder *r, int64_t step, struct err *e)
{
    double now = clock_wall();
    if (events_session(r->train, now, EVENTS_START, step, NULL, NULL, e) < 0 ||
        (r->validation != NULL && events_session(r->validation, now, EVENTS_START, step, NULL, NULL, e) < 0))
        return -1;
    return write_hparams(r, e);
}

int recorder_new(const struct recorder_config *config, int64_t resumed_step, struct recorder **ret, struct err *e)
{
    AUTO(recorder) *r = xcalloc(1, sizeof *r);
    r->config = *config;
    mutex_init(&r->lock);
    r->nmetrics = model_metrics(config->model);
    if (r->nmetrics > METRICS_MAX)
        return err_set(e, ERR_INPUT, "%zu metrics, at most %d", r->nmetrics, METRICS_MAX);
    r->history = history_new(config->model, config->job->validation.present);
    r->history_changed = true; /* what is there may be of another job */
    r->logged_step = r->rate_step = MAX(resumed_step, 0);
    r->now.checkpoint_step = resumed_step;
    str_fmt(r->now.state, sizeof r->now.state, "starting");
    for (size_t i = 0; i < METRICS_MAX; i++)
        r->now.metrics[i] = (double)NAN;
    if (open_events(r, e) < 0)
        return -1;
    *ret = TAKE(r);
    return 0;
}

void recorder_free(struct recorder *r)
{
    if (r == NULL)
        return;
    events_free(r->train);
    events_free(r->validation);
    json_decref(r->history);
    mutex_fini(&r->lock);
    free(r);
}

/* ---- each look ---- */

struct taken { /* what one visit to the tally brings home */
    struct recorder *r;
    int64_t epoch, window_step;
    double epoch_metrics[METRICS_MAX], recent[METRICS_MAX], window[METRICS_MAX];
    int64_t epoch_batches, recent_batches;
    bool take_recent, flush;
    int got_window;
};

static void visit_tally(void *user, struct tally *t)
{
    struct taken *x = user;
    x->epoch_batches = tally_epoch(t, x->epoch, x->epoch_metrics);
    x->recent_batches = x->take_recent ? tally_take_recent(t, x->recent) : tally_recent(t, x->recent);
}

static void visit_window(void *user, struct tally *t)
{
    struct taken *x = user;
    x->got_window = tally_take_window(t, x->flush, &x->window_step, x->window);
}

static void write_windows(struct recorder *r, struct coordinator *c, bool flush_all)
{
    struct taken x = { .r = r, .flush = flush_all };
    for (;;) {
        coordinator_tally(c, visit_window, &x);
        if (!x.got_window)
            break;
        for (size_t i = 0; i < r->nmetrics; i++)
            scalar(r, r->train, x.window_step, model_metric_name(r->config.model, i), x.window[i]);
        scalar(r, r->train, x.window_step, "learning_rate",
               optimizer_learning_rate(model_optimizer(r->config.model), x.window_step - 1));
        scalar(r, r->train, x.window_step, "global_step/sec", r->steps_per_second);
        scalar(r, r->train, x.window_step, "examples/sec", r->examples_per_second);
        scalar(r, r->train, x.window_step, "staleness", r->staleness);
    }
}

/* Summaries by seconds instead of by steps: one point of everything since the last. */
static void write_recent(struct recorder *r, int64_t step, const struct taken *x)
{
    for (size_t i = 0; i < r->nmetrics; i++)
        scalar(r, r->train, step, model_metric_name(r->config.model, i), x->recent[i]);
    scalar(r, r->train, step, "learning_rate", optimizer_learning_rate(model_optimizer(r->config.model), MAX(step - 1, 0)));
    scalar(r, r->train, step, "global_step/sec", r->steps_per_second);
    scalar(r, r->train, step, "examples/sec", r->examples_per_second);
    scalar(r, r->train, step, "staleness", r->staleness);
}

static void update_rates(struct recorder *r, const struct fleet_view *fleet, const struct coordinator_view *desk, int64_t now_ms)
{
    if (r->rate_ms == 0) {
        r->rate_ms = now_ms;
        r->rate_step = fleet->step;
        return;
    }
    int64_t ms = now_ms - r->rate_ms;
    if (ms < (r->steps_per_second > 0 ? RATE_MS : RATE_FIRST_MS) || fleet->step == r->rate_step)
        return;
    double rate = 1000.0 * (double)MAX(fleet->step - r->rate_step, 0) / (double)ms;
    double per_step = (double)r->config.space.examples / (double)r->config.batches_per_epoch;
    uint64_t steps = desk->steps - r->rate_pushes;
    r->steps_per_second = rate;
    if (steps > 0)
        r->staleness = (double)(desk->staleness_sum - r->rate_staleness) / (double)steps;
    r->rate_ms = now_ms;
    r->rate_step = fleet->step;
    r->rate_pushes = desk->steps;
    r->rate_staleness = desk->staleness_sum;
    MUTEX_GUARD(&r->lock);
    r->examples_per_second = rate * per_step;
}

static void log_line(struct recorder *r, int64_t step, const struct coordinator_view *desk, const struct taken *x)
{
    struct log_field f[METRICS_MAX + 8];
    int n = 0;
    char epoch[48], workers[32];
    str_fmt(epoch, sizeof epoch, "%lld/%lld", (long long)MIN(x->epoch + 1, r->config.job->fit.epochs > 0 ? r->config.job->fit.epochs : INT64_MAX),
            (long long)((r->config.total + r->config.batches_per_epoch - 1) / r->config.batches_per_epoch));
    str_fmt(workers, sizeof workers, "%d/%d", desk->workers, MAX(r->config.workers_wanted, desk->workers));
    f[n++] = (struct log_field)LOG_INT("step", step);
    f[n++] = (struct log_field)LOG_STR("epoch", epoch);
    for (size_t i = 0; i < r->nmetrics; i++)
        f[n++] = (struct log_field)LOG_NUM(model_metric_name(r->config.model, i), x->recent[i]);
    f[n++] = (struct log_field)LOG_INT("examples/s", r->examples_per_second + 0.5);
    f[n++] = (struct log_field){ .key = "staleness", .kind = LOG_FIELD_NUM, .d = r->staleness, .digits = 2 };
    f[n++] = (struct log_field)LOG_STR("workers", workers);
    log_fields(LOG_INFO, "", n, f);
}

static void update_progress(struct recorder *r, const struct fleet_view *fleet, const struct coordinator_view *desk,
                            const struct taken *x)
{
    MUTEX_GUARD(&r->lock);
    double now = clock_wall();
    if (fleet->step > r->now.step && r->now.updated > 0) /* what the first look sees is of an earlier life */
        r->now.stepped = now;
    r->now.step = fleet->step;
    r->now.done = desk->done;
    r->now.epoch = x->epoch;
    r->now.epoch_done = MAX(desk->done - x->epoch * r->config.batches_per_epoch, 0);
    r->now.workers = desk->workers;
    r->now.updated = now;
    if (x->epoch_batches > 0)
        memcpy(r->now.metrics, x->epoch_metrics, r->nmetrics * sizeof(double));
}

void recorder_look(struct recorder *r, const struct fleet_view *fleet, const struct coordinator_view *desk,
                   struct coordinator *c, int64_t now_ms)
{
    int64_t every = r->config.job->fit.log_every_steps, last = r->config.total - 1;
    struct taken x = { .r = r, .epoch = MIN(MAX(desk->done_low - 1, 0), MAX(last, 0)) / r->config.batches_per_epoch };
    bool crossed = every > 0 && (fleet->step / every > r->logged_step / every || (r->logged_step == 0 && fleet->step > 0));
    double seconds = r->config.job->summaries.every_seconds;
    bool timed = seconds > 0 && (double)(now_ms - r->summary_ms) >= seconds * 1000.0;
    x.take_recent = crossed || timed;
    update_rates(r, fleet, desk, now_ms);
    coordinator_tally(c, visit_tally, &x);
    update_progress(r, fleet, desk, &x);
    if (crossed && x.recent_batches > 0) {
        log_line(r, fleet->step, desk, &x);
        r->logged_step = fleet->step;
    }
    if (timed && x.recent_batches > 0) {
        write_recent(r, fleet->step, &x);
        r->summary_ms = now_ms;
    }
    write_windows(r, c, false);
    sync_events(r, now_ms, false);
}

/* ---- epochs ---- */

static int64_t epochs_of(const struct recorder *r)
{
    return (r->config.total + r->config.batches_per_epoch - 1) / r->config.batches_per_epoch;
}

static void log_epoch(const struct recorder *r, int64_t epoch, const double *validation)
{
    struct log_field f[2 * METRICS_MAX + 1];
    char names[METRICS_MAX][NAME_MAX_LEN], text[48];
    int n = 0;
    str_fmt(text, sizeof text, "epoch %lld/%lld done", (long long)epoch + 1, (long long)epochs_of(r));
    for (size_t i = 0; i < r->nmetrics; i++) {
        double train = history_get(r->history, epoch, model_metric_name(r->config.model, i));
        if (!isnan(train))
            f[n++] = (struct log_field)LOG_NUM(model_metric_name(r->config.model, i), train);
    }
    for (size_t i = 0; validation != NULL && i < r->nmetrics; i++) {
        str_fmt(names[i], sizeof names[i], "val_%s", model_metric_name(r->config.model, i));
        f[n++] = (struct log_field)LOG_NUM(names[i], validation[i]);
    }
    log_fields(LOG_INFO, text, n, f);
}

static void visit_epoch(void *user, struct tally *t)
{
    struct taken *x = user;
    x->epoch_batches = tally_epoch(t, x->epoch, x->epoch_metrics);
    tally_forget_before(t, x->epoch + 1);
}

void recorder_epoch(struct recorder *r, int64_t epoch, struct coordinator *c)
{
    struct taken x = { .r = r, .epoch = epoch };
    coordinator_tally(c, visit_epoch, &x);
    history_add(r->history, epoch);
    r->history_changed = true;
    /* No batches: their reports went with an earlier chief. */
    for (size_t i = 0; x.epoch_batches > 0 && i < r->nmetrics; i++) {
        char tag[NAME_MAX_LEN + 8];
        str_fmt(tag, sizeof tag, "epoch_%s", model_metric_name(r->config.model, i));
        history_set(r->history, epoch, model_metric_name(r->config.model, i), x.epoch_metrics[i]);
        scalar(r, r->train, epoch, tag, x.epoch_metrics[i]);
    }
}

static void record_validation(struct recorder *r, int64_t epoch, int64_t step, const double *validation)
{
    for (size_t i = 0; i < r->nmetrics; i++) {
        const char *name = model_metric_name(r->config.model, i);
        char tag[NAME_MAX_LEN + 8], val[NAME_MAX_LEN + 8];
        str_fmt(tag, sizeof tag, "epoch_%s", name);
        str_fmt(val, sizeof val, "val_%s", name);
        history_set(r->history, epoch, val, validation[i]);
        if (epoch >= 0)
            scalar(r, r->validation, epoch, tag, validation[i]);
        scalar(r, r->validation, step, name, validation[i]);
    }
    r->history_changed = true;
    MUTEX_GUARD(&r->lock);
    r->now.has_validation = true;
    memcpy(r->now.validation, validation, r->nmetrics * sizeof(double));
}

void recorder_evaluated(struct recorder *r, int64_t epoch, int64_t step, const double *validation)
{
    if (validation != NULL)
        record_validation(r, epoch, step, validation);
    if (epoch >= 0)
        log_epoch(r, epoch, validation);
}

void recorder_histograms(struct recorder *r, int64_t step, const float *params)
{
    struct err e = { 0 };
    for (size_t i = 0; r->config.job->summaries.histograms && i < model_variables(r->config.model); i++) {
        const struct variable *v = model_variable(r->config.model, i);
        warn_once(r, events_histogram(r->train, clock_wall(), step, v->name, params + v->offset, v->count, &e), &e);
    }
}

void recorder_checkpoint(struct recorder *r, int64_t step, const char *prefix)
{
    struct err e = { 0 };
    warn_once(r, events_session(r->train, clock_wall(), EVENTS_CHECKPOINT, step, prefix, NULL, &e), &e);
    MUTEX_GUARD(&r->lock);
    r->now.checkpoint_step = step;
}

static json_t *metrics_json(const struct recorder *r, const double *values)
{
    json_t *o = json_object();
    for (size_t i = 0; i < r->nmetrics; i++)
        json_object_set_new(o, model_metric_name(r->config.model, i), json_number(values[i]));
    return o;
}

static void log_final(const struct recorder *r, const double *final)
{
    AUTO_FINI(buf) line = BUF_INIT;
    for (size_t i = 0; i < r->nmetrics; i++)
        buf_printf(&line, "%sTest %s: %.4f", i > 0 ? ", " : "", model_metric_name(r->config.model, i), final[i]);
    log_info("%s", line.data);
}

void recorder_shares(struct recorder *r, const struct coordinator_view *desk, uint64_t apply_ns, double seconds, int64_t steps)
{
    (void)r;
    double sum = (double)(desk->compute_ns + desk->network_ns + desk->data_ns + desk->wait_ns);
    if (sum <= 0 || seconds <= 0)
        return;
    log_info("%lld steps in %.2f s (%.0f steps/s); workers' time: compute %.0f %%, network %.0f %% (of it apply %.0f %%), "
             "data %.0f %%, wait %.0f %%",
             (long long)steps, seconds, (double)steps / seconds, 100 * (double)desk->compute_ns / sum,
             100 * (double)desk->network_ns / sum, 100 * (double)apply_ns / sum, 100 * (double)desk->data_ns / sum,
             100 * (double)desk->wait_ns / sum);
}

/* With the lock held. */
static void all_done(struct recorder *r)
{
    r->now.done = r->config.total;
    r->now.epoch = MAX(epochs_of(r) - 1, 0);
    r->now.epoch_done = r->config.batches_per_epoch;
}

static int write_history(struct recorder *r, int64_t step, const double *final, struct err *e)
{
    json_auto_t *out = json_pack("{s:O, s:I}", "history", r->history, "step", (json_int_t)step);
    if (final != NULL)
        json_object_set_new(out, "final", metrics_json(r, final));
    return output_json(r->config.output_dir, "history.json", out, e);
}

int recorder_finish(struct recorder *r, int64_t step, struct coordinator *c, const double *final, struct err *e)
{
    struct err cause = { 0 };
    if (write_history(r, step, final, e) < 0)
        return -1;
    r->history_changed = false;
    write_windows(r, c, true);
    if (final != NULL)
        log_final(r, final);
    warn_once(r, events_hparams_end(r->train, clock_wall(), final != NULL, &cause), &cause);
    sync_events(r, clock_ms(), true);
    MUTEX_GUARD(&r->lock);
    r->now.step = step;
    if (!str_eq(r->now.state, "failed"))
        all_done(r);
    return 0;
}

int recorder_save_history(struct recorder *r, int64_t now_ms, bool at_once, struct err *e)
{
    if (!r->history_changed || (!at_once && r->history_ms != 0 && now_ms - r->history_ms < HISTORY_MS))
        return 0;
    r->history_ms = now_ms;
    if (at_once)
        sync_events(r, now_ms, true);
    if (write_history(r, r->now.step, NULL, e) < 0)
        return -1;
    r->history_changed = false;
    return 0;
}

/* The last epoch's, until there are newer ones. */
static void show_history(struct recorder *r)
{
    for (size_t i = 0; i < r->nmetrics; i++) {
        auto_free char *val = xasprintf("val_%s", model_metric_name(r->config.model, i));
        r->now.metrics[i] = history_last(r->history, model_metric_name(r->config.model, i));
        r->now.validation[i] = history_last(r->history, val);
        r->now.has_validation |= !isnan(r->now.validation[i]);
    }
}

void recorder_finished_before(struct recorder *r, int64_t step)
{
    MUTEX_GUARD(&r->lock);
    str_fmt(r->now.state, sizeof r->now.state, "finished");
    r->now.step = step;
    all_done(r);
    show_history(r);
}

void recorder_state(struct recorder *r, const char *state, const char *message)
{
    MUTEX_GUARD(&r->lock);
    str_fmt(r->now.state, sizeof r->now.state, "%s", state);
    str_fmt(r->now.message, sizeof r->now.message, "%s", message);
}

void recorder_progress(struct recorder *r, struct buf *out)
{
    MUTEX_GUARD(&r->lock);
    json_auto_t *v = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:i, s:i, s:I, s:o, s:o}", "state", r->now.state, "message",
        r->now.message, "step", (json_int_t)r->now.step, "epoch", (json_int_t)r->now.epoch + 1, "epochs", (json_int_t)epochs_of(r),
        "batches_done", (json_int_t)r->now.done, "batches_total", (json_int_t)r->config.total, "epoch_batches_done",
        (json_int_t)MIN(r->now.epoch_done, r->config.batches_per_epoch), "epoch_batches_total",
        (json_int_t)r->config.batches_per_epoch, "loss", json_number(r->now.metrics[0]), "metrics",
        metrics_json(r, r->now.metrics), "examples_per_second", json_number(r->examples_per_second), "workers", r->now.workers, "workers_wanted", MAX(r->config.workers_wanted, r->now.workers),
        "last_checkpoint_step", (json_int_t)r->now.checkpoint_step, "last_update_time", json_number(r->now.updated), "last_step_time", json_number(r->now.stepped));
    if (r->now.has_validation)
        json_object_set_new(v, "validation", metrics_json(r, r->now.validation));
    json_emit(v, out);
}

double recorder_examples_per_second(struct recorder *r)
{
    MUTEX_GUARD(&r->lock);
    return r->examples_per_second;
}

json_t *recorder_to_json(const struct recorder *r)
{
    return json_deep_copy(r->history);
}

int recorder_from_json(struct recorder *r, const struct node *n, int64_t entries, struct err *e)
{
    if (history_take(r->history, n, entries, e) < 0)
        return -1;
    MUTEX_GUARD(&r->lock);
    show_history(r);
    return 0;
}

static json_t *read_history(const struct recorder *r)
{
    auto_free char *path = output_path(r->config.output_dir, "history.json");
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *v = NULL;
    struct err e = { 0 };
    if (!file_exists(path))
        return NULL;
    if (file_read(path, HISTORY_MAX, &text, &e) < 0 || json_parse(text.data, text.len, path, &v, &e) < 0) {
        log_warning("the history of earlier epochs is not taken over: %s", e.msg);
        return NULL;
    }
    return json_incref(json_object_get(v, "history"));
}

static void forget_sums(void *user, struct tally *t)
{
    tally_forget_before(t, *(int64_t *)user);
}

int64_t recorder_resume(struct recorder *r, int64_t most, struct coordinator *c)
{
    json_auto_t *found = read_history(r);
    struct node n = node_root(found, NULL);
    struct err ignored;
    if (found != NULL && history_continues(found, r->history))
        (void)!history_take(r->history, &n, history_entries(found), &ignored);
    history_level(r->history, MIN(history_entries(r->history), most));
    int64_t entries = history_entries(r->history);
    coordinator_tally(c, forget_sums, &entries);
    MUTEX_GUARD(&r->lock);
    show_history(r);
    return entries;
}
