/* Synchronous updates of a shard: one group after the other, whatever the order in which gradients come. */
#include "sync_fixture.h"

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
        float want[FLOATS] = { 0 }, got[FLOATS] = { 0 }, init[FLOATS] = { 0 }, place[FLOATS] = { 0 };
        reference(OPTIMIZERS[o], want);
        fill(l, 99, init);
        for (uint64_t round = 0; round < 30; round++) {
            struct rng r = rng_at(round, RNG_TEST, 0, 0);
            AUTO(shard) *s = synchronous_in(round % 2 == 1 ? place : NULL, l, OPTIMIZERS[o], init);
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
    static const int64_t SIZES[] = { 4, 3, 1 }; /* the last group of an epoch has 2, 1 and 1 */
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, got[FLOATS] = { 0 };
    fill(l, 99, init);
    for (size_t k = 0; k < COUNT_OF(SIZES); k++) {
        struct groups groups = G;
        groups.size = SIZES[k];
        AUTO(shard) *s = shard_new(11);
        begin(s, &CHIEF, &groups, l, SGD, init);
        double w = (double)init[3], m = (double)init[33];
        for (int64_t first = 0; first < EPOCH; first = groups_end(&groups, first)) {
            double sum = 0, n = (double)(groups_end(&groups, first) - first);
            for (int64_t i = first; i < groups_end(&groups, first); i++) {
                push(s, i);
                sum += (double)groups_weight(&groups, i) * (double)pattern((uint64_t)i + 1, 3);
                m = m * 0.75 + (double)pattern((uint64_t)i + 1, 33) * 0.25;
            }
            w -= 0.5 * sum / n;
        }
        values_at(s, EPOCH, got);
        ck_assert_double_eq_tol((double)got[3], w, 1e-6);
        ck_assert_double_eq_tol((double)got[33], m, 1e-6);
        ck_float(got[48], init[48]); /* a constant */
    }
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
    struct shard_out out = { 0 };
    ck_fails(pull_at(async, 0, got, &e), ERR_INPUT, "");
    ck_fails(shard_pull_at(async, &CHIEF, ALL, 0, &out, &e), ERR_INPUT, "a pull of a step, and the updates are asyn");
    AUTO_FINI(shard_snapshot) none = { 0 };
    ck_fails(shard_snapshot_at(async, &CHIEF, 0, 0, &none, &e), ERR_INPUT, "asynchronous");
    ck_fails(shard_announce_snapshot(async, &CHIEF, 0, &e), ERR_INPUT, "asynchronous");
}
END_TEST

/* ---- groups of one, clipping, bytes ---- */

START_TEST(groups_of_one_are_asynchronous_updates)
{
    static const struct groups ONE = { .size = 1, .batches = 10, .examples = 4, .rest = 3 };
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, got[FLOATS] = { 0 }, want[PULLED];
    struct err e = { 0 };
    struct shard_out out = { .values = want, .size = sizeof(want), .element = DT_FLOAT };
    fill(l, 99, init);
    AUTO(shard) *s = shard_new(11);
    AUTO(shard) *async = serving(l, ADAM, init);
    begin(s, &CHIEF, &ONE, l, ADAM, init);
    for (int64_t i = 0; i < 2 * EPOCH; i++) {
        push(s, i);
        push(async, i);
    }
    values_at(s, 2 * EPOCH, got);
    ck_ok_e(shard_pull(async, &CHIEF, ALL, &out, &e));
    const float *at = want;
    for (size_t i = 0; i < l->n; at += l->segments[i++].count)
        ck_assert_mem_eq(got + l->segments[i].offset, at, l->segments[i].count * sizeof(float));
}
END_TEST

/* Each worker clips nothing: the mean of the group is clipped. */
START_TEST(the_mean_of_a_group_is_clipped)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, got[FLOATS] = { 0 };
    bool clipped = false;
    AUTO(shard) *s = synchronous(l, "{\"SGD\":{\"learning_rate\":1,\"clipvalue\":0.125}}", init);
    for (int64_t i = 0; i < 4; i++)
        push(s, i);
    values_at(s, 4, got);
    for (size_t i = 0; i < 15; i++) {
        double mean = 0;
        for (uint64_t k = 1; k <= 4; k++)
            mean += (double)pattern(k, i) / 4;
        clipped = clipped || mean > 0.125 || mean < -0.125;
        ck_assert_double_eq_tol((double)got[i], mean > 0.125 ? -0.125 : mean < -0.125 ? 0.125 : -mean, 1e-6);
    }
    ck_assert(clipped);
}
END_TEST

