/* Carries out what nn/callback.c decides. A decision is saved in a checkpoint before it is sent to any ps or worker,
 * so that it is made once, no matter which process is killed. */
#include "chief/chief_callbacks.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "chief/chief_internal.h"
#include "params/params_admin.h"

enum { EXPLAIN_FIRST_MS = 1000, LINE_MAX = 400 };

void decided_fini(struct decided *d)
{
    for (size_t i = 0; i < CALLBACKS_MAX; i++)
        free(d->best[i]);
    rates_fini(&d->rates);
    json_decref(d->kept);
    *d = (struct decided){ .stopped = -1 };
}

static void decided_copy(struct decided *to, const struct decided *from)
{
    *to = *from;
    to->rates = (struct rates)RATES_INIT;
    to->kept = NULL;
    rates_copy(&to->rates, &from->rates);
    for (size_t i = 0; i < CALLBACKS_MAX; i++) {
        to->best[i] = from->best[i] != NULL ? xstrdup(from->best[i]) : NULL;
        to->keeps[i] = false;
    }
}

int chief_callbacks_open(struct chief *c, struct err *e)
{
    const struct chief_config *k = &c->config;
    c->decisions.now.stopped = -1;
    params_set_rates(k->params, &c->decisions.now.rates);
    return callbacks_parse(&k->job->callbacks, k->model, job_evaluates(k->job), &c->decisions.list, e);
}

void chief_callbacks_fini(struct chief *c)
{
    callbacks_free(c->decisions.list);
    decided_fini(&c->decisions.now);
    strlist_fini(&c->decisions.kept);
}

static double base_rate(const struct chief *c)
{
    return optimizer_learning_rate(model_optimizer(c->config.model), 0);
}

static int64_t epochs_of(const struct chief *c)
{
    return (c->total + c->batches_per_epoch - 1) / c->batches_per_epoch;
}

/* ---- to and from checkpoints ---- */

static json_t *name_or_null(const char *name)
{
    return name != NULL ? json_string(name) : json_null();
}

static json_t *callback_to_json(const struct callbacks *list, const struct decided *d, size_t i)
{
    const struct callback_state *s = &d->states[i];
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:o}", "callback", callback_json(list, i), "best",
                     s->has_best ? json_number(s->best) : json_null(), "wait", (json_int_t)s->wait, "cooldown",
                     (json_int_t)s->cooldown, "bestEpoch", (json_int_t)s->best_epoch, "checkpoint",
                     name_or_null(d->best[i]));
}

static json_t *decisions_to_json(const struct chief *c, const struct decided *d)
{
    json_t *list = json_array();
    for (size_t i = 0; i < callbacks_count(c->decisions.list); i++)
        json_array_append_new(list, callback_to_json(c->decisions.list, d, i));
    return json_pack("{s:I, s:I, s:I, s:f, s:o, s:o}", "epochs", (json_int_t)d->epochs, "stopped",
                     (json_int_t)d->stopped, "of", (json_int_t)epochs_of(c), "learningRate", base_rate(c), "rates",
                     rates_to_json(&d->rates), "list", list);
}

void chief_callbacks_save(struct chief *c, const char *prefix, json_t *state)
{
    struct decisions *k = &c->decisions;
    struct decided *d = k->saving != NULL ? k->saving : &k->now;
    const char *slash = strrchr(prefix, '/');
    if (k->list == NULL)
        return;
    strlist_fini(&k->kept);
    k->kept = (struct strlist){ 0 };
    for (size_t i = 0; i < callbacks_count(k->list); i++) {
        if (d->keeps[i]) {
            free(d->best[i]);
            d->best[i] = xstrdup(slash != NULL ? slash + 1 : prefix);
        }
        if (d->best[i] != NULL)
            strlist_add(&k->kept, d->best[i]);
    }
    json_object_set_new(state, "callbacks", decisions_to_json(c, d));
}

