/* Which step's batch statistics a shard adds, for whom, and how long a caller waits for those of others. */
#include "sync_fixture.h"

#include "base/clock.h"
#include "base/thread.h"

enum { AT_MOST_MS = 120000 }; /* beyond the limit of a test */

/* One number of each batch of [first, end): its ordinal. */
static int reduce_in(struct shard *s, const struct shard_caller *who, struct group_request *q, int64_t first,
                     int64_t end, struct err *e)
{
    int64_t ordinals[GROUP_SIZE + 1];
    double numbers[GROUP_SIZE + 1];
    for (int64_t i = first; i < end; i++) {
        ordinals[i - first] = i;
        numbers[i - first] = (double)i;
    }
    q->part.ordinals = ordinals;
    q->part.n = (size_t)(end - first);
    q->part.numbers = numbers;
    q->part.width = 1;
    return q->wait_ms > 0 ? shard_reduce_wait(s, who, q, e) : shard_reduce(s, who, q, e);
}

static int reduce(struct shard *s, int64_t at, int64_t first, int64_t end, double *ret, struct err *e)
{
    struct group_request q = { .part = { .at = at }, .totals = ret };
    int rc = reduce_in(s, &CHIEF, &q, first, end, e);
    ck_assert(rc < 0 || q.answer == GROUP_TOTALS);
    return rc;
}

static void push_group(struct shard *s, int64_t at)
{
    for (int64_t i = at; i < groups_end(&G, at); i++)
        push(s, i);
}

static void want_sum(struct shard *s, int64_t at, double wanted)
{
    struct err e = { 0 };
    double sum = -1;
    ck_ok_e(reduce(s, at, at, at, &sum, &e)); /* asks only */
    ck_assert_double_eq(sum, wanted);
}

START_TEST(the_step_of_now_is_added)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    double sum = -1;
    AUTO(shard) *s = synchronous(l, SGD, init);
    ck_fails(reduce(s, 0, 0, 3, &sum, &e), ERR_PENDING, "the batch statistics of batch 3");
    ck_ok_e(reduce(s, 0, 3, 4, &sum, &e));
    ck_assert_double_eq(sum, 0 + 1 + 2 + 3);
    ck_fails(reduce(s, 4, 4, 8, &sum, &e), ERR_PENDING, "the step of batch 4");
    push_group(s, 0);
    push_group(s, 4);
    ck_ok_e(reduce(s, 8, 8, 10, &sum, &e)); /* the last group of an epoch is short */
    ck_assert_double_eq(sum, 8 + 9);
    push_group(s, 8);
    ck_ok_e(reduce(s, 10, 10, 14, &sum, &e));
    ck_assert_double_eq(sum, 10 + 11 + 12 + 13);
}
END_TEST

/* Another ps may lack gradients of the step: their batches are computed again. */
START_TEST(the_step_before_counts_until_the_next_one_begins)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    double sum = -1;
    AUTO(shard) *s = synchronous(l, SGD, init);
    ck_ok_e(reduce(s, 0, 0, 4, &sum, &e));
    push_group(s, 0);
    want_sum(s, 0, 6);
    ck_fails(reduce(s, 4, 4, 5, &sum, &e), ERR_PENDING, "the batch statistics of batches 5, 6, 7");
    ck_fails(reduce(s, 0, 0, 4, &sum, &e), ERR_STALE, "the step of batch 0 is over");
    ck_ok_e(reduce(s, 4, 5, 8, &sum, &e));
    ck_assert_double_eq(sum, 4 + 5 + 6 + 7);
}
END_TEST

/* Also where no sums of the step were asked for. */
START_TEST(an_older_step_is_over)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    double sum = -1;
    AUTO(shard) *s = synchronous(l, SGD, init);
    push_group(s, 0);
    ck_fails(reduce(s, 0, 0, 4, &sum, &e), ERR_STALE, "the step of batch 0 is over");
    push_group(s, 4);
    ck_fails(reduce(s, 4, 4, 8, &sum, &e), ERR_STALE, "the step of batch 4 is over");
}
END_TEST