/* The gradients of an ordinal as the bytes of a message, cut anywhere. out: where values would go. */
static int push_bytes(struct shard *s, int64_t ordinal, size_t cut_at, struct shard_out *out, bool *duplicate,
                      struct err *e)
{
    AUTO(layout) *l = small_layout();
    float grads[FLOATS] = { 0 }, bytes[27];
    size_t n = 0, cuts[] = { cut_at };
    struct cut_bytes c;
    fill(l, (uint64_t)ordinal + 1, grads);
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; l->segments[i].kind != VAR_CONST && k < l->segments[i].count; k++)
            bytes[n++] = grads[l->segments[i].offset + k];
    ck_assert_uint_eq(n, COUNT_OF(bytes));
    struct bytes_in in = cut(&c, bytes, sizeof(bytes), cuts, 1);
    return shard_push(s, &CHIEF, ALL, ordinal, NULL, &in, out, duplicate, e);
}

/* Some segments have the gradient already, from a part of a push that failed. */
START_TEST(a_message_is_read_past_what_is_there)
{
    AUTO(layout) *l = small_layout();
    float want[FLOATS] = { 0 }, got[FLOATS] = { 0 }, init[FLOATS] = { 0 };
    struct err e = { 0 };
    bool duplicate;
    reference(ADAM, want);
    fill(l, 99, init);
    AUTO(shard) *s = synchronous(l, ADAM, init);
    for (int64_t i = 0; i < 2 * EPOCH; i++) {
        struct shard_out none = { 0 };
        size_t first = (size_t)i % 5;
        ck_ok_e(push_part(s, i, (struct shard_part){ first, 1 }, &duplicate, &e));
        ck_ok_e(push_bytes(s, i, 1 + 5 * (size_t)i, &none, &duplicate, &e));
        ck_assert(!duplicate);
        ck_ok_e(push_bytes(s, i, 17, &none, &duplicate, &e));
        ck_assert(duplicate);
    }
    values_at(s, 2 * EPOCH, got);
    check_same(want, got);
}
END_TEST

START_TEST(a_push_answers_no_values)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, values[27] = { 0 };
    struct err e = { 0 };
    bool duplicate;
    AUTO(shard) *s = synchronous(l, COUNTING, init);
    for (int64_t i = 0; i < 4; i++) {
        struct shard_out out = { .values = values, .size = sizeof(values), .element = DT_FLOAT };
        ck_ok_e(push_bytes(s, i, 8, &out, &duplicate, &e));
        ck_assert_ptr_null(out.values);
    }
}
END_TEST

/* ---- pulls of a step ---- */

START_TEST(parts_of_a_step)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, now[FLOATS] = { 0 }, got[13], few[8];
    int64_t versions[5] = { 0 };
    struct err e = { 0 };
    const struct shard_part middle = { 1, 3 };
    fill(l, 99, init);
    AUTO(shard) *s = synchronous(l, SGD, init);
    for (int64_t i = 0; i < 4; i++)
        push(s, i);
    values_at(s, 4, now);
    for (int64_t at = 0; at <= 4; at += 4) {
        struct shard_out out = {
            .values = got, .size = sizeof(got), .element = DT_FLOAT, .versions = versions, .nversions = 3
        };
        const float *want = at == 0 ? init : now;
        ck_ok_e(shard_pull_at(s, &CHIEF, middle, at, &out, &e));
        ck_assert_mem_eq(got, want + 16, 7 * sizeof(float));
        ck_assert_mem_eq(got + 7, want + 32, 4 * sizeof(float));
        ck_assert_mem_eq(got + 11, init + 48, 2 * sizeof(float));
        for (size_t i = 0; i < 3; i++)
            ck_assert_int_eq(versions[i], at / 4);
    }
    float vector[FLOATS] = { 0 };
    struct shard_vectors to = { .values = vector, .floats = FLOATS };
    ck_ok_e(shard_pull_vectors_at(s, &CHIEF, middle, 4, &to, versions, 3, &e));
    ck_assert_mem_eq(vector + 16, now + 16, 7 * sizeof(float));
    ck_float(vector[0], 0); /* not of the part */
    ck_fails(shard_pull_vectors_at(s, &CHIEF, middle, 4, &to, versions, 2, &e), ERR_INPUT, "a pull of a step into");
    ck_fails(shard_pull_vectors_at(s, &CHIEF, (struct shard_part){ 4, 2 }, 4, &to, versions, 2, &e), ERR_INPUT, "of 5");
    to = (struct shard_vectors){ .values = few, .floats = COUNT_OF(few) };
    ck_fails(shard_pull_vectors_at(s, &CHIEF, middle, 4, &to, versions, 3, &e), ERR_INPUT, "into 8 floats");
    ck_fails(pull_at(s, 2, vector, &e), ERR_STALE, "the step of batch 2 is over"); /* no step begins there */
}
END_TEST

