/* Which strategies take gradients variable by variable, and that each provides memory and values for a step. */
#include "shard/job_fixture.h"

#include "params/params.h"
#include "train/strategy_internal.h"

struct world {
    struct job_fixture job;
    struct shard *shard;
    struct params *params;
};

static void world_open(struct world *w, const char *optimizer)
{
    struct params_identity id = { .job_uid = JOB_UID, .sender = "local", .incarnation = 1 };
    job_open(&w->job, optimizer, "epochs: 1");
    w->shard = shard_new(5);
    w->params = params_new_local(w->job.layout, w->shard, &id);
}

static void world_close(struct world *w)
{
    params_free(w->params);
    shard_free(w->shard);
    job_close(&w->job);
}

/* by_variable of the first step. */
static bool first_step(struct world *w, enum strategy kind, bool overlap)
{
    struct err e = { 0 };
    struct train_step *step;
    struct strategy_config config = { .model = w->job.model, .params = w->params, .overlap = overlap };
    struct train_strategy *s = strategy_new(kind, &config);
    ck_ok_e(s->ops->begin_step(s, 7, &step, &e));
    ck_assert_int_eq(step->ordinal, 7);
    ck_assert_ptr_eq(step->values, params_vector(w->params));
    ck_assert(step->grads != NULL && step->sums != NULL);
    ck_assert(!step->by_variable || s->ops->gradient_ready != NULL);
    bool by_variable = step->by_variable;
    step->ordinal = -1;
    s->ops->close(s);
    return by_variable;
}

START_TEST(only_asynchronous_pushes_take_gradients_by_variable)
{
    struct world w;
    world_open(&w, "SGD");
    ck_assert(first_step(&w, STRATEGY_PARAMETER_SERVER, false));
    ck_assert(!first_step(&w, STRATEGY_PARAMETER_SERVER, true)); /* an earlier push is in flight */
    ck_assert(!first_step(&w, STRATEGY_SINGLE, false));          /* an update is between two steps */
    ck_assert(!first_step(&w, STRATEGY_HOGWILD, false));         /* it sends no messages */
    world_close(&w);
}
END_TEST

START_TEST(clipping_needs_the_whole_gradient)
{
    struct world w;
    world_open(&w, "{SGD: {global_clipnorm: 1.0}}");
    ck_assert(!first_step(&w, STRATEGY_PARAMETER_SERVER, false));
    world_close(&w);
}
END_TEST

START_TEST(the_cure_names_staleness_only_where_there_is_some)
{
    ck_assert_ptr_null(strstr(strategy_divergence_cure(STRATEGY_SINGLE, false), "staleness"));
    ck_assert_ptr_null(strstr(strategy_divergence_cure(STRATEGY_MIRRORED, false), "staleness"));
    ck_assert_ptr_nonnull(strstr(strategy_divergence_cure(STRATEGY_HOGWILD, false), "strategy.concurrentSteps"));
    ck_assert_ptr_nonnull(strstr(strategy_divergence_cure(STRATEGY_PARAMETER_SERVER, false), "fewer workers"));
    ck_assert_ptr_nonnull(strstr(strategy_divergence_cure(STRATEGY_PARAMETER_SERVER, true), "strategy.overlap: false"));
}
END_TEST

/* A job with ps that is started without a cluster is one process. */
START_TEST(the_strategy_is_that_of_the_job_or_single)
{
    struct job job = { .strategy.name = STRATEGY_PARAMETER_SERVER };
    ck_assert_int_eq(strategy_of(&job, false), STRATEGY_PARAMETER_SERVER);
    ck_assert_int_eq(strategy_of(&job, true), STRATEGY_SINGLE);
    job.strategy.name = STRATEGY_MIRRORED;
    ck_assert_int_eq(strategy_of(&job, true), STRATEGY_MIRRORED);
    job.strategy.name = STRATEGY_SINGLE; /* it got a cluster with ps by hand */
    ck_assert_int_eq(strategy_of(&job, false), STRATEGY_PARAMETER_SERVER);
}
END_TEST

static struct train_step *taken(struct step_pool *p, int64_t ordinal, float **ret_own)
{
    struct train_step *step;
    struct err e = { 0 };
    ck_ok_e(step_pool_take(p, 100, &step, ret_own, &e));
    ck_assert_int_eq(step->ordinal, -1);
    step->ordinal = ordinal;
    return step;
}

START_TEST(a_step_that_was_released_is_used_again)
{
    struct world w;
    struct step_pool pool;
    struct train_step *steps[3];
    float *own[3], *again;
    world_open(&w, "SGD");
    step_pool_init(&pool, w.job.model);
    for (int i = 0; i < 3; i++)
        steps[i] = taken(&pool, i, &own[i]);
    ck_assert_ptr_null(own[0]); /* the strategy has memory for one */
    ck_assert(own[1] != NULL && own[2] != NULL && own[1] != own[2]);
    ck_assert(steps[0]->sums != steps[1]->sums && steps[1]->sums != steps[2]->sums);
    ck_assert_uint_eq(step_pool_in_use(&pool), 3);
    for (int i = 2; i >= 0; i--) {
        steps[i]->ordinal = -1;
        ck_assert_uint_eq(step_pool_in_use(&pool), 2);
        ck_assert_ptr_eq(taken(&pool, 10 + i, &again), steps[i]);
        ck_assert_ptr_eq(again, own[i]);
    }
    ck_assert_uint_eq(pool.n, 3);
    step_pool_fini(&pool);
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("strategy");
    TCase *t = tcase_create("strategy");
    tcase_add_test(t, only_asynchronous_pushes_take_gradients_by_variable);
    tcase_add_test(t, clipping_needs_the_whole_gradient);
    tcase_add_test(t, the_cure_names_staleness_only_where_there_is_some);
    tcase_add_test(t, the_strategy_is_that_of_the_job_or_single);
    tcase_add_test(t, a_step_that_was_released_is_used_again);
    suite_add_tcase(s, t);
    return s;
}