/* NaN and the infinities are strings in JSON. */
static int read_best(const struct node *n, struct callback_state *s, struct err *e)
{
    s->has_best = node_present(n);
    if (!s->has_best)
        return 0;
    if (json_is_string(n->v)) {
        s->best = strtod(json_string_value(n->v), NULL);
        return 0;
    }
    return node_f64(n, &s->best, e);
}

/* A callback whose arguments have changed begins without state. */
static int read_callback(struct decisions *k, size_t i, const struct node *n, bool *ret_same, struct err *e)
{
    struct callback_state *s = &k->now.states[i];
    struct node written = node_get(n, "callback"), best = node_get(n, "best");
    const char *name = NULL;
    json_auto_t *mine = callback_json(k->list, i);
    bool same = json_equal(written.v, mine);
    if (same && (read_best(&best, s, e) < 0 || node_i64_or(n, "wait", 0, 0, INT64_MAX / 2, &s->wait, e) < 0 ||
                 node_i64_or(n, "cooldown", 0, 0, INT64_MAX, &s->cooldown, e) < 0 ||
                 node_i64_or(n, "bestEpoch", 0, 0, INT64_MAX, &s->best_epoch, e) < 0 ||
                 node_str_or(n, "checkpoint", NULL, &name, e) < 0))
        return -1;
    if (name != NULL)
        k->now.best[i] = xstrdup(name);
    *ret_same = same;
    return 0;
}

/* Rates set by callbacks are kept as long as the base rate of the manifest is the same. After --rebase ordinals name
 * other batches, so the last rate holds from the beginning. */
static int read_rates(struct chief *c, const struct node *n, bool rebased, struct err *e)
{
    struct rates *rates = &c->decisions.now.rates;
    struct node list = node_get(n, "rates"), base = node_get(n, "learningRate");
    double began;
    if (node_f64(&base, &began, e) < 0 || rates_from_json(rates, &list, e) < 0)
        return -1;
    if (rates->n == 0)
        return 0;
    double last = rates->rate[rates->n - 1];
    if (memcmp(&began, &(double){ base_rate(c) }, sizeof(began)) != 0 || !callbacks_set_rate(c->decisions.list)) {
        report_info(c->config.report,
                    "the learning rate %g set by ReduceLROnPlateau is dropped: the manifest has changed", last);
        rates_fini(rates);
    } else if (rebased) {
        rates_fini(rates);
        rates_add(rates, 0, last);
    }
    return 0;
}

/* More epochs, or other callbacks: as with another fit() in Keras training continues, and patience is reset. */
static void clear_stop(struct chief *c)
{
    struct decided *d = &c->decisions.now;
    report_info(c->config.report,
                "a callback ended training after epoch %lld; training continues because the manifest has changed",
                (long long)d->stopped + 1);
    d->stopped = -1;
    for (size_t i = 0; i < CALLBACKS_MAX; i++)
        d->states[i].wait = 0;
}

/* An earlier chief may have been killed before it could report its decision. */
static void report_restored(const struct chief *c)
{
    const struct decided *d = &c->decisions.now;
    if (d->stopped >= 0)
        report_info(c->config.report, "according to the checkpoint a callback ended training after epoch %lld",
                    (long long)d->stopped + 1);
    else if (d->rates.n > 0)
        report_info(c->config.report, "the learning rate is %.6g from epoch %lld on, set by ReduceLROnPlateau",
                    d->rates.rate[d->rates.n - 1],
                    (long long)(d->rates.from[d->rates.n - 1] / c->batches_per_epoch) + 1);
}

