/* Synchronous updates of a shard: one group after the other, whatever the order in which gradients come. */
#include "shard_fixture.h"

/* 10 batches of 4 an epoch, the last one of 3; groups of 4: 4, 4, 2. */
static const struct groups G = { .size = 4, .batches = 10, .examples = 4, .rest = 3 };
static const struct shard_part ALL = { 0, 0 };
enum { FLOATS = 80, PULLED = 29, EPOCH = 10 };

static struct shard *synchronous(const struct layout *l, const char *optimizer, const float *vector)
{
    struct shard *s = shard_new(11);
    struct err e;
    ck_ok_e(shard_init(s, &CHIEF, optimizer, l->segments, l->n, l->hash, &e));
    ck_ok_e(shard_set_groups(s, &CHIEF, &G, &e));
    for (size_t i = 0; i < l->n; i++)
        restore_from(s, &CHIEF, &l->segments[i], vector);
    ck_ok_e(shard_serve(s, &CHIEF, &e));
    return s;
}

/* The gradient of an ordinal: a function of it, and of nothing else. */
static int push_part(struct shard *s, int64_t ordinal, struct shard_part part, bool *duplicate, struct err *e)
{
    AUTO(layout) *l = small_layout();
    float grads[FLOATS] = { 0 };
    int64_t versions[5];
    fill(l, (uint64_t)ordinal + 1, grads);
    size_t n = part.count == 0 ? 5 - part.first : part.count;
    const struct shard_vectors v = { .grads = grads, .floats = FLOATS };
    return shard_push_vectors(s, &CHIEF, part, ordinal, NULL, &v, versions, n, duplicate, e);
}

static bool push(struct shard *s, int64_t ordinal)
{
    bool duplicate;
    struct err e = { 0 };
    ck_ok_e(push_part(s, ordinal, ALL, &duplicate, &e));
    return duplicate;
}

static int pull_at(struct shard *s, int64_t at, float values[FLOATS], struct err *e)
{
    int64_t versions[5];
    const struct shard_vectors v = { .values = values, .floats = FLOATS };
    return shard_pull_vectors_at(s, &CHIEF, ALL, at, &v, versions, 5, e);
}

static void values_at(struct shard *s, int64_t at, float values[FLOATS])
{
    struct err e = { 0 };
    ck_ok_e(pull_at(s, at, values, &e));
}

static void check_same(const float a[FLOATS], const float b[FLOATS])
{
    AUTO(layout) *l = small_layout();
    for (size_t i = 0; i < l->n; i++)
        ck_assert_mem_eq(a + l->segments[i].offset, b + l->segments[i].offset, l->segments[i].count * sizeof(float));
}

/* Two epochs in ascending order. */
static void reference(const char *optimizer, float values[FLOATS])
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    fill(l, 99, init);
    AUTO(shard) *s = synchronous(l, optimizer, init);
    for (int64_t i = 0; i < 2 * EPOCH; i++)
        ck_assert(!push(s, i));
    values_at(s, 2 * EPOCH, values);
}

START_TEST(the_order_of_arrival_does_not_matter)
{
    static const char *const OPTIMIZERS[] = { SGD, ADAM };
    AUTO(layout) *l = small_layout();
    for (size_t o = 0; o < COUNT_OF(OPTIMIZERS); o++) {
        float want[FLOATS] = { 0 }, got[FLOATS] = { 0 }, init[FLOATS] = { 0 };
        reference(OPTIMIZERS[o], want);
        fill(l, 99, init);
        for (uint64_t round = 0; round < 30; round++) {
            struct rng r = rng_at(round, RNG_TEST, 0, 0);
            AUTO(shard) *s = synchronous(l, OPTIMIZERS[o], init);
            for (int64_t first = 0; first < 2 * EPOCH; first = groups_end(&G, first)) {
                int64_t n = groups_end(&G, first) - first, order[4];
                for (int64_t i = 0; i < n; i++)
                    order[i] = first + i;
                for (int64_t i = n - 1; i > 0; i--) {
                    int64_t j = (int64_t)rng_below(&r, (uint64_t)i + 1), t = order[i];
                    order[i] = order[j];
                    order[j] = t;
                }
                for (int64_t i = 0; i < n; i++) { /* some in two parts, some twice */
                    bool duplicate;
                    struct err e = { 0 };
                    size_t cut = 1 + rng_below(&r, 4);
                    if (rng_below(&r, 2) == 0)
                        ck_ok_e(push_part(s, order[i], (struct shard_part){ cut, 0 }, &duplicate, &e));
                    ck_ok_e(push_part(s, order[i], (struct shard_part){ 0, cut }, &duplicate, &e));
                    ck_ok_e(push_part(s, order[i], (struct shard_part){ cut, 0 }, &duplicate, &e));
                    if (rng_below(&r, 3) == 0)
                        ck_assert(push(s, order[i]));
                }
            }
            values_at(s, 2 * EPOCH, got);
            check_same(want, got);
        }
    }
}
END_TEST

