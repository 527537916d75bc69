/* The batches of a group in lanes, with a strategy that is a table of operations of this test: it keeps a log, and adds
 * the statistics in a group_sums of its own, as the first member or the first ps does. Two workers are two lockstep. */
#include "shard/job_fixture.h"

#include <math.h>

#include "nn/metrics/metrics.h"
#include "shard/group_sums.h"
#include "train/lockstep.h"

enum { BATCHES = 2, STEPS = 4 };

static const char LAYERS[] = "[{Dense: {units: 3}}, {BatchNormalization: {synchronized: true}}, {Dense: {units: 1}}]";

struct fake {
    struct train_strategy base;
    const struct model *model;
    const float *values;
    struct group_sums *sums;
    struct train_step steps[STEPS]; /* in use: with an ordinal */
    int64_t later, over;            /* begin_step refuses this one; -1: none */
    bool again;                     /* submit: the sums are lost */
    bool stale;                     /* reduce: the step is over */
    int begun, ended;               /* steps */
    struct buf log;
    float *gradients[JOB_BATCHES]; /* [ordinal] submitted */
};

static struct fake *fake_of(struct train_strategy *s)
{
    return (struct fake *)(void *)s;
}

static int fake_begin_step(struct train_strategy *s, int64_t ordinal, struct train_step **ret, struct err *e)
{
    struct fake *f = fake_of(s);
    size_t i = 0;
    (void)e;
    if (ordinal == f->later || ordinal == f->over)
        return ordinal == f->later ? STEP_LATER : STEP_OVER;
    while (f->steps[i].ordinal >= 0)
        ck_assert_uint_lt(++i, STEPS);
    f->steps[i].ordinal = ordinal;
    f->steps[i].values = f->values;
    f->steps[i].by_variable = true;
    f->begun++;
    *ret = &f->steps[i];
    return 0;
}

static void end_step(struct fake *f, struct train_step *step)
{
    ck_assert_int_ge(step->ordinal, 0); /* not ended before */
    step->ordinal = -1;
    f->ended++;
}

static int fake_submit(struct train_strategy *s, struct train_step *step, struct err *e)
{
    struct fake *f = fake_of(s);
    size_t bytes = model_size(f->model) * sizeof(float);
    (void)e;
    if (f->again) {
        f->again = false;
        group_sums_begin(f->sums, 0, BATCHES);
        return STEP_AGAIN;
    }
    buf_printf(&f->log, "s%lld;", (long long)step->ordinal);
    free(f->gradients[step->ordinal]);
    f->gradients[step->ordinal] = xmalloc(bytes);
    memcpy(f->gradients[step->ordinal], step->grads, bytes);
    end_step(f, step);
    return 0;
}

static int fake_reduce(struct train_strategy *s, struct group_request *q, struct err *e)
{
    struct fake *f = fake_of(s);
    const double *totals;
    bool complete;
    struct err cause = { 0 };
    (void)e;
    buf_printf(&f->log, "r%u:", q->part.phase);
    for (size_t i = 0; i < q->part.n; i++)
        buf_printf(&f->log, "%s%lld", i > 0 ? "," : "", (long long)q->part.ordinals[i]);
    buf_str(&f->log, ";");
    if (f->stale)
        return STEP_OVER;
    if (group_sums_at(f->sums) != q->part.at)
        group_sums_begin(f->sums, q->part.at, q->part.at + BATCHES);
    if (group_sums_add(f->sums, &q->part, &q->answer, &totals, &complete, &cause) < 0) {
        ck_assert_msg(err_is(&cause, ERR_PENDING), "%s", cause.msg);
        return STEP_LATER;
    }
    if (q->answer == GROUP_TOTALS)
        memcpy(q->totals, totals, q->part.width * sizeof(*totals));
    return 0;
}

static void fake_give_up(struct train_strategy *s, struct train_step *step)
{
    end_step(fake_of(s), step);
}

static const struct strategy_ops FAKE = {
    .begin_step = fake_begin_step, .submit = fake_submit, .reduce = fake_reduce, .give_up = fake_give_up
};

