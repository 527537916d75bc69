/* Snapshots of a step, and what a ps accepts as one. */
#include "sync_fixture.h"

static void take_all(struct shard *s, const struct shard_caller *who, int64_t at, float cell)
{
    struct err e = { 0 };
    for (uint32_t id = 0; id < 5; id++) {
        AUTO_FINI(shard_snapshot) copy = { 0 };
        ck_ok_e(shard_snapshot_at(s, who, id, at, &copy, &e));
        ck_assert(copy.applied.low == at && copy.applied.high == at);
        if (id == 0)
            ck_float(copy.data[0], cell);
    }
}

static void push_below(struct shard *s, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        push(s, i);
}

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

START_TEST(an_announcement_may_be_repeated)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    AUTO(shard) *s = synchronous(l, COUNTING, init);
    ck_ok_e(shard_announce_snapshot(s, &CHIEF, 4, &e));
    push_below(s, 0, 8);
    ck_ok_e(shard_announce_snapshot(s, &CHIEF, 4, &e)); /* the copies are there */
    push_below(s, 8, 10);
    ck_fails(shard_announce_snapshot(s, &CHIEF, 8, &e), ERR_STALE, "beyond batch 8 already"); /* they are of 4 */
    take_all(s, &CHIEF, 4, 4);
}
END_TEST

/* The later one counts: it was made by a chief that gave the earlier one up. */
START_TEST(another_announcement_replaces_the_first)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    AUTO(shard) *s = synchronous(l, COUNTING, init);
    ck_ok_e(shard_announce_snapshot(s, &CHIEF, 4, &e));
    ck_ok_e(shard_announce_snapshot(s, &CHIEF, 8, &e));
    push_below(s, 0, 10);
    AUTO_FINI(shard_snapshot) none = { 0 };
    ck_fails(shard_snapshot_at(s, &CHIEF, 0, 4, &none, &e), ERR_STALE, "has no copy of that step");
    take_all(s, &CHIEF, 8, 8);
}
END_TEST

/* Neither the announcement nor the copy of an earlier generation is left. */
START_TEST(a_new_generation_has_its_own_snapshots)
{
    const struct shard_caller next = { .job_uid = UID, .sender = "chief-0", .generation = 2 };
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, other[FLOATS] = { 0 };
    int64_t versions[5];
    bool duplicate;
    struct err e = { 0 };
    for (int announced = 0; announced < 2; announced++) {
        AUTO(shard) *s = synchronous(l, COUNTING, init);
        ck_ok_e(shard_announce_snapshot(s, &CHIEF, 4, &e));
        push_below(s, 0, 4);
        other[0] = 100;
        begin(s, &next, &G, l, COUNTING, other);
        if (announced)
            ck_ok_e(shard_announce_snapshot(s, &next, 4, &e));
        const struct shard_vectors v = { .grads = init, .floats = FLOATS };
        for (int64_t i = 0; i < 8; i++)
            ck_ok_e(shard_push_vectors(s, &next, ALL, i, NULL, &v, versions, 5, &duplicate, &e));
        AUTO_FINI(shard_snapshot) copy = { 0 };
        if (announced)
            take_all(s, &next, 4, 104);
        else
            ck_fails(shard_snapshot_at(s, &next, 0, 4, &copy, &e), ERR_STALE, "has no copy of that step");
    }
}
END_TEST

/* A ps that got SIGTERM may end once the chief has all that was applied. */
START_TEST(snapshots_of_a_step_save_a_ps_that_ends)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    AUTO(shard) *before = synchronous(l, COUNTING, init);
    push_below(before, 0, 4);
    take_all(before, &CHIEF, 4, 4);
    shard_terminating(before);
    ck_assert(!shard_saved(before)); /* the checkpoint is not published yet */
    ck_ok_e(shard_confirm_snapshots(before, &CHIEF, &e));
    ck_assert(shard_saved(before));

    AUTO(shard) *older = synchronous(l, COUNTING, init);
    ck_ok_e(shard_announce_snapshot(older, &CHIEF, 4, &e));
    push_below(older, 0, 8);
    take_all(older, &CHIEF, 4, 4);
    ck_ok_e(shard_confirm_snapshots(older, &CHIEF, &e));
    shard_terminating(older);
    ck_assert(!shard_saved(older)); /* another step was applied */
    take_all(older, &CHIEF, 8, 8);
    ck_ok_e(shard_confirm_snapshots(older, &CHIEF, &e));
    ck_assert(shard_saved(older));
}
END_TEST

START_TEST(a_set_with_batches_of_a_group_is_not_of_a_step)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 };
    struct err e = { 0 };
    AUTO(shard) *s = shard_new(11);
    AUTO_FINI(ordinal_set) applied = { .low = 4, .high = 4 };
    ck_ok_e(shard_init(s, &CHIEF, SGD, l->segments, l->n, l->hash, &e));
    ck_ok_e(shard_set_groups(s, &CHIEF, &G, &e));
    ck_assert_int_eq(ordinal_set_add(&applied, 6, &e), 1);
    struct one_range range = { .data = init, .size = l->segments[0].count * sizeof(float) };
    struct bytes_in in = one_range(&range);
    ck_fails(shard_restore(s, &CHIEF, 0, false, 1, &applied, &in, &e), ERR_INPUT, "the state is not of one step");
    ck_fails(shard_serve(s, &CHIEF, &e), ERR_NOT_READY, "5 of 5 segments are missing");
}
END_TEST

START_TEST(steps_are_fenced)
{
    const struct shard_caller next = { .job_uid = UID, .sender = "chief-0", .generation = 2 };
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, got[FLOATS];
    struct err e = { 0 };
    AUTO_FINI(shard_snapshot) none = { 0 };
    AUTO(shard) *s = synchronous(l, COUNTING, init);
    ck_ok_e(shard_adopt(s, &next, &e));
    ck_fails(pull_at(s, 0, got, &e), ERR_FENCED, "generation 1 is over");
    ck_fails(shard_announce_snapshot(s, &CHIEF, 4, &e), ERR_FENCED, "generation 1 is over");
    ck_fails(shard_snapshot_at(s, &CHIEF, 0, 0, &none, &e), ERR_FENCED, "generation 1 is over");
    ck_fails(shard_set_groups(s, &CHIEF, &G, &e), ERR_FENCED, "generation 1 is over");
    ck_ok_e(shard_set_groups(s, &next, &G, &e)); /* adoption keeps them */
    take_all(s, &next, 0, 0);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("shard_store");
    TCase *c = tcase_create("all");
    tcase_add_test(c, a_snapshot_is_of_the_step_that_was_announced);
    tcase_add_test(c, an_announcement_may_be_repeated);
    tcase_add_test(c, another_announcement_replaces_the_first);
    tcase_add_test(c, a_new_generation_has_its_own_snapshots);
    tcase_add_test(c, snapshots_of_a_step_save_a_ps_that_ends);
    tcase_add_test(c, a_set_with_batches_of_a_group_is_not_of_a_step);
    tcase_add_test(c, steps_are_fenced);
    suite_add_tcase(s, c);
    return s;
}