START_TEST(what_is_not_a_step_is_refused)
{
    static const int64_t NOT_FIRST[] = { -1, -4, 1, 3, 9, 12, INT64_MAX, INT64_MIN };
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    double sum = -1;
    AUTO(shard) *s = synchronous(l, SGD, init);
    for (size_t i = 0; i < COUNT_OF(NOT_FIRST); i++)
        ck_fails(reduce(s, NOT_FIRST[i], 0, 0, &sum, &e), ERR_INPUT, "is not the first of a group of 4");
    const int64_t last = INT64_MAX - INT64_MAX % EPOCH;
    ck_fails(reduce(s, last, 0, 0, &sum, &e), ERR_PENDING, "the step of batch");
    ck_ok_e(reduce(s, 0, 0, 4, &sum, &e)); /* none of them counts as a step */
}
END_TEST

START_TEST(asynchronous_batches_have_no_sums)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    double sum = -1;
    AUTO(shard) *s = serving(l, SGD, init), *empty = shard_new(1);
    ck_fails(reduce(s, 0, 0, 1, &sum, &e), ERR_REFUSED, "training is asynchronous");
    ck_fails(reduce(empty, 0, 0, 1, &sum, &e), ERR_NOT_READY, "");
}
END_TEST

START_TEST(a_ps_without_segments_knows_no_step)
{
    AUTO(layout) *l = small_layout();
    struct err e = { 0 };
    double sum = -1;
    AUTO(shard) *s = shard_new(11);
    l->n = 0;
    begin(s, &CHIEF, &G, l, SGD, NULL);
    ck_fails(reduce(s, 0, 0, 4, &sum, &e), ERR_REFUSED, "this ps has no segments");
}
END_TEST

/* ---- generations ---- */

static struct shard_caller of_generation(uint64_t generation)
{
    struct shard_caller who = CHIEF;
    who.generation = generation;
    return who;
}

static int reduce_as(struct shard *s, uint64_t generation, int64_t first, int64_t end, double *ret, struct err *e)
{
    const struct shard_caller who = of_generation(generation);
    struct group_request q = { .totals = ret };
    return reduce_in(s, &who, &q, first, end, e);
}

START_TEST(a_new_chief_keeps_the_sums)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    double sum = -1;
    const struct shard_caller second = of_generation(2);
    AUTO(shard) *s = synchronous(l, SGD, init);
    ck_fails(reduce_as(s, 1, 0, 3, &sum, &e), ERR_PENDING, "of batch 3");
    ck_ok_e(shard_adopt(s, &second, &e));
    ck_fails(reduce_as(s, 1, 3, 4, &sum, &e), ERR_FENCED, "generation 1 is over, this is 2");
    ck_ok_e(reduce_as(s, 2, 3, 4, &sum, &e));
    ck_assert_double_eq(sum, 6);
}
END_TEST

START_TEST(a_new_life_has_no_sums)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    double sum = -1;
    const struct shard_caller second = of_generation(2);
    AUTO(shard) *s = synchronous(l, SGD, init);
    ck_ok_e(reduce_as(s, 1, 0, 4, &sum, &e));
    begin(s, &second, &G, l, SGD, init);
    ck_fails(reduce_as(s, 1, 0, 4, &sum, &e), ERR_FENCED, "");
    ck_fails(reduce_as(s, 2, 0, 0, &sum, &e), ERR_PENDING, "of batches 0, 1, 2, 3");
    ck_fails(reduce_as(s, 2, 0, 3, &sum, &e), ERR_PENDING, "of batch 3");
    ck_ok_e(shard_load_again(s, &e));
    ck_fails(reduce_as(s, 2, 0, 4, &sum, &e), ERR_NOT_READY, "");
    for (size_t i = 0; i < l->n; i++)
        restore_from(s, &second, &l->segments[i], init);
    ck_ok_e(shard_serve(s, &second, &e));
    ck_fails(reduce_as(s, 2, 3, 4, &sum, &e), ERR_PENDING, "of batches 0, 1, 2");
}
END_TEST

/* ---- waits ---- */

struct waiter {
    struct shard *shard;
    struct group_request request;
    int64_t first, end;
    double sum;
    int result;
    struct err error;
    struct thread thread;
};

static void wait_for_others(void *user)
{
    struct waiter *x = user;
    x->result = reduce_in(x->shard, &CHIEF, &x->request, x->first, x->end, &x->error);
}

static bool has_missing(struct shard *s, int64_t at, const char *text)
{
    struct err e = { .msg = "" };
    double sum;
    ck_assert_int_eq(reduce(s, at, at, at, &sum, &e), -1);
    return strstr(e.msg, text) != NULL;
}