struct world {
    struct job_fixture job;
    struct fake fake;
    float *values;
    struct step_engine_config engine;
    struct lockstep *lanes, *others; /* of two workers */
};

static void fake_open(struct fake *f, const struct model *m, const float *values)
{
    *f = (struct fake){ .base.ops = &FAKE, .model = m, .values = values, .later = -1, .over = -1, .log = BUF_INIT };
    f->sums = group_sums_new();
    buf_str(&f->log, "");
    for (size_t i = 0; i < STEPS; i++) {
        f->steps[i].ordinal = -1;
        f->steps[i].grads = xcalloc(model_size(m), sizeof(float));
        f->steps[i].sums = xcalloc(metrics_width(m), sizeof(double));
    }
}

static void world_open_layers(struct world *w, const char *layers)
{
    job_open_layers(&w->job, layers, "SGD", "epochs: 1");
    size_t size = model_size(w->job.model);
    w->values = xcalloc(size, sizeof(float));
    for (size_t i = 0; i < size; i++)
        w->values[i] = 0.25F + 0.125F * (float)(i % 7);
    fake_open(&w->fake, w->job.model, w->values);
    w->engine = (struct step_engine_config){ .model = w->job.model, .dataset = w->job.train, .space = &w->job.space };
    w->lanes = lockstep_new(&w->fake.base, &w->engine);
    w->others = lockstep_new(&w->fake.base, &w->engine);
}

static void world_open(struct world *w)
{
    world_open_layers(w, LAYERS);
}

static void world_close(struct world *w)
{
    struct fake *f = &w->fake;
    lockstep_free(w->lanes);
    lockstep_free(w->others);
    group_sums_free(f->sums);
    for (size_t i = 0; i < STEPS; i++) {
        free(f->steps[i].grads);
        free(f->steps[i].sums);
    }
    for (size_t i = 0; i < JOB_BATCHES; i++)
        free(f->gradients[i]);
    buf_fini(&f->log);
    free(w->values);
    job_close(&w->job);
}

static int add(struct lockstep *l, int64_t ordinal)
{
    struct err e = { 0 };
    int rc = lockstep_add(l, ordinal - ordinal % BATCHES, ordinal, &e);
    ck_assert_msg(rc >= 0, "%s", e.msg);
    return rc;
}

static int compute(struct lockstep *l)
{
    struct err e = { 0 };
    int rc = lockstep_compute(l, &e);
    ck_assert_msg(rc >= 0, "%s", e.msg);
    return rc;
}

static void submit_all(struct lockstep *l)
{
    struct err e = { 0 };
    while (lockstep_lanes(l) > 0)
        ck_ok_e(lockstep_submit(l, &e));
    ck_assert_int_eq(lockstep_at(l), -1);
}

/* What was logged since the last call. */
static void want_log(struct world *w, const char *wanted)
{
    ck_assert_str_eq(w->fake.log.data, wanted);
    buf_clear(&w->fake.log);
    buf_str(&w->fake.log, "");
}

/* The gradients that were submitted are those of lanes that begin together. */
static void want_same_gradients(const struct world *w)
{
    struct world plain = { 0 };
    world_open(&plain);
    ck_assert_int_eq(add(plain.lanes, 0), 0);
    ck_assert_int_eq(add(plain.lanes, 1), 0);
    ck_assert_int_eq(compute(plain.lanes), 0);
    submit_all(plain.lanes);
    for (size_t o = 0; o < BATCHES; o++) {
        ck_assert_ptr_nonnull(w->fake.gradients[o]);
        ck_assert_mem_eq(w->fake.gradients[o], plain.fake.gradients[o], model_size(w->job.model) * sizeof(float));
    }
    world_close(&plain);
}

