/* Chooses the strategy, and waits for ps that are gone or refuse: a push is repeated until every ps has it, so that an
 * ordinal is applied exactly once whatever happens to the ps meanwhile. */
#include "train/strategy_internal.h"

#include "base/clock.h"
#include "base/stop.h"

/* A signal ends a pull or push that has taken LEAVE_MS; a shorter one is brought to its end. */
enum { RETRY_MS = 50, LEAVE_MS = 5000, LONG_CALL_MS = 1000 };

struct train_strategy *strategy_new(enum strategy kind, const struct strategy_config *config)
{
    static struct train_strategy *(*const NEW[])(const struct strategy_config *config) = {
        [STRATEGY_PARAMETER_SERVER] = strategy_ps_new,
        [STRATEGY_SINGLE] = strategy_single_new,
        [STRATEGY_MIRRORED] = strategy_sync_new,
        [STRATEGY_HOGWILD] = strategy_hogwild_new,
        [STRATEGY_MULTI_WORKER_MIRRORED] = strategy_multi_worker_new,
    };
    if (kind == STRATEGY_PARAMETER_SERVER && config->group_size > 0)
        return strategy_sync_new(config);
    return NEW[kind](config);
}

enum strategy strategy_of(const struct job *job, bool local)
{
    if (job->strategy.name == STRATEGY_MULTI_WORKER_MIRRORED)
        return STRATEGY_MULTI_WORKER_MIRRORED;
    if (!local)
        return STRATEGY_PARAMETER_SERVER;
    return job->strategy.name == STRATEGY_PARAMETER_SERVER ? STRATEGY_SINGLE : job->strategy.name;
}

const char *strategy_divergence_cure(enum strategy kind, bool overlap)
{
    static const char *const CURES[] = {
        [STRATEGY_PARAMETER_SERVER] =
            "lower the learning rate, set clipnorm, or reduce the staleness of gradients (fewer workers)",
        [STRATEGY_SINGLE] = "lower the learning rate or set clipnorm",
        [STRATEGY_MIRRORED] = "lower the learning rate or set clipvalue",
        [STRATEGY_MULTI_WORKER_MIRRORED] = "lower the learning rate or set clipvalue",
        [STRATEGY_HOGWILD] =
            "lower the learning rate, set clipnorm, or reduce the staleness of gradients (strategy.concurrentSteps)",
    };
    if (overlap)
        return "lower the learning rate, set clipnorm, or reduce the staleness of gradients (strategy.overlap: false, "
               "fewer workers)";
    return CURES[kind];
}

void strategy_applied(struct train_strategy *s, struct train_step *step, const struct push_result *pushed)
{
    step->staleness = MAX(pushed->staleness, 0);
    s->config.applied(s->config.user, step);
    step->ordinal = -1;
}

/* ---- synchronous training ---- */

int strategy_later(struct train_strategy *s, struct strategy_patience *p, const struct err *why)
{
    int64_t now = clock_ms();
    wait_begin(&p->wait, now, WAIT_EXPLAIN_MS);
    wait_report(&p->wait, now, s->config.report, why->msg);
    chief_client_waiting(s->config.chief, why->msg);
    p->ms = MIN(2 * p->ms, (int64_t)STRATEGY_PATIENCE_MAX_MS);
    return STEP_LATER;
}

void strategy_end_patience(struct train_strategy *s, struct strategy_patience *p)
{
    p->ms = STRATEGY_PATIENCE_MS;
    if (!p->wait.on)
        return;
    chief_client_waiting(s->config.chief, NULL);
    wait_end(&p->wait, clock_ms(), NULL);
}

int strategy_waited(struct train_strategy *s, struct strategy_patience *p, int rc, const struct err *cause,
                    struct err *e)
{
    if (rc < 0 && err_is(cause, ERR_PENDING))
        return strategy_later(s, p, cause);
    strategy_end_patience(s, p);
    if (rc == 0)
        return 0;
    return err_is(cause, ERR_STALE) ? STEP_OVER : err_set(e, cause->code, "%s", cause->msg);
}

/* ---- several steps at once ---- */

void step_pool_init(struct step_pool *p, const struct model *m)
{
    *p = (struct step_pool){ .width = metrics_width(m) };
}

