/* What the chief reports about training: the lines of steps and epochs, the values of the summaries, history.json.
 * /progress is in reporter_progress.c. */
#include "chief/reporter.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "chief/history.h"
#include "chief/output_dir.h"
#include "chief/reporter_internal.h"

enum {
    NAME_MAX_LEN = 64,
    RATE_MS = 500, /* rates are means over at least this time */
    RATE_FIRST_MS = 10,
    HISTORY_MS = 1000, /* between two writes of history.json */
    HISTORY_MAX = 64 << 20,
};

/* ---- summaries ---- */

static json_t *hparams_of(const struct reporter *r)
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

int reporter_begin(struct reporter *r, int64_t step, struct err *e)
{
    json_auto_t *hparams = hparams_of(r);
    char tags[METRICS_MAX][NAME_MAX_LEN];
    const char *names[METRICS_MAX];
    for (size_t i = 0; i < r->nmetrics; i++) {
        str_fmt(tags[i], sizeof(tags[i]), "epoch_%s", model_metric_name(r->config.model, i));
        names[i] = tags[i];
    }
    /* Sessions of one group are one trial to TensorBoard: each run is its own, over its restarts. */
    auto_free char *trial = xasprintf("%s %s", r->config.job->name, r->config.job_uid);
    const struct summary_session session = {
        .hparams = hparams, .metrics = names, .nmetrics = r->nmetrics, .trial = trial
    };
    return summary_writer_begin(r->summaries, step, &session, e);
}

int reporter_new(const struct reporter_config *config, int64_t resumed_step, struct reporter **ret, struct err *e)
{
    AUTO(reporter) *r = xcalloc(1, sizeof(*r));
    r->config = *config;
    mutex_init(&r->lock);
    r->nmetrics = model_metrics(config->model);
    if (r->nmetrics > METRICS_MAX)
        return err_set(e, ERR_INPUT, "%zu metrics, at most %d", r->nmetrics, METRICS_MAX);
    r->history = history_new(config->model, job_evaluates(config->job));
    r->history_changed = true; /* the file may be of another job */
    r->logged_step = MAX(resumed_step, 0);
    r->now.checkpoint_step = resumed_step;
    r->now.end = config->total;
    str_fmt(r->now.state, sizeof(r->now.state), "starting");
    for (size_t i = 0; i < METRICS_MAX; i++)
        r->now.metrics[i] = (double)NAN;
    auto_free char *dir = output_dir_summaries(config->output_dir, config->job->summaries.directory);
    if (summary_writer_open(dir, job_evaluates(config->job), config->report, &r->summaries, e) < 0)
        return -1;
    *ret = TAKE(r);
    return 0;
}

void reporter_free(struct reporter *r)
{
    if (r == NULL)
        return;
    summary_writer_free(r->summaries);
    json_decref(r->history);
    mutex_fini(&r->lock);
    free(r);
}

/* ---- each poll ---- */

struct taken { /* what one read of the epoch metrics collects */
    struct reporter *r;
    int64_t epoch, window_step;
    double epoch_metrics[METRICS_MAX], recent[METRICS_MAX], window[METRICS_MAX];
    int64_t epoch_batches, recent_batches;
    bool take_recent, flush;
    int got_window;
};

static void visit_metrics(void *user, struct epoch_metrics *t)
{
    struct taken *x = user;
    x->epoch_batches = epoch_metrics_of(t, x->epoch, x->epoch_metrics);
    x->recent_batches = x->take_recent ? epoch_metrics_take_recent(t, x->recent) : epoch_metrics_recent(t, x->recent);
}

static void visit_window(void *user, struct epoch_metrics *t)
{
    struct taken *x = user;
    x->got_window = epoch_metrics_take_window(t, x->flush, &x->window_step, x->window);
}

/* Of the update after t updates, which is that of group t - step_offset but for batches that overtook each other. */
static double rate_of(const struct reporter *r, int64_t t)
{
    double own = optimizer_learning_rate(model_optimizer(r->config.model), t);
    return r->config.rates != NULL
               ? rates_at(r->config.rates, groups_ordinal(&r->config.groups, MAX(t - r->config.step_offset, 0)), own)
               : own;
}