START_TEST(lanes_go_through_each_phase_and_end_in_ascending_order)
{
    struct world w = { 0 };
    world_open(&w);
    ck_assert_int_eq(lockstep_at(w.lanes), -1);
    ck_assert_int_eq(add(w.lanes, 1 - _i), 0);
    ck_assert_int_eq(add(w.lanes, _i), 0);
    ck_assert_int_eq(lockstep_at(w.lanes), 0);
    ck_assert_int_eq(compute(w.lanes), 0);
    ck_assert_int_eq(compute(w.lanes), 0); /* nothing is left */
    submit_all(w.lanes);
    want_log(&w, "r0:0,1;r1:0,1;s0;s1;");
    want_same_gradients(&w);
    world_close(&w);
}
END_TEST

START_TEST(an_ordinal_that_is_added_twice_has_one_lane)
{
    struct world w = { 0 };
    world_open(&w);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(add(w.lanes, 1), 0);
        ck_assert_int_eq(add(w.lanes, 0), 0);
    }
    ck_assert_uint_eq(lockstep_lanes(w.lanes), 2);
    ck_assert_int_eq(lockstep_step(w.lanes, 0)->ordinal, 0);
    ck_assert_int_eq(lockstep_step(w.lanes, 1)->ordinal, 1);
    ck_assert_int_eq(w.fake.begun, 2);
    world_close(&w);
}
END_TEST

/* Another worker has computed batch 1 up to the sums of phase 1, and leaves. */
START_TEST(a_lane_that_comes_later_catches_up)
{
    struct world w = { 0 };
    world_open(&w);
    ck_assert_int_eq(add(w.lanes, 0), 0);
    ck_assert_int_eq(add(w.others, 1), 0);
    ck_assert_int_eq(compute(w.lanes), STEP_LATER);
    ck_assert_int_eq(compute(w.others), STEP_LATER); /* phase 0 is complete */
    lockstep_clear(w.others);
    group_sums_begin(w.fake.sums, 0, BATCHES); /* its numbers of phase 1 are lost, too: phase 0 is made again */
    ck_assert_int_eq(add(w.lanes, 1), 0);
    want_log(&w, "r0:0;r0:1;r1:1;");
    ck_assert_int_eq(compute(w.lanes), 0);
    want_log(&w, "r0:0,1;r1:0,1;");
    submit_all(w.lanes);
    want_same_gradients(&w);
    world_close(&w);
}
END_TEST

START_TEST(a_lane_waits_in_its_phase_while_another_one_catches_up)
{
    struct world w = { 0 };
    world_open(&w);
    ck_assert_int_eq(add(w.lanes, 0), 0);
    ck_assert_int_eq(add(w.others, 1), 0);
    ck_assert_int_eq(compute(w.others), STEP_LATER);
    ck_assert_int_eq(compute(w.lanes), STEP_LATER); /* in phase 1 now; the other one is in phase 0 */
    want_log(&w, "r0:1;r0:0;r1:0;");
    lockstep_clear(w.others);
    ck_assert_int_eq(add(w.lanes, 1), 0);
    ck_assert_int_eq(compute(w.lanes), 0);
    want_log(&w, "r0:1;r1:0,1;");
    submit_all(w.lanes);
    want_same_gradients(&w);
    world_close(&w);
}
END_TEST

START_TEST(all_lanes_begin_anew_when_sums_are_lost)
{
    struct world w = { 0 };
    world_open(&w);
    ck_assert_int_eq(add(w.lanes, 0), 0);
    ck_assert_int_eq(add(w.others, 1), 0);
    ck_assert_int_eq(compute(w.others), STEP_LATER);
    ck_assert_int_eq(compute(w.lanes), STEP_LATER);
    lockstep_clear(w.others);
    group_sums_begin(w.fake.sums, 0, BATCHES); /* another first member */
    want_log(&w, "r0:1;r0:0;r1:0;");
    ck_assert_int_eq(compute(w.lanes), STEP_LATER);
    want_log(&w, "r1:0;r0:0;"); /* GROUP_AGAIN, and again from phase 0 */
    ck_assert_int_eq(add(w.lanes, 1), 0);
    ck_assert_int_eq(compute(w.lanes), 0);
    want_log(&w, "r0:0,1;r1:0,1;");
    submit_all(w.lanes);
    ck_assert_int_eq(w.fake.begun, 3);
    ck_assert_int_eq(w.fake.ended, 3);
    want_same_gradients(&w);
    world_close(&w);
}
END_TEST

