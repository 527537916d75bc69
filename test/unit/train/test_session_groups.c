/* Sessions that train a model with a synchronized layer have the same bits, however many workers there are, with ps
 * and with threads on one vector. The ps is a shard of this process. */
#include "shard/job_fixture.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "coord/coordinator.h"
#include "nn/metrics/metrics.h"
#include "params/params_internal.h"
#include "params/ps_set.h"
#include "train/session.h"

enum { WAIT_MS = 20000, GROUP = 4, WORKERS = 4, EPOCHS = 3 };

static const char LAYERS[] = "[{Dense: {units: 3}}, {BatchNormalization: {synchronized: true}}, {Dense: {units: 1}}]";

struct world;
struct worker {
    struct world *world;
    char name[16];
    struct params *params;
    struct coordinator_client *coord;
    struct chief_client *chief;
    struct session_stats stats;
    struct thread thread;
    int rc;
    struct err e;
};
struct world {
    struct job_fixture job;
    bool mirrored;
    struct shard *shard;
    struct params *params; /* the chief's; the shard uses its vector */
    struct placement *placement;
    struct coordinator *coordinator;
    struct claims *claims;
    struct worker workers[WORKERS];
    struct thread chief;
};

/* The values of the beginning: no two of a variable are the same. */
static int initial(void *user, const struct segment_spec *s, float *data, bool *ret_slots, int64_t *ret_version,
                   struct ordinal_set *ret_applied, struct err *e)
{
    (void)user, (void)ret_applied, (void)e;
    for (size_t i = 0; i < s->count; i++)
        data[i] = 0.25F + 0.125F * (float)(i % 7);
    *ret_slots = false;
    *ret_version = 0;
    return 0;
}

static void serve(struct world *w, uint64_t generation)
{
    struct err e = { 0 };
    int restored;
    AUTO(ps_set) *f = ps_set_new(w->params, w->job.layout, w->placement, model_optimizer(w->job.model), JOB_UID, NULL);
    ck_ok_e(ps_set_initialise(f, generation, &(struct segment_source){ .read = initial }, &restored, &e));
}

/* sharers: workers that get a part of each group, also before all have registered. */
static void world_open(struct world *w, bool mirrored, size_t sharers)
{
    const struct params_identity id = { .job_uid = JOB_UID, .sender = "chief-0", .incarnation = 1 };
    *w = (struct world){ .mirrored = mirrored };
    job_open_layers(&w->job, LAYERS, "{SGD: {learning_rate: 0.05}}", "epochs: 1");
    const struct groups groups = groups_of(&w->job.space, GROUP);
    w->shard = shard_new(5);
    w->params = params_new_local(w->job.layout, w->shard, &id);
    w->placement = placement_new(w->job.layout, PLACEMENT_GREEDY, 1);
    params_set_groups(w->params, &groups);
    serve(w, 1);
    w->coordinator = coordinator_new(&(struct coordinator_config){ .model = w->job.model,
                                                                   .job_uid = JOB_UID,
                                                                   .incarnation = 1,
                                                                   .space = w->job.space,
                                                                   .layout_hash = w->job.layout->hash,
                                                                   .ps_count = 1,
                                                                   .batches_per_epoch = JOB_BATCHES,
                                                                   .total = EPOCHS * JOB_BATCHES,
                                                                   .lease_ms = 10000,
                                                                   .heartbeat_ms = 5000,
                                                                   .groups = groups,
                                                                   .sharers = (int64_t)sharers });
    coordinator_set(w->coordinator, JOB_TRAINING, 1, "");
    coordinator_allow_below(w->coordinator, INT64_MAX);
    w->claims = mirrored ? claims_new(GROUP) : NULL;
}

static void worker_open(struct world *w, size_t i)
{
    struct worker *k = &w->workers[i];
    uint64_t generation;
    struct err e = { 0 };
    *k = (struct worker){ .world = w };
    str_fmt(k->name, sizeof(k->name), "worker-%zu", i);
    const struct params_identity id = { .job_uid = JOB_UID, .sender = k->name, .incarnation = 10 + i };
    k->params = (w->mirrored ? params_new_in_place : params_new_local)(w->job.layout, w->shard, &id);
    k->coord = coordinator_client_new_local(w->coordinator);
    struct chief_client_config config = {
        .coordinator = k->coord,
        .width = metrics_width(w->job.model),
        .max_wait_ms = WAIT_MS,
        .identity = { .sender = { .job_uid = JOB_UID, .name = k->name, .role = ROLE_WORKER, .incarnation = 10 + i },
                      .space = w->job.space,
                      .shuffle_version = SHUFFLE_VERSION,
                      .layout_hash = w->job.layout->hash,
                      .ps_count = 1 }
    };
    ck_ok_e(chief_client_start(&config, &k->chief, &e));
    ck_ok_e(chief_client_generation(k->chief, 0, &generation, &e)); /* all have registered before one trains */
}

