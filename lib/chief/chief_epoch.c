/* Epochs: how far batches are leased, what the history has of an epoch, and its evaluation.
 *
 * If epochs are evaluated, batches are leased up to the end of one until its values are copied. The copy is
 * evaluated in a separate thread while the next epoch trains. There is one copy, so the end of the next epoch waits
 * for it. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "chief/chief_internal.h"
#include "train/strategy.h"

enum { PULL_MS = 60000, REPORTS_MS = 1000, POLL_MS = 10, EXPLAIN_FIRST_MS = 1000 };

/* ---- what is waited for ---- */

int64_t chief_wait(struct chief *c, struct wait_state *w, int64_t first_ms, const char *text)
{
    int64_t now = clock_ms();
    wait_begin(w, now, first_ms);
    coordinator_set_wait_reason(c->coordinator, text);
    if (c->reporter != NULL && c->ending) /* it is opened after the first wait that is possible */
        reporter_state(c->reporter, "finishing", text);
    else if (c->reporter != NULL)
        reporter_waits(c->reporter, w->since_ms, text);
    wait_report(w, now, c->config.report, text);
    return wait_ms(w, now);
}

void chief_wait_over(struct chief *c, struct wait_state *w)
{
    if (!w->on)
        return;
    wait_end(w, clock_ms(), NULL);
    coordinator_set_wait_reason(c->coordinator, "");
    reporter_state(c->reporter, c->ending ? "finishing" : c->began ? "training" : "starting", "");
}

/* ---- how far ---- */

static int64_t epochs_of(const struct chief *c)
{
    return (c->total + c->batches_per_epoch - 1) / c->batches_per_epoch;
}

int64_t chief_epoch_end(const struct chief *c, int64_t epoch)
{
    return MIN((epoch + 1) * c->batches_per_epoch, c->total);
}

int64_t chief_epoch_step(const struct chief *c, int64_t epoch)
{
    return groups_below(&c->groups, chief_epoch_end(c, epoch)) + c->step_offset;
}

bool chief_synchronous(const struct chief *c)
{
    const struct job *job = c->config.job;
    if (c->config.members)
        return true;
    return job->strategy.updates == UPDATES_SYNC && (!c->config.local || job->strategy.name == STRATEGY_MIRRORED);
}

bool chief_exact(const struct chief *c)
{
    return c->config.step_gate != NULL;
}

bool chief_deterministic(const struct chief *c)
{
    return chief_synchronous(c) && c->config.job->strategy.deterministic;
}

int64_t chief_epochs_over(const struct chief *c, int64_t done_low)
{
    return done_low >= c->total ? epochs_of(c) : done_low / c->batches_per_epoch;
}

/* To the end of the next epoch that is evaluated. Single machine: or the next exact checkpoint. */
int64_t chief_next_limit(const struct chief *c, int64_t over, int64_t done_low)
{
    int64_t limit = c->evaluator != NULL ? chief_epoch_end(c, MAX(over, c->recorded_epochs)) : c->total;
    limit = MIN(limit, chief_decided_end(c));
    int64_t every = chief_exact(c) ? c->config.job->checkpoint.every_steps : 0;
    int64_t step = done_low + c->step_offset;
    return every > 0 ? MIN(limit, (step / every + 1) * every - c->step_offset) : limit;
}

/* ---- values ---- */

const char *chief_divergence_cure(const struct chief *c)
{
    const struct job *job = c->config.job;
    return strategy_divergence_cure(strategy_of(job, c->config.local), job->strategy.overlap);
}

int chief_check_finite(const struct chief *c, const struct variable *v, const float *values, size_t n, int64_t step,
                       struct err *e)
{
    if (all_finite(values, n))
        return 0;
    return err_set(e, ERR_DIVERGED,
                   "training diverged: %s holds a value that is not finite (Infinity or NaN) at step %lld; %s", v->name,
                   (long long)step, chief_divergence_cure(c));
}

int chief_pull(struct chief *c, int64_t *ret_min, int64_t *ret_max, struct err *e)
{
    if (params_pull(c->config.params, PULL_MS, e) < 0)
        return -1;
    int64_t least, most;
    const float *vector = params_vector(c->config.params);
    params_versions(c->config.params, &least, &most);
    for (size_t i = 0; i < model_variables(c->config.model); i++) {
        const struct variable *v = model_variable(c->config.model, i);
        if (chief_check_finite(c, v, vector + v->offset, v->count, least, e) < 0)
            return -1;
    }
    *ret_min = least;
    *ret_max = most;
    return 0;
}

int chief_take_values(struct chief *c, int64_t over, struct epoch_values *ret, struct err *e)
{
    int64_t most;
    struct epoch_values values = { 0 };
    bool wanted = over > c->recorded_epochs || chief_wants_values(c, over);
    if (!wanted || (c->evaluator == NULL && !c->config.job->summaries.histograms)) {
        *ret = values;
        return 1;
    }
    if (c->evaluation.running) {
        char text[COORDINATOR_TEXT_MAX];
        str_fmt(text, sizeof(text), "the evaluation of epoch %lld, before epoch %lld begins",
                (long long)c->evaluation.epoch + 1, (long long)over + 1);
        chief_wait(c, &c->evaluation_wait, EXPLAIN_FIRST_MS, text);
        return 0;
    }
    chief_wait_over(c, &c->evaluation_wait);
    if (chief_pull(c, &values.step, &most, e) < 0)
        return -1;
    values.pulled = true;
    values.exact = values.step == most && most == chief_epoch_step(c, over - 1);
    *ret = values;
    return 1;
}

