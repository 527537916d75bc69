#include "train/session.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "nn/exec.h"

/* PUSH_MS: of each message, beside the time of its bytes (params/params.h). A signal ends a pull or push that has taken
 * LEAVE_MS; a shorter one is brought to its end. */
enum { PUSH_MS = 30000, RETRY_MS = 50, EXPLAIN_MS = 5000, LEAVE_MS = 5000 };

/* One batch on its way: its gradient stays until every ps has it. */
struct step {
    float *grads; /* of params_gradients */
    double *sums;
    int64_t ordinal; /* -1: none */
    uint64_t compute_ns, data_ns, network_ns, wait_ns;
};

struct session {
    const struct session_config *config;
    struct session_stats *stats;
    struct exec *exec;
    struct loader *loader;
    size_t *offsets, *counts, nvars;     /* of trainable variables, for clipping */
    struct step steps[PARAMS_GRADIENTS]; /* computed now, and in flight */
    int current;
    float *weights;       /* of the examples of a batch, where classes have some */
    struct batch ahead;   /* read while a push was in flight; ordinal -1: none */
    int64_t explained_ms; /* when a long pull or push was explained last */
};

static void session_fini(struct session *s)
{
    exec_free(s->exec);
    loader_free(s->loader);
    free(s->offsets);
    free(s->counts);
    free(s->weights);
    for (int i = 0; i < PARAMS_GRADIENTS; i++)
        free(s->steps[i].sums);
}
DEFINE_AUTO_FINI(session, session_fini);

static void clip_table(struct session *s, const struct model *m)
{
    s->offsets = xcalloc(model_variables(m) + 1, sizeof(*s->offsets));
    s->counts = xcalloc(model_variables(m) + 1, sizeof(*s->counts));
    for (size_t i = 0; i < model_variables(m); i++) {
        const struct variable *v = model_variable(m, i);
        if (v->kind != VAR_TRAINABLE)
            continue;
        s->offsets[s->nvars] = v->offset;
        s->counts[s->nvars++] = v->count;
    }
}

static int session_init(struct session *s, struct err *e)
{
    const struct session_config *c = s->config;
    const struct model *m = c->model;
    if (exec_new(m, ordinal_space_rows(c->space), c->space->seed, &s->exec, e) < 0 ||
        loader_new(c->dataset, c->space, &s->loader, e) < 0)
        return -1;
    clip_table(s, m);
    s->ahead.ordinal = -1;
    if (c->class_weights != NULL)
        s->weights = xcalloc(ordinal_space_rows(c->space), sizeof(*s->weights));
    for (int i = 0; i < PARAMS_GRADIENTS; i++)
        s->steps[i] = (struct step){ .ordinal = -1, .sums = xcalloc(metrics_width(m), sizeof(double)) };
    return 0;
}

/* ---- waiting for what is gone ---- */

static bool worth_retry(const struct err *e)
{
    return err_is(e, ERR_LOST) || err_is(e, ERR_TIMEOUT) || err_is(e, ERR_FENCED) || err_is(e, ERR_NOT_READY);
}

struct patience {
    int64_t since_ms, explained_ms;
    int64_t moved_ms; /* when bytes came last: patience is with what does not move */
    uint64_t moved;
    bool refused; /* asked the chief about a ps that refuses us */
};

static void watch_progress(struct patience *p, const struct params *params, int64_t now_ms)
{
    uint64_t moved = params_moved(params);
    if (p->moved_ms == 0 || moved != p->moved)
        p->moved_ms = now_ms;
    p->moved = moved;
}

/* Of a pull or push that takes long though nothing is wrong. */
static int on_long_move(void *user, int64_t since_ms, const char *progress, struct err *e)
{
    struct session *s = user;
    int64_t now = clock_ms();
    if (stop_count() > 0 && now - since_ms >= LEAVE_MS)
        return err_set(e, ERR_STOPPED, "stopped by a signal");
    if (now - MAX(since_ms, s->explained_ms) < EXPLAIN_MS)
        return 0;
    s->explained_ms = now;
    log_info("waiting %lld s for %s", (long long)(now - since_ms) / 1000, progress);
    return 0;
}