START_TEST(lanes_that_are_done_begin_anew_when_sums_are_lost)
{
    struct world w = { 0 };
    struct err e = { 0 };
    world_open(&w);
    ck_assert_int_eq(add(w.lanes, 0), 0);
    ck_assert_int_eq(add(w.lanes, 1), 0);
    ck_assert_int_eq(compute(w.lanes), 0);
    w.fake.again = true;
    ck_assert_int_eq(lockstep_submit(w.lanes, &e), STEP_LATER);
    ck_assert_uint_eq(lockstep_lanes(w.lanes), 2);
    ck_assert_int_eq(compute(w.lanes), 0);
    submit_all(w.lanes);
    want_log(&w, "r0:0,1;r1:0,1;r0:0,1;r1:0,1;s0;s1;");
    want_same_gradients(&w);
    world_close(&w);
}
END_TEST

START_TEST(every_step_is_given_back_once)
{
    struct world w = { 0 };
    world_open(&w);
    w.fake.later = 1;
    ck_assert_int_eq(add(w.lanes, 0), 0);
    ck_assert_int_eq(add(w.lanes, 1), STEP_LATER);
    ck_assert_uint_eq(lockstep_lanes(w.lanes), 1);
    w.fake.later = -1;
    w.fake.over = 1;
    ck_assert_int_eq(add(w.lanes, 1), STEP_OVER);
    ck_assert_uint_eq(lockstep_lanes(w.lanes), 1);
    w.fake.over = -1;
    ck_assert_int_eq(add(w.lanes, 1), 0);
    w.fake.stale = true;
    ck_assert_int_eq(compute(w.lanes), STEP_OVER);
    ck_assert_int_eq(w.fake.ended, 0); /* the caller still needs the ordinals */
    lockstep_clear(w.lanes);
    lockstep_clear(w.lanes);
    ck_assert_int_eq(lockstep_at(w.lanes), -1);
    ck_assert_int_eq(w.fake.begun, 2);
    ck_assert_int_eq(w.fake.ended, 2);
    w.fake.stale = false;
    ck_assert_int_eq(add(w.lanes, 3), 0); /* of another group */
    ck_assert_int_eq(lockstep_at(w.lanes), 2);
    world_close(&w);
}
END_TEST

START_TEST(engines_are_used_again)
{
    struct world w = { 0 };
    struct err e = { 0 };
    const struct step_engine *known[BATCHES] = { NULL };
    world_open(&w);
    for (int64_t at = 0; at < JOB_BATCHES; at += BATCHES) {
        ck_assert_int_eq(add(w.lanes, at + at / BATCHES % 2), 0);
        ck_assert_int_eq(add(w.lanes, at + 1 - at / BATCHES % 2), 0);
        ck_assert_ptr_null(lockstep_reader(w.lanes));
        ck_assert_int_eq(compute(w.lanes), 0);
        ck_ok_e(lockstep_submit(w.lanes, &e));
        const struct step_engine *left = lockstep_reader(w.lanes);
        ck_assert_ptr_nonnull(left);
        size_t i = 0;
        while (known[i] != NULL && known[i] != left)
            ck_assert_uint_lt(++i, BATCHES);
        known[i] = left;
        submit_all(w.lanes);
        ck_assert_ptr_null(lockstep_reader(w.lanes));
    }
    world_close(&w);
}
END_TEST

START_TEST(a_loss_that_is_not_finite_names_its_batch)
{
    struct world w = { 0 };
    struct err e = { 0 };
    world_open(&w);
    for (size_t i = 0; i < model_size(w.job.model); i++)
        w.values[i] = 1e30F; /* the square of the loss overflows */
    ck_assert_int_eq(add(w.lanes, 2), 0);
    ck_assert_int_eq(add(w.lanes, 3), 0);
    ck_fails(lockstep_compute(w.lanes, &e), ERR_DIVERGED, "of batch 2 (epoch 1) is not finite");
    ck_assert_int_eq(lockstep_advanced(w.lanes), 2);
    world_close(&w);
}
END_TEST