static void worker_close(struct worker *k)
{
    chief_client_free(TAKE(k->chief));
    coordinator_client_free(TAKE(k->coord));
    params_free(TAKE(k->params));
}

static void world_close(struct world *w)
{
    for (size_t i = 0; i < WORKERS; i++)
        worker_close(&w->workers[i]);
    coordinator_free(w->coordinator);
    params_free(w->params);
    shard_free(w->shard);
    placement_free(w->placement);
    claims_free(w->claims);
    job_close(&w->job);
}

/* ---- training ---- */

static void worker_run(void *user)
{
    struct worker *k = user;
    const struct world *w = k->world;
    const struct session_config config = { .model = w->job.model,
                                           .dataset = w->job.train,
                                           .space = &w->job.space,
                                           .params = k->params,
                                           .chief = k->chief,
                                           .strategy = w->mirrored ? STRATEGY_MIRRORED : STRATEGY_PARAMETER_SERVER,
                                           .claims = w->claims,
                                           .max_wait_ms = WAIT_MS };
    k->rc = session_run(&config, &k->stats, &k->e);
}

/* The chief's part: polls what was applied, and reports when everything is. */
static void watch(void *user)
{
    struct world *w = user;
    struct coordinator_view v = { 0 };
    while (!v.finished) {
        AUTO_FINI(shard_info) info = { 0 };
        coordinator_wait(w->coordinator, clock_ms() + 1);
        int64_t begun = clock_ms();
        shard_describe(w->shard, &info);
        coordinator_observe(w->coordinator, &info.applied, begun);
        coordinator_view(w->coordinator, &v);
    }
    coordinator_set(w->coordinator, JOB_FINISHED, 1, "");
}

static void start_chief(struct world *w)
{
    struct err e = { 0 };
    ck_ok_e(thread_start(&w->chief, "chief", watch, w, &e));
}

static void start_worker(struct world *w, size_t i)
{
    struct err e = { 0 };
    ck_ok_e(thread_start(&w->workers[i].thread, w->workers[i].name, worker_run, &w->workers[i], &e));
}

static void end_worker(struct world *w, size_t i)
{
    thread_join(&w->workers[i].thread);
    ck_assert_msg(w->workers[i].rc == 0, "%s", w->workers[i].e.msg);
}

/* The values after all epochs, and none of them is that of the beginning. */
static float *values_of(const struct world *w)
{
    float *values = xcalloc(model_size(w->job.model), sizeof(*values));
    for (size_t i = 0; i < model_variables(w->job.model); i++) {
        const struct variable *v = model_variable(w->job.model, i);
        memcpy(values + v->offset, params_vector(w->params) + v->offset, v->count * sizeof(float));
    }
    return values;
}

static float *trained(bool mirrored, size_t workers)
{
    struct world w;
    int64_t steps = 0, examples = 0;
    world_open(&w, mirrored, workers);
    for (size_t i = 0; i < workers; i++)
        worker_open(&w, i);
    start_chief(&w);
    for (size_t i = 0; i < workers; i++)
        start_worker(&w, i);
    for (size_t i = 0; i < workers; i++) {
        end_worker(&w, i);
        steps += atomic_load(&w.workers[i].stats.steps);
        examples += atomic_load(&w.workers[i].stats.examples);
    }
    thread_join(&w.chief);
    ck_assert_int_ge(steps, EPOCHS * JOB_BATCHES);
    ck_assert_int_eq(examples, steps * JOB_BATCH);
    float *values = values_of(&w);
    world_close(&w);
    return values;
}

static size_t floats_of_model(void)
{
    struct job_fixture job;
    job_open_layers(&job, LAYERS, "SGD", "epochs: 1");
    size_t n = model_size(job.model);
    job_close(&job);
    return n;
}

START_TEST(any_number_of_workers_has_the_same_bits)
{
    size_t bytes = floats_of_model() * sizeof(float);
    auto_free float *alone = trained(false, 1);
    ck_assert(alone[0] != 0.25F);
    for (size_t n = 1; n <= WORKERS; n *= 2) {
        auto_free float *values = trained(_i, n);
        ck_assert_msg(memcmp(values, alone, bytes) == 0, "%zu workers", n);
    }
}
END_TEST

