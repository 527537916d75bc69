/* The loop of a worker: an ordinal is computed in step_engine.c, and its gradient goes to the strategy. An ordinal
 * is reported once, after every segment has its update. */
#include "train/session.h"

#include "base/clock.h"
#include "base/stop.h"
#include "train/lockstep.h"

struct session {
    const struct session_config *config;
    struct session_stats *stats;
    struct train_strategy *strategy;
    struct step_engine *engine; /* NULL: lockstep has engines */
    struct lockstep *lockstep;  /* NULL: batches are computed alone */
    struct groups groups;       /* with lockstep */
};

static void session_fini(struct session *s)
{
    lockstep_free(s->lockstep);
    if (s->strategy != NULL)
        s->strategy->ops->close(s->strategy);
    step_engine_free(s->engine);
}
DEFINE_AUTO_FINI(session, session_fini);

/* ---- what the strategy calls ---- */

static void note_time(struct session_stats *stats, const struct train_step *step)
{
    const uint64_t spent[ACTIVITY_COUNT] = { [ACTIVITY_COMPUTE] = step->compute_ns,
                                             [ACTIVITY_NETWORK] = step->network_ns,
                                             [ACTIVITY_DATA] = step->data_ns,
                                             [ACTIVITY_WAIT] = step->wait_ns };
    for (int i = 0; i < ACTIVITY_COUNT; i++)
        atomic_fetch_add_explicit(&stats->spent_ns[i], spent[i], memory_order_relaxed);
}

static void report_step(void *user, const struct train_step *step)
{
    const struct session *s = user;
    note_time(s->stats, step);
    chief_client_done(s->config->chief, &(struct chief_client_step){ .ordinal = step->ordinal,
                                                                     .sums = step->sums,
                                                                     .compute_ns = step->compute_ns,
                                                                     .network_ns = step->network_ns,
                                                                     .data_ns = step->data_ns,
                                                                     .wait_ns = step->wait_ns,
                                                                     .staleness = (uint64_t)step->staleness });
}

/* Reads the next batch while the ps apply this one. An error of that batch ends the step that uses it. */
static void read_ahead(void *user, struct train_step *step)
{
    struct session *s = user;
    struct step_engine *engine = s->lockstep != NULL ? lockstep_reader(s->lockstep) : s->engine;
    int64_t begun = clock_ns(), ordinal = chief_client_peek(s->config->chief);
    if (ordinal >= 0 && engine != NULL && step_engine_read_ahead(engine, ordinal))
        step->data_ns += (uint64_t)(clock_ns() - begun);
}

static int session_init(struct session *s, struct err *e)
{
    const struct session_config *c = s->config;
    struct step_engine_config engine = {
        .model = c->model, .dataset = c->dataset, .space = c->space, .class_weights = c->class_weights
    };
    struct strategy_config strategy = { .model = c->model,
                                        .space = c->space,
                                        .group_size = chief_client_group_size(c->chief),
                                        .params = c->params,
                                        .collective = c->collective,
                                        .chief = c->chief,
                                        .max_wait_ms = c->max_wait_ms,
                                        .overlap = c->overlap,
                                        .lockstep =
                                            c->strategy != STRATEGY_SINGLE && model_synchronized(c->model) != NULL,
                                        .step_gate = c->step_gate,
                                        .claims = c->claims,
                                        .report = c->report,
                                        .applied = report_step,
                                        .in_flight = read_ahead,
                                        .user = s };
    if (!strategy.lockstep && step_engine_new(&engine, &s->engine, e) < 0)
        return -1;
    s->strategy = strategy_new(c->strategy, &strategy);
    if (strategy.lockstep) {
        s->lockstep = lockstep_new(s->strategy, &engine);
        s->groups = groups_of(c->space, strategy.group_size);
    }
    return s->strategy->ops->open(s->strategy, e);
}

/* ---- one step ---- */

static void note_batch(const struct session *s, const struct train_step *step)
{
    atomic_store_explicit(&s->stats->loss, step->loss, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->stats->examples, (int64_t)step->examples, memory_order_relaxed);
}