/* Nothing before the layer is trained, so that the other batch does not need its gradient. */
START_TEST(the_batch_that_diverged_is_known)
{
    struct world w = { 0 };
    struct err e = { 0 };
    world_open_layers(&w, "[{BatchNormalization: {synchronized: true}}, {Dense: {units: 1}}]");
    auto_free float *large = xcalloc(model_size(w.job.model), sizeof(float));
    for (size_t i = 0; i < model_size(w.job.model); i++)
        large[i] = 1e30F;
    ck_assert_int_eq(add(w.lanes, 2), 0);
    w.fake.values = large;
    ck_assert_int_eq(add(w.lanes, 3), 0);
    ck_fails(lockstep_compute(w.lanes, &e), ERR_DIVERGED, "of batch 3 (epoch 1) is not finite");
    ck_assert_int_eq(lockstep_advanced(w.lanes), 3);
    world_close(&w);
}
END_TEST

/* The gradient of one exec with the examples of both batches. */
static void joined_gradient(const struct world *w, float *ret)
{
    struct err e = { 0 };
    struct ordinal_space space = w->job.space;
    space.batch_size = BATCHES * JOB_BATCH;
    AUTO(step_engine) *g = NULL;
    auto_free double *sums = xcalloc(metrics_width(w->job.model), sizeof(*sums));
    struct step_engine_config config = w->engine;
    config.space = &space;
    ck_ok_e(step_engine_new(&config, &g, &e));
    struct train_step step = { .values = w->values, .grads = ret, .sums = sums };
    ck_ok_e(step_engine_load(g, 0, &e));
    ck_ok_e(step_engine_compute(g, &step, NULL, NULL, &e));
    ck_assert_uint_eq(step.examples, BATCHES * JOB_BATCH);
}

START_TEST(the_mean_gradient_is_that_of_the_joined_batch)
{
    struct world w = { 0 };
    world_open(&w);
    auto_free float *joined = xcalloc(model_size(w.job.model), sizeof(float));
    ck_assert_int_eq(add(w.lanes, 0), 0);
    ck_assert_int_eq(add(w.lanes, 1), 0);
    ck_assert_int_eq(compute(w.lanes), 0);
    submit_all(w.lanes);
    joined_gradient(&w, joined);
    for (size_t i = 0; i < model_variables(w.job.model); i++) {
        const struct variable *v = model_variable(w.job.model, i);
        for (size_t k = v->offset; v->kind == VAR_TRAINABLE && k < v->offset + v->count; k++) {
            double mean = ((double)w.fake.gradients[0][k] + (double)w.fake.gradients[1][k]) / 2;
            ck_assert_msg(fabs(mean - (double)joined[k]) <= 1e-5 * (1 + fabs(mean)), "%s[%zu]: %g, not %g", v->name,
                          k - v->offset, mean, (double)joined[k]);
        }
    }
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("lockstep");
    TCase *t = tcase_create("lockstep");
    tcase_add_loop_test(t, lanes_go_through_each_phase_and_end_in_ascending_order, 0, 2);
    tcase_add_test(t, an_ordinal_that_is_added_twice_has_one_lane);
    tcase_add_test(t, a_lane_that_comes_later_catches_up);
    tcase_add_test(t, a_lane_waits_in_its_phase_while_another_one_catches_up);
    tcase_add_test(t, all_lanes_begin_anew_when_sums_are_lost);
    tcase_add_test(t, lanes_that_are_done_begin_anew_when_sums_are_lost);
    tcase_add_test(t, every_step_is_given_back_once);
    tcase_add_test(t, engines_are_used_again);
    tcase_add_test(t, a_loss_that_is_not_finite_names_its_batch);
    tcase_add_test(t, the_batch_that_diverged_is_known);
    tcase_add_test(t, the_mean_gradient_is_that_of_the_joined_batch);
    suite_add_tcase(s, t);
    return s;
}
