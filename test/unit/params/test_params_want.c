/* A push that brings the values of the next step with it (params_want_step). */
#include "params_fixture.h"

#include "base/clock.h"

#define COUNTING "{\"Counting\":{}}"
enum { GROUP = 2, PATIENT_MS = 10000 };
static const struct groups GROUPS = { .size = GROUP, .batches = 6, .examples = 4, .rest = 4 };

static struct world w;
static float *grads;

static struct params *trainer(struct params *p)
{
    struct err e;
    params_set_synchronous(p);
    ck_ok_e(params_pull_at(p, 0, 0, CALL_MS, &e));
    return p;
}

static void open_job(const struct form *form, struct layout *layout)
{
    world_open(&w, form, layout);
    grads = xcalloc(layout->vector, sizeof(float));
    auto_free float *zeros = xcalloc(layout->vector, sizeof(float));
    params_set_groups(w.chief, &GROUPS);
    bring_up(&w, COUNTING, zeros);
    trainer(w.worker);
    trainer(w.other);
}

static void close_job(void)
{
    free(TAKE(grads));
    world_close(&w);
}

/* Batches that the trainable values contain; -1: they differ. */
static int batches_in(struct params *p)
{
    const float *v = params_vector(p);
    float first = -1;
    for (size_t i = 0; i < w.layout->n; i++) {
        const struct segment_spec *s = &w.layout->segments[i];
        for (size_t k = 0; s->kind == VAR_TRAINABLE && k < s->count; k++) {
            first = first < 0 ? v[s->offset + k] : first;
            if (v[s->offset + k] != first)
                return -1;
        }
    }
    return (int)first;
}

static void start(struct params *p, int64_t ordinal, int64_t wanted, int64_t wait_ms)
{
    struct err e;
    if (wanted >= 0)
        params_want_step(p, wanted, wait_ms);
    ck_ok_e(params_push_start(p, ordinal, grads, true, CALL_MS, &e));
}

static struct push_result finish(struct params *p)
{
    struct push_result result;
    struct err e;
    ck_ok_e(params_push_finish(p, &result, &e));
    return result;
}

static struct push_result push_wanting(struct params *p, int64_t ordinal, int64_t wanted, int64_t wait_ms)
{
    start(p, ordinal, wanted, wait_ms);
    return finish(p);
}

/* How often each ps applied a gradient, and saw one twice. */
static bool pushed(uint64_t pushes, uint64_t duplicates)
{
    bool all = true;
    for (size_t ps = 0; ps < w.form->nps; ps++) {
        struct shard_info info;
        shard_brief(w.shard[ps], &info);
        all = all && info.pushes == pushes && info.duplicates == duplicates;
    }
    return all;
}

static void open_small(size_t nps)
{
    static struct form form;
    form = (struct form){ .name = "ps", .nps = nps };
    open_job(&form, small_layout());
}

static void open_one(void)
{
    open_small(1);
}

static void open_three(void)
{
    open_small(3);
}

START_TEST(the_last_gradient_of_a_step_brings_the_next_values)
{
    ck_assert(!push_wanting(w.other, 0, -1, 0).has_values);
    struct push_result result = push_wanting(w.worker, 1, GROUP, 0);
    ck_assert(result.has_values && result.staleness == 0 && result.version_min == 1);
    ck_assert_int_eq(batches_in(w.worker), GROUP);
    int64_t low, high;
    params_versions(w.worker, &low, &high);
    ck_assert(low == 1 && high == 1);
    ck_assert(pushed(2, 0));
}
END_TEST

START_TEST(an_earlier_gradient_waits_for_the_rest)
{
    start(w.worker, 0, GROUP, PATIENT_MS);
    ck_wait(pushed(1, 0)); /* it is there, and counts, while the answer waits */
    ck_assert(push_wanting(w.other, 1, GROUP, 0).has_values);
    ck_assert(finish(w.worker).has_values);
    ck_assert_int_eq(batches_in(w.worker), GROUP);
    ck_assert_int_eq(batches_in(w.other), GROUP);
    ck_assert(pushed(2, 0));
}
END_TEST

