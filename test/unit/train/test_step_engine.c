/* A gradient that is passed on variable by variable has the bits of the whole gradient. A gradient that is not finite
 * is not passed on. */
#include "shard/job_fixture.h"

#include <math.h>

#include "nn/metrics/metrics.h"
#include "train/step_engine.h"

struct world {
    struct job_fixture job;
    struct step_engine *engine;
    float *values;
    struct train_step step;
    float *copy; /* of the gradient, as it is passed on */
    size_t calls, last;
};

static void world_open(struct world *w, float value)
{
    struct err e = { 0 };
    *w = (struct world){ .step.ordinal = 0 };
    job_open(&w->job, "SGD", "epochs: 1");
    size_t size = model_size(w->job.model);
    ck_ok_e(step_engine_new(
        &(struct step_engine_config){ .model = w->job.model, .dataset = w->job.train, .space = &w->job.space },
        &w->engine, &e));
    w->values = xcalloc(size, sizeof(float));
    for (size_t i = 0; i < size; i++)
        w->values[i] = value;
    w->copy = xcalloc(size, sizeof(float));
    w->step.values = w->values;
    w->step.grads = xcalloc(size, sizeof(float));
    w->step.sums = xcalloc(metrics_width(w->job.model), sizeof(double));
    w->last = model_variables(w->job.model);
}

static void world_close(struct world *w)
{
    step_engine_free(w->engine);
    free(w->values);
    free(w->copy);
    free(w->step.grads);
    free(w->step.sums);
    job_close(&w->job);
}

static void take(void *user, struct train_step *step, size_t variable)
{
    struct world *w = user;
    const struct variable *v = model_variable(w->job.model, variable);
    ck_assert_ptr_eq(step, &w->step);
    ck_assert_uint_lt(variable, w->last); /* from the last to the first */
    w->last = variable;
    w->calls++;
    memcpy(w->copy + v->offset, step->grads + v->offset, v->count * sizeof(float));
}

static int compute(struct world *w, bool by_variable, struct err *e)
{
    w->step.by_variable = by_variable;
    ck_assert_msg(step_engine_load(w->engine, w->step.ordinal, e) == 0, "%s", e->msg);
    return step_engine_compute(w->engine, &w->step, take, w, e);
}

START_TEST(what_is_handed_over_is_the_whole_gradient)
{
    struct world w;
    struct err e = { 0 };
    world_open(&w, 0.25F);
    ck_ok_e(compute(&w, true, &e));
    ck_assert_uint_eq(w.calls, model_variables(w.job.model));
    ck_ok_e(compute(&w, false, &e));
    ck_assert_uint_eq(w.calls, model_variables(w.job.model));
    ck_assert_mem_eq(w.copy, w.step.grads, model_size(w.job.model) * sizeof(float));
    ck_assert_uint_eq(w.step.examples, JOB_BATCH);
    ck_assert(isfinite(w.step.loss) && w.step.loss > 0);
    world_close(&w);
}
END_TEST

START_TEST(nothing_that_is_not_finite_is_handed_over)
{
    struct world w;
    struct err e = { 0 };
    world_open(&w, 1e30F); /* the square of the loss overflows */
    ck_fails(compute(&w, _i, &e), ERR_DIVERGED, "the loss of batch 0 (epoch 1) is not finite");
    ck_assert_uint_eq(w.calls, 0);
    world_close(&w);
}
END_TEST

START_TEST(two_engines_of_a_model_compute_the_same)
{
    struct world w, other;
    struct err e = { 0 };
    world_open(&w, 0.25F);
    world_open(&other, 0.25F);
    other.step.ordinal = 3;
    ck_ok_e(compute(&w, false, &e));
    ck_ok_e(compute(&other, false, &e)); /* another batch in between */
    other.step.ordinal = 0;
    ck_ok_e(compute(&other, false, &e));
    ck_assert_mem_eq(w.step.grads, other.step.grads, model_size(w.job.model) * sizeof(float));
    world_close(&w);
    world_close(&other);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("step_engine");
    TCase *t = tcase_create("step_engine");
    tcase_add_test(t, what_is_handed_over_is_the_whole_gradient);
    tcase_add_loop_test(t, nothing_that_is_not_finite_is_handed_over, 0, 2);
    tcase_add_test(t, two_engines_of_a_model_compute_the_same);
    suite_add_tcase(s, t);
    return s;
}