/* By the formulas: w -= lr * sum(weight g) / n; m = m momentum + x (1 - momentum) for each batch in turn. */
START_TEST(an_update_is_the_mean_of_its_group)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, got[FLOATS] = { 0 };
    fill(l, 99, init);
    AUTO(shard) *s = synchronous(l, SGD, init);
    double w = (double)init[3], m = (double)init[33];
    for (int64_t first = 0; first < EPOCH; first = groups_end(&G, first)) {
        double sum = 0, n = (double)(groups_end(&G, first) - first);
        for (int64_t i = first; i < groups_end(&G, first); i++) {
            push(s, i);
            sum += (double)groups_weight(&G, i) * (double)pattern((uint64_t)i + 1, 3);
            m = m * 0.75 + (double)pattern((uint64_t)i + 1, 33) * 0.25;
        }
        w -= 0.5 * sum / n;
    }
    values_at(s, EPOCH, got);
    ck_assert_double_eq_tol((double)got[3], w, 1e-6);
    ck_assert_double_eq_tol((double)got[33], m, 1e-6);
    ck_float(got[48], init[48]); /* a constant */
}
END_TEST

START_TEST(a_step_is_pulled_whole_or_not_at_all)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, first[FLOATS] = { 0 }, got[FLOATS] = { 0 };
    struct err e = { 0 };
    fill(l, 99, init);
    AUTO(shard) *s = synchronous(l, SGD, init);
    values_at(s, 0, got);
    check_same(got, init);
    ck_fails(pull_at(s, 4, got, &e), ERR_PENDING, "the gradients of batches 0, 1, 2, 3");
    push(s, 1);
    push(s, 3);
    push(s, 0);
    ck_fails(pull_at(s, 4, got, &e), ERR_PENDING, "the gradient of batch 2");
    values_at(s, 0, got); /* what has come changes nothing yet */
    check_same(got, init);
    push(s, 2);
    values_at(s, 4, first);
    values_at(s, 0, got); /* a worker that is late finds the step before */
    check_same(got, init);
    for (int64_t i = 4; i < 8; i++)
        push(s, i);
    values_at(s, 4, got);
    check_same(got, first);
    ck_fails(pull_at(s, 0, got, &e), ERR_STALE, "the step of batch 0 is over");
    ck_assert(push(s, 0));
    bool duplicate;
    ck_fails(push_part(s, 10, ALL, &duplicate, &e), ERR_PENDING, "batch 10 belongs to a later step: batches 8 to 9");
}
END_TEST

START_TEST(what_waits_for_its_group_needs_not_be_computed_again)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    AUTO(shard) *s = synchronous(l, COUNTING, init);
    bool duplicate;
    struct err e = { 0 };
    push(s, 2);
    push(s, 0);
    ck_ok_e(push_part(s, 1, (struct shard_part){ 0, 2 }, &duplicate, &e));
    AUTO_FINI(shard_info) info = { 0 };
    shard_describe(s, &info);
    ck_assert(ordinal_set_has(&info.applied, 0) && !ordinal_set_has(&info.applied, 1)); /* some segments lack 1 */
    ck_assert(ordinal_set_has(&info.applied, 2) && !ordinal_set_has(&info.applied, 3));
    ck_assert_int_eq(info.version_max, 0);
    AUTO_FINI(shard_snapshot) snapshot = { 0 };
    ck_ok_e(shard_snapshot(s, &CHIEF, 0, &snapshot, &e));
    ck_assert_int_eq(snapshot.applied.low, 0); /* but a checkpoint does not have it */
    ck_assert_int_eq(ordinal_set_count(&snapshot.applied), 0);
}
END_TEST

/* Every cell is the number of batches, also where the last group is short. */
START_TEST(each_batch_counts_once)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, got[FLOATS] = { 0 };
    AUTO(shard) *s = synchronous(l, COUNTING, init);
    for (int64_t i = 0; i < 3 * EPOCH; i++)
        push(s, i);
    values_at(s, 3 * EPOCH, got);
    for (size_t i = 0; i < 15; i++)
        ck_float(got[i], 3 * EPOCH);
    AUTO_FINI(shard_info) info = { 0 };
    shard_describe(s, &info);
    ck_assert_int_eq(info.version_min, 9);
    ck_assert_int_eq(info.version_max, 9);
    ck_assert_int_eq(info.applied.low, 3 * EPOCH);
}
END_TEST