static void write_known(struct reporter *r, int64_t step, const char *tag, double value)
{
    if (!isnan(value))
        summary_writer_train(r->summaries, step, tag, value);
}

/* The values of the metrics, and what the training was like since the last point. */
static void write_point(struct reporter *r, int64_t step, const double *metrics)
{
    for (size_t i = 0; i < r->nmetrics; i++)
        summary_writer_train(r->summaries, step, model_metric_name(r->config.model, i), metrics[i]);
    summary_writer_train(r->summaries, step, "learning_rate", rate_of(r, MAX(step - 1, 0)));
    write_known(r, step, "global_step/sec", r->pace.steps_per_second);
    write_known(r, step, "examples/sec", r->pace.examples_per_second);
    write_known(r, step, "staleness", r->pace.staleness);
}

/* Returns whether there was one. */
static bool write_windows(struct reporter *r, struct coordinator *c, bool flush_all)
{
    bool any = false;
    struct taken x = { .r = r, .flush = flush_all };
    for (;;) {
        coordinator_metrics(c, visit_window, &x);
        if (!x.got_window)
            break;
        write_point(r, groups_below(&r->config.groups, x.window_step) + r->config.step_offset, x.window);
        any = true;
    }
    return any;
}

/* ---- rates ---- */

static struct pace pace_between(const struct reporter *r, const struct pace_mark *from, const struct pace_mark *to)
{
    double per_step =
        (double)r->config.space.examples / (double)groups_below(&r->config.groups, r->config.batches_per_epoch);
    uint64_t pushes = to->pushes - from->pushes;
    struct pace p = { (double)NAN, (double)NAN, (double)NAN };
    if (from->ms > 0 && to->ms > from->ms) {
        p.steps_per_second = 1000.0 * (double)MAX(to->step - from->step, 0) / (double)(to->ms - from->ms);
        p.examples_per_second = p.steps_per_second * per_step;
    }
    if (pushes > 0)
        p.staleness = (double)(to->staleness - from->staleness) / (double)pushes;
    return p;
}

/* The rates begin with the first step that this process sees. */
static void await_first_step(struct reporter *r, const struct pace_mark *now)
{
    r->stepped = r->stepped || (r->logged.ms > 0 && now->step != r->logged.step);
    if (!r->stepped)
        r->logged = r->written = r->measured = *now;
}

static void measure(struct reporter *r, const struct pace_mark *now)
{
    int64_t ms = now->ms - r->measured.ms;
    if (ms < (r->examples_per_second > 0 ? RATE_MS : RATE_FIRST_MS) || now->step == r->measured.step)
        return;
    const struct pace p = pace_between(r, &r->measured, now);
    r->measured = *now;
    MUTEX_GUARD(&r->lock);
    r->examples_per_second = p.examples_per_second;
}

static void log_line(struct reporter *r, const struct pace_mark *now, const struct coordinator_view *coord,
                     const struct taken *x)
{
    const struct pace pace = pace_between(r, &r->logged, now);
    struct log_field f[METRICS_MAX + 8];
    int n = 0;
    char epoch[48], workers[32];
    str_fmt(epoch, sizeof(epoch), "%lld/%lld",
            (long long)MIN(x->epoch + 1, r->config.job->fit.epochs > 0 ? r->config.job->fit.epochs : INT64_MAX),
            (long long)((r->config.total + r->config.batches_per_epoch - 1) / r->config.batches_per_epoch));
    str_fmt(workers, sizeof(workers), "%d/%d", coord->training, MAX(r->config.workers_wanted, coord->workers));
    f[n++] = (struct log_field)LOG_INT("step", now->step);
    f[n++] = (struct log_field)LOG_STR("epoch", epoch);
    for (size_t i = 0; i < r->nmetrics; i++)
        f[n++] = (struct log_field)LOG_NUM(model_metric_name(r->config.model, i), x->recent[i]);
    if (!isnan(pace.examples_per_second))
        f[n++] = (struct log_field)LOG_INT("examples/s", pace.examples_per_second + 0.5);
    if (!isnan(pace.staleness))
        f[n++] = (struct log_field){ .key = "staleness", .kind = LOG_FIELD_NUM, .d = pace.staleness, .digits = 2 };
    f[n++] = (struct log_field)LOG_STR("workers", workers);
    report_fields(r->config.report, LOG_INFO, "", n, f);
    r->logged = *now;
}