int chief_callbacks_restore(struct chief *c, const struct node *state, bool rebased, struct err *e)
{
    struct decisions *k = &c->decisions;
    struct node n = node_get(state, "callbacks"), list = node_get(&n, "list");
    int64_t of;
    bool same = node_size(&list) == callbacks_count(k->list);
    if (k->list == NULL || !node_present(&n))
        return 0;
    for (size_t i = 0; i < callbacks_count(k->list); i++) {
        struct node one = node_item(&list, i);
        bool as_it_was;
        if (read_callback(k, i, &one, &as_it_was, e) < 0)
            return -1;
        same = same && as_it_was;
    }
    if (node_i64_or(&n, "epochs", 0, 0, INT64_MAX, &k->now.epochs, e) < 0 ||
        node_i64_or(&n, "stopped", -1, -1, INT64_MAX, &k->now.stopped, e) < 0 ||
        node_i64_or(&n, "of", 0, 0, INT64_MAX, &of, e) < 0 || read_rates(c, &n, rebased, e) < 0)
        return -1;
    if (k->now.stopped >= 0 && (!same || epochs_of(c) > of))
        clear_stop(c);
    if (k->now.stopped >= 0)
        reporter_ends(c->reporter, chief_decided_end(c));
    report_restored(c);
    k->from_checkpoint = !rebased;
    return 0;
}

/* New callbacks decide on the epochs to come only. */
void chief_callbacks_begin(struct chief *c, int64_t step)
{
    struct decisions *k = &c->decisions;
    if (k->list == NULL)
        return;
    if (!k->from_checkpoint || k->now.epochs > c->recorded_epochs)
        k->now.epochs = c->recorded_epochs;
    k->valued = reporter_evaluations(c->reporter);
    c->end_saved = k->now.stopped >= 0 && c->saved_step == step;
}

/* ---- state ---- */

int64_t chief_decided_end(const struct chief *c)
{
    const struct decided *d = &c->decisions.now;
    if (c->decisions.list == NULL)
        return c->total;
    return chief_epoch_end(c, d->stopped >= 0 ? d->stopped : d->epochs);
}

bool chief_stopped(const struct chief *c)
{
    return c->decisions.list != NULL && c->decisions.now.stopped >= 0;
}

bool chief_decides_epoch(const struct chief *c, int64_t epoch)
{
    return callbacks_read_evaluation(c->decisions.list) && !chief_stopped(c) && epoch >= c->decisions.now.epochs;
}

static bool lacks_evaluation(const struct chief *c)
{
    return chief_decides_epoch(c, c->recorded_epochs - 1) && c->decisions.valued < c->recorded_epochs;
}

bool chief_wants_values(const struct chief *c, int64_t over)
{
    return over == c->recorded_epochs && over > 0 && lacks_evaluation(c) && !c->evaluation.running;
}

void chief_decide_again(struct chief *c)
{
    struct decisions *k = &c->decisions;
    if (c->recorded_epochs == 0 || !chief_decides_epoch(c, c->recorded_epochs - 1))
        return;
    k->valued = MIN(k->valued, k->now.epochs);
    if (c->evaluation.running && c->evaluation.epoch >= k->now.epochs)
        atomic_store(&c->evaluation.cancelled, true);
}

/* ---- a decision ---- */