/* After a failed call to a ps: learns the generation of now, waits a little. -1 when it is time to give up. */
static int wait_for_ps(struct session *s, struct patience *p, struct err *cause)
{
    int64_t now = clock_ms();
    struct params *params = s->config->params;
    if (p->since_ms == 0)
        p->since_ms = p->explained_ms = now;
    else if (now - p->explained_ms >= EXPLAIN_MS) {
        p->explained_ms = now;
        log_info("waiting %lld s for %s", (long long)(now - p->since_ms) / 1000, cause->msg);
    }
    watch_progress(p, params, now);
    bool asks = err_is(cause, ERR_REFUSED) && !p->refused; /* a ps refuses all when the job is over: is it? */
    p->refused |= asks;
    if ((!worth_retry(cause) && !asks) || now - p->moved_ms > s->config->max_wait_ms)
        return -1;
    chief_client_waiting(s->config->chief, cause->msg);
    uint64_t generation, stale = err_is(cause, ERR_FENCED) ? params_generation(params) : 0;
    if (stale == 0)
        chief_client_resync(s->config->chief);
    clock_sleep_ms(RETRY_MS);
    struct err e = { 0 };
    if (chief_client_generation(s->config->chief, stale, &generation, &e) < 0) {
        *cause = e;
        return -1;
    }
    params_set_generation(params, generation);
    return 0;
}

static void patience_over(struct session *s, const struct patience *p)
{
    if (p->since_ms == 0)
        return;
    chief_client_waiting(s->config->chief, NULL);
    if (clock_ms() - p->since_ms >= EXPLAIN_MS)
        log_info("all ps answer again after %lld s", (long long)(clock_ms() - p->since_ms) / 1000);
}

static int pull(struct session *s, struct err *e)
{
    struct patience patience = { 0 };
    struct err cause = { 0 };
    for (int rc = params_pull(s->config->params, PUSH_MS, &cause); rc < 0;
         rc = params_pull_rest(s->config->params, PUSH_MS, &cause))
        if (wait_for_ps(s, &patience, &cause) < 0)
            return err_set(e, cause.code, "%s", cause.msg);
    patience_over(s, &patience);
    return 0;
}

/* A ps refused the gradient, which was finite here: the chief has to hear of it. */
static int refused(struct session *s, const struct step *step, const struct err *cause, struct err *e)
{
    if (err_is(cause, ERR_DIVERGED))
        chief_client_diverged(s->config->chief, step->ordinal);
    return err_set(e, cause->code, "%s", cause->msg);
}

static int push_again(struct session *s, struct step *step, struct err *cause, struct push_result *ret, struct err *e)
{
    struct patience patience = { 0 };
    do {
        if (wait_for_ps(s, &patience, cause) < 0)
            return refused(s, step, cause, e);
    } while (params_push(s->config->params, step->ordinal, step->grads, PUSH_MS, ret, cause) < 0);
    patience_over(s, &patience);
    return 0;
}

/* ---- one step ---- */

static void hand_in(struct session *s, struct step *step, const struct push_result *pushed)
{
    int64_t staleness = MAX(pushed->staleness, 0);
    chief_client_done(s->config->chief, &(struct chief_client_step){ .ordinal = step->ordinal,
                                                                     .sums = step->sums,
                                                                     .compute_ns = step->compute_ns,
                                                                     .network_ns = step->network_ns,
                                                                     .data_ns = step->data_ns,
                                                                     .wait_ns = step->wait_ns,
                                                                     .staleness = (uint64_t)staleness });
    step->ordinal = -1;
}

/* Waits for the push in flight, if any. */
static int finish_flight(struct session *s, struct err *e)
{
    struct step *step = &s->steps[1 - s->current];
    if (step->ordinal < 0)
        return 0;
    struct push_result pushed = { 0 };
    struct err cause = { 0 };
    int64_t begun = clock_ns();
    if (params_push_finish(s->config->params, &pushed, &cause) < 0 && push_again(s, step, &cause, &pushed, e) < 0)
        return -1;
    step->network_ns += (uint64_t)(clock_ns() - begun);
    hand_in(s, step, &pushed);
    return 0;
}

const char *session_divergence_cure(bool asynchronous, bool overlap)
{
    if (overlap)
        return "lower the learning rate, set clipnorm, or reduce the staleness of gradients (strategy.overlap: false, "
               "fewer workers)";
    return asynchronous ? "lower the learning rate, set clipnorm, or reduce the staleness of gradients (fewer workers)"
                        : "lower the learning rate or set clipnorm";
}