static void update_progress(struct reporter *r, const struct ps_set_view *ps_set, const struct coordinator_view *coord,
                            const struct taken *x)
{
    MUTEX_GUARD(&r->lock);
    double now = clock_wall();
    if (ps_set->step > r->now.step && r->now.updated > 0) /* the first poll sees the state of an earlier process */
        r->now.stepped = now;
    r->now.step = ps_set->step;
    r->now.done = coord->done;
    r->now.epoch = x->epoch;
    r->now.epoch_done = MAX(coord->done - x->epoch * r->config.batches_per_epoch, 0);
    r->now.workers = coord->training;
    r->now.connected = coord->workers;
    r->now.updated = now;
    if (x->epoch_batches > 0)
        memcpy(r->now.metrics, x->epoch_metrics, r->nmetrics * sizeof(double));
}

void reporter_poll(struct reporter *r, const struct ps_set_view *ps_set, const struct coordinator_view *coord,
                   struct coordinator *c, int64_t now_ms)
{
    int64_t every = r->config.job->fit.log_every_steps, last = r->config.total - 1;
    struct taken x = { .r = r, .epoch = MIN(MAX(coord->done_low - 1, 0), MAX(last, 0)) / r->config.batches_per_epoch };
    bool crossed =
        every > 0 && (ps_set->step / every > r->logged_step / every || (r->logged_step == 0 && ps_set->step > 0));
    double seconds = r->config.job->summaries.every_seconds;
    bool timed = seconds > 0 && (double)(now_ms - r->summary_ms) >= seconds * 1000.0;
    const struct pace_mark now = {
        .ms = now_ms, .step = ps_set->step, .pushes = coord->steps, .staleness = coord->staleness_sum
    };
    x.take_recent = crossed || timed;
    await_first_step(r, &now);
    measure(r, &now);
    coordinator_metrics(c, visit_metrics, &x);
    update_progress(r, ps_set, coord, &x);
    if (crossed && x.recent_batches > 0) {
        log_line(r, &now, coord, &x);
        r->logged_step = ps_set->step;
    }
    r->pace = pace_between(r, &r->written, &now);
    if (timed && x.recent_batches > 0) { /* summaries by seconds: one point of everything since the last */
        write_point(r, ps_set->step, x.recent);
        r->summary_ms = now_ms;
        r->written = now;
    }
    if (write_windows(r, c, false))
        r->written = now;
    summary_writer_sync(r->summaries, now_ms, false);
}

/* ---- epochs ---- */

static void log_epoch(const struct reporter *r, int64_t epoch, const double *validation)
{
    struct log_field f[2 * METRICS_MAX + 1];
    char names[METRICS_MAX][NAME_MAX_LEN], text[48];
    int n = 0;
    str_fmt(text, sizeof(text), "epoch %lld/%lld done", (long long)epoch + 1, (long long)reporter_epochs(r));
    for (size_t i = 0; i < r->nmetrics; i++) {
        double train; /* not known: the reports of all its batches were lost with an earlier chief */
        if (history_find(r->history, epoch, model_metric_name(r->config.model, i), &train))
            f[n++] = (struct log_field)LOG_NUM(model_metric_name(r->config.model, i), train);
    }
    for (size_t i = 0; validation != NULL && i < r->nmetrics; i++) {
        str_fmt(names[i], sizeof(names[i]), "val_%s", model_metric_name(r->config.model, i));
        f[n++] = (struct log_field)LOG_NUM(names[i], validation[i]);
    }
    report_fields(r->config.report, LOG_INFO, text, n, f);
}