static void add_line(struct strlist *lines, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void add_line(struct strlist *lines, const char *fmt, ...)
{
    char line[LINE_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    strlist_add(lines, line);
}

static void describe_verdict(const struct callbacks *list, size_t i, int64_t epoch, const struct callback_verdict *v,
                             const struct callback_state *s, struct strlist *lines)
{
    const char *name = callback_name(list, i), *monitor = callback_monitor(list, i);
    if (v->stop)
        add_line(lines, "%s ends training after epoch %lld: %s was best in epoch %lld (%.6g)", name,
                 (long long)epoch + 1, monitor, (long long)s->best_epoch + 1, s->best);
    if (v->set_rate)
        add_line(lines, "%s sets the learning rate to %.6g from epoch %lld on: %s was best in epoch %lld (%.6g)", name,
                 v->rate, (long long)epoch + 2, monitor, (long long)s->best_epoch + 1, s->best);
    if (v->keep)
        add_line(lines, "%s keeps the checkpoint of epoch %lld: %s %.6g is the best so far", name, (long long)epoch + 1,
                 monitor, s->best);
}

/* here: the ps still hold the values of the epoch's end, so that a checkpoint of them can be kept. */
static void decide_epoch(struct chief *c, struct decided *d, bool here, struct strlist *lines)
{
    const struct callbacks *list = c->decisions.list;
    const int64_t epoch = d->epochs, first = epoch * c->batches_per_epoch, next = first + c->batches_per_epoch;
    if (callbacks_set_rate(list))
        reporter_set(c->reporter, epoch, "learning_rate",
                     str_float_decimal((float)rates_at(&d->rates, first, base_rate(c))));
    for (size_t i = 0; i < callbacks_count(list); i++) {
        const char *monitor = callback_monitor(list, i);
        struct callback_epoch in = { .epoch = epoch, .rate = rates_at(&d->rates, next, base_rate(c)) };
        in.known = monitor != NULL && reporter_get(c->reporter, epoch, monitor, &in.value);
        if (monitor != NULL && !in.known)
            add_line(lines, "%s cannot decide on epoch %lld: its %s is not known", callback_name(list, i),
                     (long long)epoch + 1, monitor);
        struct callback_verdict v = callback_decide(list, i, &in, &d->states[i]);
        if (v.set_rate)
            rates_add(&d->rates, next, v.rate);
        if (v.stop)
            d->stopped = epoch;
        d->keeps[i] = v.keep && here;
        if (v.keep && !here) {
            free(d->best[i]);
            d->best[i] = NULL;
        }
        describe_verdict(list, i, epoch, &v, &d->states[i], lines);
    }
    d->epochs = epoch + 1;
}

static void decide_all(struct chief *c, struct decided *next, struct strlist *lines)
{
    decided_copy(next, &c->decisions.now);
    while (next->epochs < c->recorded_epochs && next->stopped < 0)
        decide_epoch(c, next, next->epochs + 1 == c->recorded_epochs, lines);
}

static void report_lines(const struct report *report, const struct strlist *lines)
{
    for (size_t i = 0; i < lines->n; i++)
        report_info(report, "%s", lines->items[i]);
}

/* The checkpoint of the decision is saved: from here on it is in force. */
static void apply_decisions(struct chief *c, struct decided *next, const struct strlist *lines)
{
    struct decisions *k = &c->decisions;
    decided_fini(&k->now);
    k->now = *next;
    *next = (struct decided){ .stopped = -1 };
    k->announced = false;
    report_lines(c->config.report, lines);
    if (k->now.stopped < 0)
        return;
    reporter_ends(c->reporter, chief_decided_end(c));
    c->end_saved = true; /* in the checkpoint of the decision */
    if (c->evaluation.step == c->saved_step && c->evaluation.epoch == k->now.stopped && !c->evaluation.running &&
        c->evaluation.result == 0) {
        memcpy(c->final, c->evaluation.values, model_metrics(c->config.model) * sizeof(*c->final));
        c->final_step = c->evaluation.step;
    }
}

static int decide_and_save(struct chief *c, struct err *e)
{
    AUTO_FINI(decided) next = { .stopped = -1 };
    AUTO_FINI(strlist) lines = { 0 };
    struct err cause = { 0 };
    if (clock_ms() < c->storage_retry_ms)
        return 0;
    decide_all(c, &next, &lines);
    c->decisions.saving = &next;
    int saved = chief_save(c, &cause);
    c->decisions.saving = NULL;
    if (saved < 0)
        return chief_blames_storage(c, &cause) ? chief_await_storage(c, "to save what callbacks decided", &cause, e)
                                               : err_set(e, cause.code, "%s", cause.msg);
    chief_wait_over(c, &c->storage_wait);
    apply_decisions(c, &next, &lines);
    return 1;
}

static int announce_decisions(struct chief *c, struct err *e)
{
    struct decisions *k = &c->decisions;
    if (k->announced)
        return 1;
    if (ps_set_announce(c->ps_set, e) < 0)
        return -1;
    k->announced = true;
    return 1;
}

int chief_decide(struct chief *c, struct err *e)
{
    struct decisions *k = &c->decisions;
    if (k->list == NULL)
        return 1;
    if (k->now.epochs < c->recorded_epochs && !chief_stopped(c)) {
        if (lacks_evaluation(c)) {
            char text[COORDINATOR_TEXT_MAX];
            str_fmt(text, sizeof(text), "the evaluation of epoch %lld, which callbacks read, before epoch %lld begins",
                    (long long)c->recorded_epochs, (long long)c->recorded_epochs + 1);
            chief_wait(c, &c->decision_wait, EXPLAIN_FIRST_MS, text);
            return 0;
        }
        chief_wait_over(c, &c->decision_wait);
        int decided = decide_and_save(c, e);
        if (decided <= 0)
            return decided;
    }
    return announce_decisions(c, e);
}

/* ---- the end ---- */

static bool is_whole(const struct chief *c, const char *name)
{
    auto_free char *prefix = xasprintf("%s/%s", c->checkpoints, name);
    struct err e = { 0 };
    if (checkpoint_verify(prefix, &e) == 0)
        return true;
    report_warning(c->config.report,
                   "the checkpoint of the best epoch cannot be used; the last one is the job's result: %s", e.msg);
    return false;
}

static void take_best_metrics(const struct chief *c, int64_t epoch, double *final)
{
    for (size_t i = 0; i < model_metrics(c->config.model); i++) {
        auto_free char *name = xasprintf("val_%s", model_metric_name(c->config.model, i));
        double v;
        if (reporter_get(c->reporter, epoch, name, &v))
            final[i] = v;
    }
}

static json_t *kept_to_json(const struct callbacks *list, const struct decided *d)
{
    json_t *kept = json_array();
    for (size_t i = 0; i < callbacks_count(list); i++) {
        const struct callback_state *s = &d->states[i];
        if (d->best[i] != NULL && s->has_best)
            json_array_append_new(kept, json_pack("{s:s, s:s, s:o, s:I, s:s}", "callback", callback_name(list, i),
                                                  "monitor", callback_monitor(list, i), "value", json_number(s->best),
                                                  "epoch", (json_int_t)s->best_epoch, "checkpoint", d->best[i]));
    }
    return kept;
}

static void tell_kept(const struct chief *c, const struct decided *d, int result)
{
    const struct callbacks *list = c->decisions.list;
    for (size_t i = 0; i < callbacks_count(list); i++)
        if (d->best[i] != NULL && d->states[i].has_best && (int)i != result)
            report_info(c->config.report, "%s kept checkpoint %s of epoch %lld: %s %.6g is the best",
                        callback_name(list, i), d->best[i], (long long)d->states[i].best_epoch + 1,
                        callback_monitor(list, i), d->states[i].best);
}

void chief_callbacks_end(struct chief *c, struct decided *last, double *final, struct job_result *ret)
{
    const struct decisions *k = &c->decisions;
    AUTO_FINI(strlist) lines = { 0 };
    if (k->list == NULL)
        return;
    decide_all(c, last, &lines);
    for (size_t i = 0; i < callbacks_count(k->list); i++) {
        if (last->keeps[i]) {
            free(last->best[i]);
            last->best[i] = xstrdup(c->saved_name);
        }
    }
    int i = callbacks_restoring(k->list);
    ret->stopped_epoch = k->now.stopped;
    if (i >= 0 && last->best[i] != NULL && !is_whole(c, last->best[i])) {
        free(last->best[i]);
        last->best[i] = NULL;
    }
    ret->best = last->kept = kept_to_json(k->list, last);
    tell_kept(c, last, i);
    if (i < 0 || last->best[i] == NULL)
        return;
    ret->checkpoint = last->best[i];
    ret->best_epoch = last->states[i].best_epoch;
    take_best_metrics(c, ret->best_epoch, final);
    report_info(c->config.report, "the job's result is checkpoint %s of epoch %lld: %s %.6g is the best",
                ret->checkpoint, (long long)ret->best_epoch + 1, callback_monitor(k->list, (size_t)i),
                last->states[i].best);
}