/* A gradient that is sent while layers before it are still being computed. */
struct early {
    struct session *s;
    struct step *step;
    size_t sent; /* floats from here on were given to params_push_early */
    bool finite; /* so far */
};

/* Sends a layer when the first of its variables is complete. A part that is not finite ends it: what was sent stays
 * applied, nothing more is sent. */
static void send_ready(void *user, size_t variable, double loss)
{
    struct early *w = user;
    const struct model *m = w->s->config->model;
    const struct variable *v = model_variable(m, variable);
    if (v->kind != VAR_TRAINABLE || (variable > 0 && model_variable(m, variable - 1)->layer == v->layer))
        return;
    w->finite = w->finite && isfinite(loss) && all_finite(w->step->grads + v->offset, w->sent - v->offset);
    w->sent = v->offset;
    if (w->finite && v->offset > 0)
        params_push_early(w->s->config->params, w->step->ordinal, w->step->grads, v->offset, PUSH_MS);
}

/* Gradients may go out as layers complete unless a decision needs the whole gradient, or an earlier push is in flight,
 * or an update must fall between two steps. */
static bool sends_early(const struct session_config *c)
{
    return c->asynchronous && !c->overlap && !optimizer_clips(model_optimizer(c->model));
}

/* Loss and gradient into the step. False: not finite. */
static bool backpropagate(struct session *s, struct step *step, const struct batch *batch, double *ret_loss)
{
    const struct session_config *c = s->config;
    const struct optimizer *o = model_optimizer(c->model);
    struct early early = { .s = s, .step = step, .sent = model_size(c->model), .finite = true };
    bool sends = sends_early(c);
    exec_train(s->exec, params_vector(c->params), batch, step->grads, step->sums, sends ? send_ready : NULL, &early,
               ret_loss);
    if (sends)
        return early.finite && isfinite(*ret_loss) && all_finite(step->grads, early.sent);
    if (optimizer_clips(o))
        optimizer_clip(o, step->grads, s->offsets, s->counts, s->nvars);
    return isfinite(*ret_loss) && all_finite(step->grads, model_size(c->model));
}

/* Reads the next batch while the ps applies this one, and leaves what is wrong with it to whoever takes it. Records
 * that must be parsed have a thread of their own. */
static void read_ahead(struct session *s, struct step *step)
{
    int64_t begun = clock_ns(), ordinal = chief_client_peek(s->config->chief);
    if (ordinal < 0 || loader_prefetches(s->loader) || loader_get(s->loader, ordinal, &s->ahead, NULL) < 0)
        return;
    step->data_ns += (uint64_t)(clock_ns() - begun);
}

static int take_batch(struct session *s, int64_t ordinal, struct batch *ret, struct err *e)
{
    struct batch ahead = s->ahead;
    s->ahead.ordinal = -1;
    if (ahead.ordinal != ordinal)
        return loader_get(s->loader, ordinal, ret, e);
    *ret = ahead;
    return 0;
}

static void weigh(struct session *s, struct batch *b)
{
    if (s->weights == NULL)
        return;
    class_weights_of(s->config->class_weights, b, s->weights);
    b->weight = s->weights;
}

static int compute(struct session *s, struct step *step, struct err *e)
{
    const struct session_config *c = s->config;
    struct batch batch;
    int64_t t0 = clock_ns();
    if (take_batch(s, step->ordinal, &batch, e) < 0 || params_gradients(c->params, s->current, &step->grads, e) < 0)
        return -1;
    if (loader_prefetches(s->loader))
        loader_hint(s->loader, chief_client_peek(c->chief));
    weigh(s, &batch);
    int64_t t1 = clock_ns();
    double loss;
    memset(step->sums, 0, metrics_width(c->model) * sizeof(*step->sums));
    params_mark(c->params);
    bool finite = backpropagate(s, step, &batch, &loss);
    step->data_ns = (uint64_t)(t1 - t0);
    step->compute_ns = (uint64_t)(clock_ns() - t1);
    step->network_ns = step->wait_ns = 0;
    atomic_store_explicit(&s->stats->loss, loss, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->stats->examples, (int64_t)batch.n, memory_order_relaxed);
    if (finite)
        return 0;
    chief_client_diverged(c->chief, step->ordinal);
    return err_set(e, ERR_DIVERGED, "%s of batch %lld (epoch %lld) is not finite: training diverged; %s",
                   isfinite(loss) ? "a gradient" : "the loss", (long long)step->ordinal, (long long)batch.epoch + 1,
                   session_divergence_cure(c->asynchronous, c->overlap));
}