START_TEST(a_snapshot_is_of_the_step_that_was_announced)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    AUTO(shard) *s = synchronous(l, COUNTING, init);
    struct err e = { 0 };
    bool duplicate;
    ck_ok_e(shard_announce_snapshot(s, &CHIEF, 4, &e));
    for (uint32_t id = 0; id < l->n; id++) {
        AUTO_FINI(shard_snapshot) none = { 0 };
        ck_fails(shard_snapshot_at(s, &CHIEF, id, 4, &none, &e), ERR_PENDING, "the gradients of batches 0, 1, 2, 3");
    }
    for (int64_t i = 0; i < 10; i++)
        push(s, i);
    ck_ok_e(push_part(s, 10, (struct shard_part){ 0, 3 }, &duplicate, &e));
    for (uint32_t id = 0; id < l->n; id++) {
        AUTO_FINI(shard_snapshot) copy = { 0 }, again = { 0 };
        ck_ok_e(shard_snapshot_at(s, &CHIEF, id, 4, &copy, &e));
        ck_assert_int_eq(copy.version, 1);
        ck_assert_int_eq(copy.applied.low, 4);
        ck_assert_int_eq(copy.applied.high, 4);
        if (l->segments[id].kind == VAR_TRAINABLE)
            ck_float(copy.data[0], 4);
        ck_fails(shard_snapshot_at(s, &CHIEF, id, 4, &again, &e), ERR_STALE, "beyond batch 4"); /* it was taken */
    }
    ck_fails(shard_announce_snapshot(s, &CHIEF, 4, &e), ERR_STALE, "beyond batch 4 already");
    ck_ok_e(shard_announce_snapshot(s, &CHIEF, 10, &e)); /* where it is now */
    AUTO_FINI(shard_snapshot) now = { 0 };
    ck_ok_e(shard_snapshot_at(s, &CHIEF, 0, 10, &now, &e));
    ck_float(now.data[0], 10);
}
END_TEST

/* A checkpoint restored in the middle of an epoch leads to the same bits; one that is not of a step is refused. */
START_TEST(a_restored_step_continues)
{
    AUTO(layout) *l = small_layout();
    float want[FLOATS] = { 0 }, got[FLOATS] = { 0 }, init[FLOATS] = { 0 };
    struct err e = { 0 };
    reference(ADAM, want);
    fill(l, 99, init);
    AUTO(shard) *s = synchronous(l, ADAM, init);
    AUTO(shard) *next = shard_new(12);
    for (int64_t i = 0; i < 8; i++)
        push(s, i);
    push(s, 9); /* is lost */
    ck_ok_e(shard_init(next, &CHIEF, ADAM, l->segments, l->n, l->hash, &e));
    ck_ok_e(shard_set_groups(next, &CHIEF, &G, &e));
    for (uint32_t id = 0; id < l->n; id++) {
        AUTO_FINI(shard_snapshot) copy = { 0 };
        ck_ok_e(shard_snapshot_at(s, &CHIEF, id, 8, &copy, &e));
        struct one_range range = { .data = copy.data, .size = (size_t)(1 + copy.slots) * copy.count * sizeof(float) };
        struct bytes_in in = one_range(&range);
        AUTO_FINI(ordinal_set) torn = { .low = 7, .high = 7 };
        ck_fails(shard_restore(next, &CHIEF, id, true, copy.version, &torn, &in, &e), ERR_INPUT,
                 "batch 7 is not the first of a group of 4");
        in.again(in.user);
        ck_ok_e(shard_restore(next, &CHIEF, id, true, copy.version, &copy.applied, &in, &e));
    }
    ck_ok_e(shard_serve(next, &CHIEF, &e));
    for (int64_t i = 8; i < 2 * EPOCH; i++)
        push(next, i);
    values_at(next, 2 * EPOCH, got);
    check_same(want, got);
}
END_TEST

START_TEST(groups_are_set_before_the_first_segment)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    AUTO(shard) *s = synchronous(l, SGD, init);
    struct groups other = G;
    other.size = 3;
    ck_ok_e(shard_set_groups(s, &CHIEF, &G, &e)); /* a repeated call */
    ck_fails(shard_set_groups(s, &CHIEF, &other, &e), ERR_REFUSED, "began with groups of 4");
    other.size = 0;
    ck_fails(shard_set_groups(s, &CHIEF, &other, &e), ERR_INPUT, "a group of 0 batches");
    AUTO(shard) *async = serving(l, SGD, init);
    float got[FLOATS];
    ck_fails(pull_at(async, 0, got, &e), ERR_INPUT, "");
    AUTO_FINI(shard_snapshot) none = { 0 };
    ck_fails(shard_snapshot_at(async, &CHIEF, 0, 0, &none, &e), ERR_INPUT, "asynchronous");
    ck_fails(shard_announce_snapshot(async, &CHIEF, 0, &e), ERR_INPUT, "asynchronous");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("update_sync");
    TCase *c = tcase_create("all");
    tcase_add_test(c, the_order_of_arrival_does_not_matter);
    tcase_add_test(c, an_update_is_the_mean_of_its_group);
    tcase_add_test(c, a_step_is_pulled_whole_or_not_at_all);
    tcase_add_test(c, what_waits_for_its_group_needs_not_be_computed_again);
    tcase_add_test(c, each_batch_counts_once);
    tcase_add_test(c, a_snapshot_is_of_the_step_that_was_announced);
    tcase_add_test(c, a_restored_step_continues);
    tcase_add_test(c, groups_are_set_before_the_first_segment);
    suite_add_tcase(s, c);
    return s;
}