static void visit_epoch(void *user, struct epoch_metrics *t)
{
    struct taken *x = user;
    x->epoch_batches = epoch_metrics_of(t, x->epoch, x->epoch_metrics);
    epoch_metrics_forget_before(t, x->epoch + 1);
}

void reporter_epoch(struct reporter *r, int64_t epoch, struct coordinator *c)
{
    struct taken x = { .r = r, .epoch = epoch };
    coordinator_metrics(c, visit_epoch, &x);
    history_add(r->history, epoch);
    r->history_changed = true;
    /* No batches: their reports were lost with an earlier chief. */
    for (size_t i = 0; x.epoch_batches > 0 && i < r->nmetrics; i++) {
        char tag[NAME_MAX_LEN + 8];
        str_fmt(tag, sizeof(tag), "epoch_%s", model_metric_name(r->config.model, i));
        history_set(r->history, epoch, model_metric_name(r->config.model, i), x.epoch_metrics[i]);
        summary_writer_train(r->summaries, epoch, tag, x.epoch_metrics[i]);
    }
}

static void record_validation(struct reporter *r, int64_t epoch, int64_t step, const double *validation)
{
    for (size_t i = 0; i < r->nmetrics; i++) {
        const char *name = model_metric_name(r->config.model, i);
        char tag[NAME_MAX_LEN + 8], val[NAME_MAX_LEN + 8];
        str_fmt(tag, sizeof(tag), "epoch_%s", name);
        str_fmt(val, sizeof(val), "val_%s", name);
        history_set(r->history, epoch, val, validation[i]);
        if (epoch >= 0)
            summary_writer_validation(r->summaries, epoch, tag, validation[i]);
        summary_writer_validation(r->summaries, step, name, validation[i]);
    }
    r->history_changed = true;
    MUTEX_GUARD(&r->lock);
    r->now.has_validation = true;
    memcpy(r->now.validation, validation, r->nmetrics * sizeof(double));
}

void reporter_evaluated(struct reporter *r, int64_t epoch, int64_t step, const double *validation)
{
    if (validation != NULL)
        record_validation(r, epoch, step, validation);
    if (epoch >= 0)
        log_epoch(r, epoch, validation);
}

void reporter_histograms(struct reporter *r, int64_t step, const float *params)
{
    for (size_t i = 0; r->config.job->summaries.histograms && i < model_variables(r->config.model); i++) {
        const struct variable *v = model_variable(r->config.model, i);
        summary_writer_histogram(r->summaries, step, v->name, params + v->offset, v->count);
    }
}

void reporter_checkpoint(struct reporter *r, int64_t step, const char *prefix)
{
    summary_writer_checkpoint(r->summaries, step, prefix);
    MUTEX_GUARD(&r->lock);
    r->now.checkpoint_step = step;
}

static void log_final(const struct reporter *r, const double *final)
{
    AUTO_FINI(buf) line = BUF_INIT;
    for (size_t i = 0; i < r->nmetrics; i++)
        buf_printf(&line, "%sTest %s: %.4f", i > 0 ? ", " : "", model_metric_name(r->config.model, i), final[i]);
    report_info(r->config.report, "%s", line.data);
}

void reporter_shares(struct reporter *r, const struct coordinator_view *coord, uint64_t apply_ns, double seconds,
                     int64_t steps)
{
    (void)r;
    double sum = (double)(coord->compute_ns + coord->network_ns + coord->data_ns + coord->wait_ns);
    if (sum <= 0 || seconds <= 0)
        return;
    report_info(
        r->config.report,
        "%lld steps in %.2f s (%.0f steps/s); workers' time: compute %.0f %%, network %.0f %% (of it apply %.0f "
        "%%), data %.0f %%, wait %.0f %%",
        (long long)steps, seconds, (double)steps / seconds, 100 * (double)coord->compute_ns / sum,
        100 * (double)coord->network_ns / sum, 100 * (double)apply_ns / sum, 100 * (double)coord->data_ns / sum,
        100 * (double)coord->wait_ns / sum);
}