/* ---- the history ---- */

struct reports {
    int64_t epoch, batches;
    double *metrics;
};

static void count_reports(void *user, struct epoch_metrics *t)
{
    struct reports *r = user;
    r->batches = epoch_metrics_of(t, r->epoch, r->metrics);
}

/* The workers' last reports of an epoch may still be on their way. Those of a worker that was lost do not come, and the
 * others train on meanwhile. */
static int await_reports(struct chief *c, int64_t epoch, int64_t deadline, struct err *e)
{
    auto_free double *metrics = xcalloc(model_metrics(c->config.model), sizeof(*metrics));
    struct reports r = { .epoch = epoch, .metrics = metrics };
    int64_t step, wanted = chief_epoch_end(c, epoch) - epoch * c->batches_per_epoch;
    for (bool late = false;; late = clock_ms() >= deadline) {
        struct err cause = { 0 };
        coordinator_metrics(c->coordinator, count_reports, &r);
        if (r.batches >= wanted || late)
            return 0;
        coordinator_wait(c->coordinator, clock_ms() + POLL_MS); /* mostly they come now */
        if (chief_synchronous(c) && chief_observe(c, &step, &cause) < 0 && !chief_worth_waiting(&cause))
            return err_set(e, cause.code, "%s", cause.msg);
    }
}

int chief_record_epochs(struct chief *c, int64_t over, const struct epoch_values *values, struct err *e)
{
    int64_t deadline = clock_ms() + REPORTS_MS; /* for all epochs together: an earlier chief may have seen many end */
    bool some = over > c->recorded_epochs, evaluated = values->exact && c->evaluator != NULL;
    bool again = chief_wants_values(c, over); /* an earlier chief was killed, or a ps lost, before the decision */
    while (c->recorded_epochs < over) {
        int64_t epoch = c->recorded_epochs;
        if (await_reports(c, epoch, deadline, e) < 0)
            return -1;
        reporter_epoch(c->reporter, epoch, c->coordinator);
        c->recorded_epochs = epoch + 1;
        bool later = epoch + 1 == over && (evaluated || (c->ending && c->evaluator != NULL));
        if (!later)
            reporter_evaluated(c->reporter, epoch, -1, NULL);
    }
    if ((!some && !again) || !values->pulled)
        return 0;
    if (evaluated && chief_evaluation_begin(c, over - 1, values->step, false, e) < 0)
        return -1;
    if (!evaluated)
        c->decisions.valued = over; /* there will be no evaluation */
    if (some)
        reporter_histograms(c->reporter, values->step, params_vector(c->config.params));
    return 0;
}

/* ---- evaluation ---- */

static bool evaluation_may_stop(void *user)
{
    struct chief *c = user;
    return stop_count() > 0 || atomic_load(&c->evaluation.cancelled);
}

static void evaluation_thread(void *user)
{
    struct chief *c = user;
    struct evaluation *v = &c->evaluation;
    v->error = (struct err){ 0 };
    v->result =
        evaluator_run(c->evaluator, params_vector(c->config.params), evaluation_may_stop, c, v->values, &v->error);
    atomic_store(&v->over, true);
    coordinator_wake(c->coordinator);
}

int chief_evaluation_begin(struct chief *c, int64_t epoch, int64_t step, bool final, struct err *e)
{
    struct evaluation *v = &c->evaluation;
    v->epoch = epoch;
    v->step = step;
    v->final = final;
    atomic_store(&v->over, false);
    atomic_store(&v->cancelled, false);
    if (thread_start(&v->thread, "evaluation", evaluation_thread, c, e) < 0)
        return -1;
    v->running = true;
    return 0;
}

static int evaluation_join(struct chief *c, struct err *e)
{
    struct evaluation *v = &c->evaluation;
    thread_join(&v->thread);
    v->running = false;
    if (v->result < 0 && !err_is(&v->error, ERR_STOPPED)) {
        (void)err_set(e, v->error.code, "%s", v->error.msg);
        return err_wrap(e, "evaluation after epoch %lld", (long long)v->epoch + 1);
    }
    if (atomic_load(&v->cancelled) && (v->final || chief_decides_epoch(c, v->epoch)))
        return 0; /* it is evaluated again */
    reporter_evaluated(c->reporter, v->epoch, v->step, v->result < 0 ? NULL : v->values);
    if (v->result == 0)
        c->decisions.valued = MAX(c->decisions.valued, v->epoch + 1);
    bool last = v->final || (chief_stopped(c) && v->epoch == c->decisions.now.stopped);
    if (last && v->result == 0) {
        memcpy(c->final, v->values, model_metrics(c->config.model) * sizeof(*c->final));
        c->final_step = v->step;
    }
    return 0;
}

int chief_evaluation_take(struct chief *c, struct err *e)
{
    return c->evaluation.running && atomic_load(&c->evaluation.over) ? evaluation_join(c, e) : 0;
}

void chief_evaluation_stop(struct chief *c)
{
    struct err ignored;
    if (!c->evaluation.running)
        return;
    atomic_store(&c->evaluation.cancelled, true);
    if (evaluation_join(c, &ignored) < 0)
        log_debug("%s", ignored.msg);
}