static int report_divergence(const struct session *s, int64_t ordinal, const struct err *cause, struct err *e)
{
    chief_client_diverged(s->config->chief, ordinal);
    return err_set(e, cause->code, "%s; %s", cause->msg,
                   strategy_divergence_cure(s->config->strategy, s->config->overlap));
}

/* 0, STEP_LATER or STEP_OVER. */
static int begin_step(struct session *s, int64_t ordinal, struct train_step **ret, struct err *e)
{
    int begun = s->strategy->ops->begin_step(s->strategy, ordinal, ret, e);
    if (begun != 0)
        return begun;
    int64_t begun_ns = clock_ns();
    if (step_engine_load(s->engine, ordinal, e) < 0)
        return -1;
    if (step_engine_prefetches(s->engine))
        step_engine_expect(s->engine, chief_client_peek(s->config->chief));
    (*ret)->data_ns = (uint64_t)(clock_ns() - begun_ns);
    return 0;
}

static int compute_step(struct session *s, struct train_step *step, struct err *e)
{
    struct err cause = { 0 };
    int64_t begun = clock_ns();
    int computed = step_engine_compute(s->engine, step, s->strategy->ops->gradient_ready, s->strategy, &cause);
    step->compute_ns = (uint64_t)(clock_ns() - begun);
    note_batch(s, step);
    return computed < 0 ? report_divergence(s, step->ordinal, &cause, e) : 0;
}

static void count_step(const struct session *s, int64_t ordinal)
{
    struct session_stats *stats = s->stats;
    if (s->config->computed != NULL)
        atomic_fetch_add_explicit(s->config->computed, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&stats->steps, 1, memory_order_relaxed);
    atomic_store_explicit(&stats->last_ordinal, ordinal, memory_order_relaxed);
}

/* 0: it was submitted; STEP_LATER, STEP_OVER. */
static int compute_batch(struct session *s, int64_t ordinal, uint64_t waited_ns, struct err *e)
{
    struct train_step *step;
    int begun = begin_step(s, ordinal, &step, e);
    if (begun != 0)
        return begun;
    step->wait_ns = waited_ns;
    if (compute_step(s, step, e) < 0)
        return -1;
    int submitted = s->strategy->ops->submit(s->strategy, step, e);
    if (submitted == STEP_LATER)
        s->strategy->ops->give_up(s->strategy, step);
    return submitted;
}

/* 0, or STEP_LATER. */
static int run_batch(struct session *s, int64_t ordinal, uint64_t waited_ns, struct err *e)
{
    int done = compute_batch(s, ordinal, waited_ns, e);
    if (done == STEP_LATER)
        chief_client_defer(s->config->chief, ordinal, ordinal);
    else if (done == STEP_OVER)
        chief_client_drop(s->config->chief, ordinal);
    else if (done == 0)
        count_step(s, ordinal);
    return done == STEP_OVER ? 0 : done;
}

/* ---- synchronized layers: the batches of a group that this worker holds ---- */

/* 0, or STEP_LATER. */
static int add_batch(struct session *s, int64_t ordinal, struct err *e)
{
    int added = lockstep_add(s->lockstep, groups_first(&s->groups, ordinal), ordinal, e);
    if (added == STEP_OVER)
        chief_client_drop(s->config->chief, ordinal);
    else if (added == STEP_LATER)
        chief_client_defer(s->config->chief, ordinal, groups_end(&s->groups, ordinal));
    return added == STEP_OVER ? 0 : added;
}

/* Those that the chief has leased beside this one. Batches of an earlier group go first. */
static int add_batches(struct session *s, int64_t ordinal, struct err *e)
{
    struct chief_client *chief = s->config->chief;
    int64_t first = groups_first(&s->groups, ordinal), end = groups_end(&s->groups, ordinal), next;
    int added = add_batch(s, ordinal, e);
    while (added == 0 && chief_client_has_work(chief) && (next = chief_client_peek(chief)) >= 0 && next < end) {
        enum chief_client_next what;
        if (next < first)
            return STEP_LATER;
        if (chief_client_next(chief, &what, &next, e) < 0)
            return -1;
        if (what != CHIEF_CLIENT_ORDINAL)
            return 0; /* the job ends: the loop gets the same answer */
        added = add_batch(s, next, e);
    }
    return added;
}