/* The values of now are kept, and can be pulled as ever. */
START_TEST(what_is_not_there_in_time_does_not_come)
{
    struct err e;
    struct push_result result = push_wanting(w.worker, 0, GROUP, 5);
    ck_assert(!result.has_values && !result.duplicate);
    ck_assert(pushed(1, 0));
    ck_fails(params_pull_at(w.worker, GROUP, 0, CALL_MS, &e), ERR_PENDING, "batch 1");
    push_wanting(w.other, 1, -1, 0);
    ck_ok_e(params_pull_at(w.worker, GROUP, 0, CALL_MS, &e));
    ck_assert_int_eq(batches_in(w.worker), GROUP);
}
END_TEST

START_TEST(a_repetition_changes_nothing)
{
    push_wanting(w.other, 0, -1, 0);
    push_wanting(w.other, 1, -1, 0);
    struct push_result result = push_wanting(w.worker, 1, GROUP, 0);
    ck_assert(result.has_values && result.duplicate);
    ck_assert_int_eq(batches_in(w.worker), GROUP);
    ck_assert(pushed(2, 1));
}
END_TEST

/* Two steps on the values of the step are gone. */
START_TEST(a_step_that_is_over_does_not_come)
{
    for (int64_t ordinal = 0; ordinal < 3 * GROUP; ordinal++)
        push_wanting(w.other, ordinal, -1, 0);
    struct push_result result = push_wanting(w.worker, 1, GROUP, PATIENT_MS);
    ck_assert(!result.has_values && result.duplicate);
}
END_TEST

START_TEST(the_wish_holds_for_one_push)
{
    push_wanting(w.other, 0, -1, 0);
    ck_assert(push_wanting(w.worker, 1, GROUP, 0).has_values);
    push_wanting(w.other, 2, -1, 0);
    ck_assert(!push_wanting(w.worker, 3, -1, 0).has_values);
    ck_assert_int_eq(batches_in(w.worker), GROUP);
}
END_TEST

/* A new chief: the gradient is pushed again in its generation, and was applied once. */
START_TEST(a_new_generation_ends_the_wait)
{
    struct err e;
    struct push_result result;
    start(w.worker, 0, GROUP, PATIENT_MS);
    ck_wait(pushed(1, 0));
    params_set_generation(w.chief, 2);
    for (size_t ps = 0; ps < w.form->nps; ps++)
        ck_ok_e(params_adopt(w.chief, ps, CALL_MS, &e));
    ck_fails(params_push_finish(w.worker, &result, &e), ERR_FENCED, "generation 1 is over");
    params_set_generation(w.worker, 2);
    params_set_generation(w.other, 2);
    ck_assert(push_wanting(w.worker, 0, -1, 0).duplicate);
    ck_assert(push_wanting(w.other, 1, GROUP, 0).has_values);
    ck_assert_int_eq(batches_in(w.other), GROUP);
}
END_TEST

/* A gradient of several messages, and shared memory: the values are pulled as before. */
static void want_none(const struct form *form, struct layout *layout)
{
    struct err e;
    open_job(form, layout);
    push_wanting(w.other, 0, -1, 0);
    ck_assert(!push_wanting(w.worker, 1, GROUP, PATIENT_MS).has_values);
    ck_ok_e(params_pull_at(w.worker, GROUP, 0, CALL_MS, &e));
    ck_assert_int_eq(batches_in(w.worker), GROUP);
    close_job();
}

START_TEST(large_gradients_and_shared_memory_bring_none)
{
    want_none(&(struct form){ .name = "several messages", .nps = 1 }, large_layout());
    want_none(&(struct form){ .name = "shared memory", .nps = 2, .share = true }, small_layout());
}
END_TEST

static TCase *cases(const char *name, void (*open)(void))
{
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 60);
    if (open == NULL) {
        tcase_add_test(t, large_gradients_and_shared_memory_bring_none);
        return t;
    }
    tcase_add_checked_fixture(t, open, close_job);
    tcase_add_test(t, the_last_gradient_of_a_step_brings_the_next_values);
    tcase_add_test(t, an_earlier_gradient_waits_for_the_rest);
    tcase_add_test(t, what_is_not_there_in_time_does_not_come);
    tcase_add_test(t, a_repetition_changes_nothing);
    tcase_add_test(t, a_step_that_is_over_does_not_come);
    tcase_add_test(t, the_wish_holds_for_one_push);
    tcase_add_test(t, a_new_generation_ends_the_wait);
    return t;
}

Suite *test_suite(void)
{
    Suite *s = suite_create("params_want");
    suite_add_tcase(s, cases("1 ps", open_one));
    suite_add_tcase(s, cases("3 ps", open_three));
    suite_add_tcase(s, cases("without", NULL));
    return s;
}