static int push_and_read(struct session *s, struct step *step, struct push_result *ret, struct err *e)
{
    const struct session_config *c = s->config;
    uint64_t data_ns = step->data_ns;
    int64_t begun = clock_ns();
    if (params_push_start(c->params, step->ordinal, step->grads, true, PUSH_MS, e) < 0)
        return -1;
    if (c->asynchronous)
        read_ahead(s, step);
    if (params_push_finish(c->params, ret, e) < 0)
        return -1;
    step->network_ns += (uint64_t)(clock_ns() - begun) - (step->data_ns - data_ns);
    return 0;
}

static int push(struct session *s, struct step *step, struct err *e)
{
    const struct session_config *c = s->config;
    struct err cause = { 0 };
    struct push_result pushed = { 0 };
    int64_t begun = clock_ns();
    if (c->overlap) {
        if (params_push_start(c->params, step->ordinal, step->grads, false, PUSH_MS, &cause) == 0) {
            step->network_ns += (uint64_t)(clock_ns() - begun);
            s->current = 1 - s->current;
            return 0;
        }
    } else if (push_and_read(s, step, &pushed, &cause) == 0) {
        hand_in(s, step, &pushed);
        return 0;
    }
    if (push_again(s, step, &cause, &pushed, e) < 0)
        return -1;
    hand_in(s, step, &pushed);
    return 0;
}

static int push_gated(struct session *s, struct step *step, struct err *e)
{
    if (s->config->step_gate == NULL)
        return push(s, step, e);
    MUTEX_GUARD(s->config->step_gate);
    return push(s, step, e);
}

static int train_batch(struct session *s, int64_t ordinal, uint64_t waited_ns, struct err *e)
{
    struct step *step = &s->steps[s->current];
    step->ordinal = ordinal;
    if (compute(s, step, e) < 0 || finish_flight(s, e) < 0)
        return -1;
    step->wait_ns = waited_ns;
    if (push_gated(s, step, e) < 0)
        return -1;
    atomic_fetch_add_explicit(&s->stats->steps, 1, memory_order_relaxed);
    atomic_store_explicit(&s->stats->last_ordinal, ordinal, memory_order_relaxed);
    return 0;
}

static int session_loop(struct session *s, struct err *e)
{
    for (;;) {
        enum chief_client_next next;
        int64_t ordinal = -1, begun = clock_ns();
        /* Nothing lent: what is in flight may be what the job waits for. */
        if (!chief_client_has_work(s->config->chief) && finish_flight(s, e) < 0)
            return -1;
        if (chief_client_next(s->config->chief, &next, &ordinal, e) < 0)
            return -1;
        if (next == CHIEF_CLIENT_FINISHED)
            return 0;
        if (next == CHIEF_CLIENT_STOPPING) {
            struct err ignored;
            (void)!finish_flight(s, &ignored);
            return err_set(e, ERR_STOPPED, stop_count() > 0 ? "stopped by a signal" : "the chief stops the job");
        }
        if (train_batch(s, ordinal, (uint64_t)(clock_ns() - begun), e) < 0)
            return -1;
    }
}

/* A push that is still under way reads the gradient: waits for it, bounded by its deadline. */
static void end_flight(struct session *s)
{
    struct push_result ignored;
    struct err none;
    if (s->steps[1 - s->current].ordinal >= 0)
        (void)!params_push_finish(s->config->params, &ignored, &none);
}

int session_run(const struct session_config *config, struct session_stats *stats, struct err *e)
{
    AUTO_FINI(session) s = { .config = config, .stats = stats };
    uint64_t generation;
    if (session_init(&s, e) < 0 || chief_client_generation(config->chief, 0, &generation, e) < 0)
        return -1;
    params_set_generation(config->params, generation);
    params_watch(config->params, on_long_move, &s);
    int result = pull(&s, e);
    if (result == 0) {
        result = session_loop(&s, e);
        end_flight(&s);
    }
    params_watch(config->params, NULL, NULL);
    return result;
}