void step_pool_fini(struct step_pool *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->steps[i]->sums);
        free(p->steps[i]);
        free(p->gradients[i]);
    }
    free(p->steps);
    free(p->gradients);
}

size_t step_pool_in_use(const struct step_pool *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        n += p->steps[i]->ordinal >= 0;
    return n;
}

static void step_pool_grow(struct step_pool *p)
{
    p->steps = xrealloc(p->steps, (p->n + 1) * sizeof(*p->steps));
    p->gradients = xrealloc(p->gradients, (p->n + 1) * sizeof(*p->gradients));
    p->steps[p->n] = xcalloc(1, sizeof(**p->steps));
    *p->steps[p->n] = (struct train_step){ .ordinal = -1, .sums = xcalloc(p->width, sizeof(double)) };
    p->gradients[p->n++] = NULL;
}

int step_pool_take(struct step_pool *p, size_t floats, struct train_step **ret, float **ret_gradient, struct err *e)
{
    size_t i = 0;
    void *memory;
    while (i < p->n && p->steps[i]->ordinal >= 0)
        i++;
    if (i == p->n)
        step_pool_grow(p);
    if (i > 0 && p->gradients[i] == NULL) {
        if (mem_alloc(MAX(floats, (size_t)1) * sizeof(float), "the gradient of another batch", &memory, e) < 0)
            return -1;
        p->gradients[i] = memory;
    }
    *ret = p->steps[i];
    *ret_gradient = p->gradients[i];
    return 0;
}

/* ---- waiting for what is gone ---- */

struct ps_wait {
    struct wait_state wait;
    int64_t moved_ms; /* when bytes arrived last: the time limit is for ps that do not answer, not for slow ones */
    uint64_t moved;
    bool refused; /* the chief was asked about a ps that refuses */
};

static bool worth_retry(const struct err *e)
{
    return err_is(e, ERR_LOST) || err_is(e, ERR_TIMEOUT) || err_is(e, ERR_FENCED) || err_is(e, ERR_NOT_READY);
}

/* Called during a pull or push that takes long though nothing is wrong. */
static int on_long_call(void *user, int64_t since_ms, const char *progress, struct err *e)
{
    struct train_strategy *s = user;
    int64_t now = clock_ms();
    if (stop_count() > 0 && now - since_ms >= LEAVE_MS)
        return err_set(e, ERR_STOPPED, "stopped by a signal");
    if (s->long_call.since_ms != since_ms)
        s->long_call = (struct wait_state){ 0 };
    wait_begin(&s->long_call, since_ms, WAIT_EXPLAIN_MS);
    wait_report(&s->long_call, now, s->config.report, progress);
    return 0;
}

static int64_t without_progress_ms(struct ps_wait *w, const struct params *params, int64_t now_ms)
{
    uint64_t moved = params_moved(params);
    if (w->moved_ms == 0 || moved != w->moved)
        w->moved_ms = now_ms;
    w->moved = moved;
    return now_ms - w->moved_ms;
}

/* After a failed call to a ps: waits a little and gets the generation. -1 when it must stop. */
static int wait_for_ps(struct train_strategy *s, struct ps_wait *w, struct err *cause)
{
    const struct strategy_config *c = &s->config;
    int64_t now = clock_ms();
    wait_begin(&w->wait, now, WAIT_EXPLAIN_MS);
    wait_report(&w->wait, now, c->report, cause->msg);
    int64_t idle_ms = without_progress_ms(w, c->params, now);
    bool asks =
        err_is(cause, ERR_REFUSED) && !w->refused; /* a ps refuses every call when the job is over: check that */
    w->refused |= asks;
    if ((!worth_retry(cause) && !asks) || idle_ms > c->max_wait_ms)
        return -1;
    chief_client_waiting(c->chief, cause->msg);
    uint64_t generation, stale = err_is(cause, ERR_FENCED) ? params_generation(c->params) : 0;
    if (stale == 0)
        chief_client_resync(c->chief);
    clock_sleep_ms(RETRY_MS);
    struct err e = { 0 };
    if (chief_client_generation(c->chief, stale, &generation, &e) < 0) {
        *cause = e;
        return -1;
    }
    params_set_generation(c->params, generation);
    return 0;
}