/* ---- a worker leaves ---- */

static struct {
    const struct params_ops *real;
    struct params_ops ops;
    _Atomic int pending;
} spy;

static int spy_reduce(struct params *p, struct group_request *q, int64_t deadline_ms, struct err *e)
{
    int rc = spy.real->reduce(p, q, deadline_ms, e);
    if (rc < 0 && err_is(e, ERR_PENDING))
        atomic_fetch_add(&spy.pending, 1);
    return rc;
}

/* Worker 1 has leased its share of each group, and computes nothing. */
START_TEST(the_batches_of_a_worker_that_leaves_are_taken_over)
{
    struct world w;
    size_t bytes = floats_of_model() * sizeof(float);
    auto_free float *alone = trained(false, 1);
    world_open(&w, _i, 2);
    worker_open(&w, 1);
    ck_wait(chief_client_has_work(w.workers[1].chief));
    worker_open(&w, 0);
    spy.real = w.workers[0].params->ops;
    spy.ops = *spy.real;
    spy.ops.reduce = spy_reduce;
    atomic_store(&spy.pending, 0);
    w.workers[0].params->ops = &spy.ops;
    start_chief(&w);
    start_worker(&w, 0);
    ck_wait(atomic_load(&spy.pending) > 0);
    worker_close(&w.workers[1]);
    end_worker(&w, 0);
    thread_join(&w.chief);
    ck_assert_int_eq(atomic_load(&w.workers[0].stats.steps), EPOCHS * JOB_BATCHES);
    auto_free float *values = values_of(&w);
    ck_assert_mem_eq(values, alone, bytes);
    w.workers[0].params->ops = spy.real;
    world_close(&w);
}
END_TEST

/* ---- a ps is restored ---- */

static struct train_strategy *strategy_open(struct world *w)
{
    struct err e = { 0 };
    const struct strategy_config config = { .model = w->job.model,
                                            .space = &w->job.space,
                                            .group_size = GROUP,
                                            .params = w->workers[0].params,
                                            .chief = w->workers[0].chief,
                                            .max_wait_ms = WAIT_MS,
                                            .lockstep = true };
    struct train_strategy *s = strategy_new(STRATEGY_PARAMETER_SERVER, &config);
    ck_ok_e(s->ops->open(s, &e));
    return s;
}

/* A new generation from the state at the beginning of this step: the sums of the old one are lost. With _i a batch was
 * begun in it since. */
START_TEST(steps_of_another_generation_are_computed_again)
{
    struct world w;
    struct err e = { 0 };
    struct train_step *first, *second = NULL;
    double numbers[2] = { 1, 2 };
    const int64_t ordinals[] = { 0, 1 };
    struct group_request q = { .part = { .ordinals = ordinals, .n = 1, .numbers = numbers, .width = 1 },
                               .totals = numbers };
    world_open(&w, false, 1);
    worker_open(&w, 0);
    struct train_strategy *s = strategy_open(&w);
    ck_assert_int_eq(s->ops->begin_step(s, 0, &first, &e), 0);
    ck_assert_int_eq(s->ops->reduce(s, &q, &e), STEP_LATER);
    coordinator_set(w.coordinator, JOB_TRAINING, 2, "");
    serve(&w, 2);
    params_set_generation(w.workers[0].params, 2);
    if (_i)
        ck_assert_int_eq(s->ops->begin_step(s, 1, &second, &e), 0);
    ck_assert_int_eq(s->ops->reduce(s, &q, &e), STEP_OVER);
    ck_assert_int_eq(s->ops->submit(s, first, &e), STEP_OVER);
    s->ops->give_up(s, first);
    if (second != NULL)
        s->ops->give_up(s, second);
    ck_assert_int_eq(s->ops->begin_step(s, 0, &first, &e), 0);
    ck_assert_int_eq(s->ops->reduce(s, &q, &e), STEP_LATER);
    s->ops->close(s);
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("session_groups");
    TCase *t = tcase_create("groups");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, any_number_of_workers_has_the_same_bits, 0, 2);
    tcase_add_loop_test(t, the_batches_of_a_worker_that_leaves_are_taken_over, 0, 2);
    tcase_add_loop_test(t, steps_of_another_generation_are_computed_again, 0, 2);
    suite_add_tcase(s, t);
    return s;
}