/* With the lock held. */
static int write_history(struct reporter *r, const struct job_result *end, const double *final, struct err *e)
{
    json_auto_t *out = json_pack("{s:O, s:I}", "history", r->history, "step", (json_int_t)end->step);
    job_result_json(end, out);
    if (json_array_size(end->best) > 0)
        json_object_set_new(out, "best", json_deep_copy(end->best));
    if (final != NULL)
        json_object_set_new(out, "final", reporter_metrics_json(r, final));
    return output_dir_json(r->config.output_dir, "history.json", out, e);
}

int reporter_finish(struct reporter *r, const struct job_result *end, struct coordinator *c, const double *final,
                    struct err *e)
{
    if (write_history(r, end, final, e) < 0)
        return -1;
    r->history_changed = false;
    (void)write_windows(r, c, true);
    if (final != NULL)
        log_final(r, final);
    if (end->weights_sha256[0] != '\0')
        report_info(r->config.report, "SHA-256 of the weights: %s", end->weights_sha256);
    summary_writer_end(r->summaries, final != NULL);
    MUTEX_GUARD(&r->lock);
    r->now.step = end->step;
    memcpy(r->now.weights_sha256, end->weights_sha256, sizeof(r->now.weights_sha256));
    if (!str_eq(r->now.state, "failed"))
        reporter_all_done(r);
    return 0;
}

int reporter_save_history(struct reporter *r, int64_t now_ms, bool at_once, struct err *e)
{
    if (!r->history_changed || (!at_once && r->history_ms != 0 && now_ms - r->history_ms < HISTORY_MS))
        return 0;
    r->history_ms = now_ms;
    if (at_once)
        summary_writer_sync(r->summaries, now_ms, true);
    const struct job_result now = { .step = r->now.step, .stopped_epoch = -1 };
    if (write_history(r, &now, NULL, e) < 0)
        return -1;
    r->history_changed = false;
    return 0;
}

bool reporter_get(const struct reporter *r, int64_t epoch, const char *name, double *ret)
{
    return history_find(r->history, epoch, name, ret);
}

void reporter_set(struct reporter *r, int64_t epoch, const char *name, double value)
{
    history_set(r->history, epoch, name, value);
    r->history_changed = true;
}

int64_t reporter_evaluations(const struct reporter *r)
{
    int64_t n = history_entries(r->history);
    double ignored;
    while (n > 0 && !history_find(r->history, n - 1, "val_loss", &ignored))
        n--;
    return n;
}

json_t *reporter_to_json(const struct reporter *r)
{
    return json_deep_copy(r->history);
}

int reporter_from_json(struct reporter *r, const struct node *n, int64_t entries, struct err *e)
{
    if (history_take(r->history, n, entries, e) < 0)
        return -1;
    MUTEX_GUARD(&r->lock);
    reporter_show_history(r);
    return 0;
}

static json_t *read_history(const struct reporter *r)
{
    auto_free char *path = output_dir_path(r->config.output_dir, "history.json");
    AUTO_FINI(buf) text = BUF_INIT;
    json_auto_t *v = NULL;
    struct err e = { 0 };
    if (!file_exists(path))
        return NULL;
    if (file_read(path, HISTORY_MAX, &text, &e) < 0 || json_parse(text.data, text.len, path, &v, &e) < 0) {
        report_warning(r->config.report, "the history of earlier epochs was ignored: %s", e.msg);
        return NULL;
    }
    return json_incref(json_object_get(v, "history"));
}

static void forget_sums(void *user, struct epoch_metrics *t)
{
    epoch_metrics_forget_before(t, *(int64_t *)user);
}

int64_t reporter_resume(struct reporter *r, int64_t most, struct coordinator *c)
{
    json_auto_t *found = read_history(r);
    struct node n = node_root(found, NULL);
    struct err ignored;
    if (found != NULL && history_continues(found, r->history))
        (void)!history_take(r->history, &n, history_entries(found), &ignored);
    history_level(r->history, MIN(history_entries(r->history), most));
    int64_t entries = history_entries(r->history);
    coordinator_metrics(c, forget_sums, &entries);
    MUTEX_GUARD(&r->lock);
    reporter_show_history(r);
    return entries;
}