static void end_wait_for_ps(struct train_strategy *s, struct ps_wait *w)
{
    int64_t waited_ms;
    if (!w->wait.on)
        return;
    chief_client_waiting(s->config.chief, NULL);
    if (wait_end(&w->wait, clock_ms(), &waited_ms))
        report_info(s->config.report, "all ps answer again after %lld s", (long long)waited_ms / 1000);
}

int strategy_begin(struct train_strategy *s, struct err *e)
{
    uint64_t generation;
    if (chief_client_generation(s->config.chief, 0, &generation, e) < 0)
        return -1;
    params_set_generation(s->config.params, generation);
    params_watch(s->config.params, LONG_CALL_MS, on_long_call, s);
    return 0;
}

int strategy_pull(struct train_strategy *s, struct err *e)
{
    struct ps_wait wait = { 0 };
    struct err cause = { 0 };
    struct params *params = s->config.params;
    if (strategy_begin(s, e) < 0)
        return -1;
    for (int rc = params_pull(params, STRATEGY_PUSH_MS, &cause); rc < 0;
         rc = params_pull_rest(params, STRATEGY_PUSH_MS, &cause))
        if (wait_for_ps(s, &wait, &cause) < 0)
            return err_set(e, cause.code, "%s", cause.msg);
    end_wait_for_ps(s, &wait);
    return 0;
}

int strategy_pull_at(struct train_strategy *s, int64_t at, int64_t wait_ms, struct err *e)
{
    struct ps_wait wait = { 0 };
    struct err cause = { 0 };
    while (params_pull_at(s->config.params, at, wait_ms, STRATEGY_PUSH_MS, &cause) < 0) {
        if (err_is(&cause, ERR_PENDING) || err_is(&cause, ERR_STALE)) {
            end_wait_for_ps(s, &wait);
            return err_set(e, cause.code, "%s", cause.msg);
        }
        if (wait_for_ps(s, &wait, &cause) < 0)
            return err_set(e, cause.code, "%s", cause.msg);
    }
    end_wait_for_ps(s, &wait);
    return 0;
}

int strategy_reduce(struct train_strategy *s, struct group_request *q, struct err *e)
{
    struct ps_wait wait = { 0 };
    struct err cause = { 0 };
    uint64_t generation = params_generation(s->config.params);
    while (params_reduce(s->config.params, q, STRATEGY_PUSH_MS, &cause) < 0) {
        bool there = err_is(&cause, ERR_PENDING) || err_is(&cause, ERR_STALE);
        if (!there && wait_for_ps(s, &wait, &cause) < 0)
            return err_set(e, cause.code, "%s", cause.msg);
        if (there || params_generation(s->config.params) != generation) {
            end_wait_for_ps(s, &wait);
            return err_set(e, there ? cause.code : ERR_STALE, "%s", cause.msg);
        }
    }
    end_wait_for_ps(s, &wait);
    return 0;
}

/* A ps may refuse a gradient that was finite here: the chief must be notified. */
static int give_up(struct train_strategy *s, const struct train_step *step, const struct err *cause, struct err *e)
{
    if (err_is(cause, ERR_DIVERGED))
        chief_client_diverged(s->config.chief, step->ordinal);
    return err_set(e, cause->code, "%s", cause->msg);
}

int strategy_push_again(struct train_strategy *s, struct train_step *step, struct err *cause, struct push_result *ret,
                        struct err *e)
{
    struct ps_wait wait = { 0 };
    uint64_t generation = params_generation(s->config.params);
    do {
        if (wait_for_ps(s, &wait, cause) < 0)
            return give_up(s, step, cause, e);
        if (s->config.lockstep && params_generation(s->config.params) != generation) {
            end_wait_for_ps(s, &wait);
            return err_set(e, ERR_STALE, "%s", cause->msg);
        }
    } while (params_push(s->config.params, step->ordinal, step->grads, STRATEGY_PUSH_MS, ret, cause) < 0);
    end_wait_for_ps(s, &wait);
    return 0;
}

int strategy_push(struct train_strategy *s, struct train_step *step, struct push_result *ret, struct err *e)
{
    struct err cause = { 0 };
    int64_t begun = clock_ns();
    if (params_push(s->config.params, step->ordinal, step->grads, STRATEGY_PUSH_MS, ret, &cause) < 0)
        return strategy_push_again(s, step, &cause, ret, e);
    step->network_ns += (uint64_t)(clock_ns() - begun);
    return 0;
}