/* Returns when its batches have come. missing: what is said then. */
static void begin_wait(struct waiter *x, struct shard *s, int64_t first, int64_t end, const char *missing)
{
    struct err e = { 0 };
    *x = (struct waiter){ .shard = s, .first = first, .end = end };
    x->request = (struct group_request){ .totals = &x->sum, .wait_ms = AT_MOST_MS };
    ck_ok_e(thread_start(&x->thread, "waiter", wait_for_others, x, &e));
    ck_wait(has_missing(s, 0, missing));
}

START_TEST(a_wait_ends_with_the_last_batch)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    struct waiter x, y;
    double sum = -1;
    AUTO(shard) *s = synchronous(l, SGD, init);
    begin_wait(&x, s, 0, 1, "of batches 1, 2, 3");
    begin_wait(&y, s, 2, 4, "of batch 1");
    ck_ok_e(reduce(s, 0, 1, 2, &sum, &e));
    thread_join(&x.thread);
    thread_join(&y.thread);
    ck_assert_msg(x.result == 0 && y.result == 0, "%s %s", x.error.msg, y.error.msg);
    ck_assert_double_eq(sum, 6);
    ck_assert_double_eq(x.sum, 6);
    ck_assert_double_eq(y.sum, 6);
}
END_TEST

START_TEST(a_wait_ends_with_the_generation)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    struct waiter x;
    const struct shard_caller second = of_generation(2);
    AUTO(shard) *s = synchronous(l, SGD, init);
    begin_wait(&x, s, 0, 3, "of batch 3");
    ck_ok_e(shard_adopt(s, &second, &e)); /* a wait does not hold the gate */
    thread_join(&x.thread);
    ck_assert_int_eq(x.result, -1);
    ck_assert_int_eq(x.error.code, ERR_FENCED);
}
END_TEST

/* The gradients come from other workers, and the update is made. */
START_TEST(a_wait_ends_with_its_step)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    struct waiter x;
    double sum;
    AUTO(shard) *s = synchronous(l, SGD, init);
    begin_wait(&x, s, 0, 3, "of batch 3");
    push_group(s, 0);
    ck_fails(reduce(s, 4, 4, 5, &sum, &e), ERR_PENDING, "of batches 5, 6, 7");
    push_group(s, 4); /* an update: those that wait look again */
    thread_join(&x.thread);
    ck_assert_int_eq(x.result, -1);
    ck_assert_int_eq(x.error.code, ERR_STALE);
}
END_TEST

START_TEST(a_wait_has_an_end)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    double sum;
    struct group_request q = { .totals = &sum, .wait_ms = 1 };
    AUTO(shard) *s = synchronous(l, SGD, init);
    ck_fails(reduce_in(s, &CHIEF, &q, 0, 3, &e), ERR_PENDING, "the batch statistics of batch 3");
    ck_ok_e(reduce_in(s, &CHIEF, &q, 3, 4, &e)); /* what it gave is there */
    ck_assert_double_eq(sum, 6);
    q.part.phase = 2; /* sums that are lost are not waited for */
    q.wait_ms = AT_MOST_MS;
    ck_ok_e(reduce_in(s, &CHIEF, &q, 0, 1, &e));
    ck_assert_int_eq((int)q.answer, GROUP_AGAIN);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("shard_reduce");
    TCase *t = tcase_create("steps"), *wait = tcase_create("waits");
    tcase_set_timeout(wait, 60);
    tcase_add_test(t, the_step_of_now_is_added);
    tcase_add_test(t, the_step_before_counts_until_the_next_one_begins);
    tcase_add_test(t, an_older_step_is_over);
    tcase_add_test(t, what_is_not_a_step_is_refused);
    tcase_add_test(t, asynchronous_batches_have_no_sums);
    tcase_add_test(t, a_ps_without_segments_knows_no_step);
    tcase_add_test(t, a_new_chief_keeps_the_sums);
    tcase_add_test(t, a_new_life_has_no_sums);
    tcase_add_test(wait, a_wait_ends_with_the_last_batch);
    tcase_add_test(wait, a_wait_ends_with_the_generation);
    tcase_add_test(wait, a_wait_ends_with_its_step);
    tcase_add_test(wait, a_wait_has_an_end);
    suite_add_tcase(s, t);
    suite_add_tcase(s, wait);
    return s;
}