static void put_back(struct session *s, int64_t end)
{
    for (size_t i = lockstep_lanes(s->lockstep); i-- > 0;)
        chief_client_defer(s->config->chief, lockstep_step(s->lockstep, i)->ordinal, end);
}

static void drop_lanes(struct session *s)
{
    for (size_t i = 0; i < lockstep_lanes(s->lockstep); i++)
        chief_client_drop(s->config->chief, lockstep_step(s->lockstep, i)->ordinal);
    lockstep_clear(s->lockstep);
}

static int submit_lanes(struct session *s, struct err *e)
{
    while (lockstep_lanes(s->lockstep) > 0) {
        const struct train_step step = *lockstep_step(s->lockstep, 0);
        int submitted = lockstep_submit(s->lockstep, e);
        if (submitted != 0)
            return submitted;
        note_batch(s, &step);
        count_step(s, step.ordinal);
    }
    return 0;
}

/* 0, or STEP_LATER. */
static int run_group(struct session *s, int64_t ordinal, uint64_t waited_ns, struct err *e)
{
    struct err cause = { 0 };
    int64_t end = groups_end(&s->groups, ordinal);
    if (lockstep_at(s->lockstep) >= 0 && lockstep_at(s->lockstep) != groups_first(&s->groups, ordinal))
        drop_lanes(s); /* training went back to a checkpoint */
    int done = add_batches(s, ordinal, &cause);
    if (lockstep_lanes(s->lockstep) > 0)
        lockstep_step(s->lockstep, 0)->wait_ns += waited_ns;
    if (done == 0)
        done = lockstep_compute(s->lockstep, &cause);
    if (done == 0)
        done = submit_lanes(s, &cause);
    if (done == STEP_LATER)
        put_back(s, end);
    else if (done == STEP_OVER)
        drop_lanes(s);
    if (err_is(&cause, ERR_DIVERGED))
        return report_divergence(s, lockstep_advanced(s->lockstep), &cause, e);
    if (done < 0)
        return err_set(e, cause.code, "%s", cause.msg);
    return done == STEP_LATER ? STEP_LATER : 0;
}

static int session_loop(struct session *s, struct err *e)
{
    for (int64_t begun = clock_ns();;) {
        enum chief_client_next next;
        int64_t ordinal = -1;
        /* Nothing is leased: the job may wait for the push in flight. */
        if (!chief_client_has_work(s->config->chief) && s->strategy->ops->finish(s->strategy, e) < 0)
            return -1;
        if (chief_client_next(s->config->chief, &next, &ordinal, e) < 0)
            return -1;
        if (next == CHIEF_CLIENT_FINISHED)
            return 0;
        if (next == CHIEF_CLIENT_STOPPING) {
            struct err ignored;
            (void)!s->strategy->ops->finish(s->strategy, &ignored);
            return err_set(e, ERR_STOPPED, stop_count() > 0 ? "stopped by a signal" : "the chief stops the job");
        }
        uint64_t waited_ns = (uint64_t)(clock_ns() - begun);
        int done = s->lockstep != NULL ? run_group(s, ordinal, waited_ns, e) : run_batch(s, ordinal, waited_ns, e);
        if (done < 0)
            return -1;
        /* What it waits for is a part of the next step's wait. Lanes have counted it already. */
        if (done != STEP_LATER || (s->lockstep != NULL && lockstep_lanes(s->lockstep) > 0))
            begun = clock_ns();
    }
}

int session_run(const struct session_config *config, struct session_stats *stats, struct err *e)
{
    AUTO_FINI(session) s = { .config = config, .stats = stats };
    return session_init(&s, e) < 0 ? -1 : session_loop(&s, e);
}