START_TEST(only_so_many_missing_batches_are_named)
{
    static const struct groups SIX = { .size = 6, .batches = 10, .examples = 4, .rest = 4 };
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, got[FLOATS];
    struct err e = { 0 };
    AUTO(shard) *s = shard_new(11);
    begin(s, &CHIEF, &SIX, l, SGD, init);
    ck_fails(pull_at(s, 6, got, &e), ERR_PENDING, "");
    ck_assert_str_eq(e.msg, "the gradients of batches 0, 1, 2, 3 and 2 more");
    push(s, 1);
    ck_fails(pull_at(s, 6, got, &e), ERR_PENDING, "");
    ck_assert_str_eq(e.msg, "the gradients of batches 0, 2, 3, 4 and 1 more");
    push(s, 0);
    ck_fails(pull_at(s, 6, got, &e), ERR_PENDING, "");
    ck_assert_str_eq(e.msg, "the gradients of batches 2, 3, 4, 5");
}
END_TEST

static void count_calls(void *user)
{
    ++*(int *)user;
}

/* Who waits for a step looks again then, and only then. */
START_TEST(updates_and_generations_are_told)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    bool duplicate;
    int calls = 0;
    const struct shard_caller next = { .job_uid = UID, .sender = "chief-0", .generation = 2 };
    AUTO(shard) *s = synchronous(l, COUNTING, init);
    shard_on_update(s, count_calls, &calls);
    uint64_t seen = shard_updates(s);
    push(s, 0);
    push(s, 1);
    push(s, 1);
    push(s, 3);
    ck_assert_uint_eq(shard_updates(s), seen);
    shard_await_update(s, seen, 0); /* its time is over */
    ck_ok_e(push_part(s, 2, (struct shard_part){ 0, 2 }, &duplicate, &e));
    ck_assert_uint_eq(shard_updates(s), seen + 1); /* two segments are a step ahead */
    ck_ok_e(push_part(s, 2, (struct shard_part){ 2, 0 }, &duplicate, &e));
    ck_assert_uint_eq(shard_updates(s), seen + 2);
    shard_await_update(s, seen, INT64_MAX); /* returns at once */
    ck_ok_e(shard_adopt(s, &next, &e));
    ck_assert_uint_eq(shard_updates(s), seen + 3);
    ck_assert_int_eq(calls, 3);
    shard_on_update(s, NULL, NULL);
    ck_ok_e(shard_finish(s, &next, &e));
    ck_assert_uint_eq(shard_updates(s), seen + 4);
    ck_assert_int_eq(calls, 3);
}
END_TEST

START_TEST(memory_of_groups_counts)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    AUTO(shard) *async = serving(l, SGD, init);
    AUTO(shard) *s = synchronous(l, SGD, init);
    ck_assert_uint_eq(shard_bytes(async), PULLED * sizeof(float));
    ck_assert_uint_eq(shard_bytes(s), 3 * PULLED * sizeof(float)); /* the sum, and the step before */
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
    tcase_add_test(c, a_restored_step_continues);
    tcase_add_test(c, groups_are_set_before_the_first_segment);
    tcase_add_test(c, groups_of_one_are_asynchronous_updates);
    tcase_add_test(c, the_mean_of_a_group_is_clipped);
    tcase_add_test(c, a_message_is_read_past_what_is_there);
    tcase_add_test(c, a_push_answers_no_values);
    tcase_add_test(c, parts_of_a_step);
    tcase_add_test(c, only_so_many_missing_batches_are_named);
    tcase_add_test(c, updates_and_generations_are_told);
    tcase_add_test(c, memory_of_groups_counts);
    suite_add_tcase(s, c);
    return s;
}
