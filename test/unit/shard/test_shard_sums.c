/* The shard of a member of an all-reduce: an update from the sums of a step is that of a parameter server. */
#include "sync_fixture.h"

#define CLIPPED "{\"SGD\":{\"learning_rate\":0.5,\"clipvalue\":0.1}}"

static float place[FLOATS];

static struct shard *member(const struct layout *l, const char *optimizer, const float *vector)
{
    struct shard *s = shard_new(12);
    shard_take_sums(s);
    shard_use_vector(s, place);
    begin(s, &CHIEF, &G, l, optimizer, vector);
    return s;
}

/* The sums of the step that begins with `at`, from the values of now. */
static void sums_of(const struct layout *l, int64_t at, float sums[FLOATS])
{
    memset(sums, 0, FLOATS * sizeof(*sums));
    for (int64_t o = at; o < groups_end(&G, at); o++) {
        float grads[FLOATS] = { 0 };
        fill(l, (uint64_t)o + 1, grads);
        for (size_t i = 0; i < l->n; i++)
            for (size_t k = l->segments[i].offset; k < l->segments[i].offset + l->segments[i].count; k++) {
                float m = l->segments[i].momentum, w = groups_weight(&G, o);
                if (l->segments[i].kind == VAR_MOVING)
                    sums[k] = (o == at ? place[k] : sums[k]) * m + grads[k] * (1 - m);
                else
                    sums[k] += w * grads[k];
            }
    }
}

static void check_steps(const char *optimizer)
{
    AUTO(layout) *l = small_layout();
    float vector[FLOATS] = { 0 }, sums[FLOATS], want[FLOATS];
    struct err e;
    fill(l, 99, vector);
    AUTO(shard) *ps = synchronous(l, optimizer, vector), *s = member(l, optimizer, vector);
    for (int64_t at = 0; at < EPOCH; at = groups_end(&G, at)) {
        sums_of(l, at, sums);
        ck_ok_e(shard_apply_sums(s, at, sums, &e));
        for (int64_t o = at; o < groups_end(&G, at); o++)
            push(ps, o);
        values_at(ps, groups_end(&G, at), want);
        check_same(place, want);
    }
}

START_TEST(an_update_has_the_bits_of_a_parameter_server)
{
    check_steps(ADAM);
    check_steps(SGD);
    check_steps(CLIPPED);
}
END_TEST

static int64_t applied_below(struct shard *s)
{
    AUTO_FINI(shard_info) info = { 0 };
    shard_describe(s, &info);
    return info.applied.low;
}

START_TEST(only_the_sums_of_its_step_are_applied)
{
    AUTO(layout) *l = small_layout();
    float vector[FLOATS] = { 0 }, sums[FLOATS] = { 0 };
    struct err e;
    bool duplicate;
    fill(l, 99, vector);
    AUTO(shard) *s = member(l, ADAM, vector);
    ck_fails(shard_apply_sums(s, 4, sums, &e), ERR_NOT_READY, "is at batch 0, the sums are of batch 4");
    check_same(place, vector);
    ck_ok_e(shard_apply_sums(s, 0, sums, &e));
    ck_assert_int_eq(applied_below(s), 4);
    ck_fails(shard_apply_sums(s, 0, sums, &e), ERR_NOT_READY, "is at batch 4, the sums are of batch 0");
    ck_fails(push_part(s, 4, ALL, &duplicate, &e), ERR_REFUSED, "gradients are added elsewhere");
}
END_TEST

START_TEST(it_can_be_loaded_again)
{
    AUTO(layout) *l = small_layout();
    float vector[FLOATS] = { 0 }, sums[FLOATS] = { 0 };
    struct err e;
    fill(l, 99, vector);
    AUTO(shard) *empty = shard_new(1), *s = member(l, ADAM, vector);
    ck_fails(shard_load_again(empty, &e), ERR_NOT_READY, "waits for the chief");
    ck_ok_e(shard_apply_sums(s, 0, sums, &e));
    ck_ok_e(shard_load_again(s, &e));
    ck_fails(shard_apply_sums(s, 4, sums, &e), ERR_NOT_READY, "this worker has no state");
    ck_fails(shard_serve(s, &CHIEF, &e), ERR_NOT_READY, "5 of 5 segments are missing");
    for (size_t i = 0; i < l->n; i++)
        restore_from(s, &CHIEF, &l->segments[i], vector);
    ck_ok_e(shard_serve(s, &CHIEF, &e));
    ck_assert_int_eq(applied_below(s), 0);
}
END_TEST

static uint64_t hash_of(struct shard *s)
{
    uint64_t hash;
    struct err e = { 0 };
    ck_ok_e(shard_state_hash(s, &hash, &e));
    return hash;
}

static void restore_at(struct shard *s, const struct layout *l, float *data, int64_t version, int64_t low)
{
    struct err e = { 0 };
    const struct ordinal_set applied = { .low = low, .high = low };
    ck_ok_e(shard_load_again(s, &e));
    for (size_t i = 0; i < l->n; i++) {
        size_t parts = l->segments[i].kind == VAR_TRAINABLE ? 3 : 1; /* Adam: values, m, v */
        struct one_range range = { .data = data, .size = parts * l->segments[i].count * sizeof(float) };
        struct bytes_in in = one_range(&range);
        ck_ok_e(shard_restore(s, &CHIEF, l->segments[i].id, true, version, &applied, &in, &e));
    }
    ck_ok_e(shard_serve(s, &CHIEF, &e));
}

START_TEST(the_hash_covers_values_slots_version_and_step)
{
    AUTO(layout) *l = small_layout();
    float vector[FLOATS] = { 0 }, data[3 * FLOATS] = { 0 };
    fill(l, 99, vector);
    AUTO(shard) *s = member(l, ADAM, vector);
    restore_at(s, l, data, 1, 4);
    uint64_t hash = hash_of(s);
    restore_at(s, l, data, 1, 4);
    ck_assert_uint_eq(hash_of(s), hash);
    restore_at(s, l, data, 2, 4);
    ck_assert_uint_ne(hash_of(s), hash);
    restore_at(s, l, data, 1, 8);
    ck_assert_uint_ne(hash_of(s), hash);
    data[0] = 1; /* a value */
    restore_at(s, l, data, 1, 4);
    ck_assert_uint_ne(hash_of(s), hash);
    data[0] = 0;
    data[3 * 15 - 1] = 1; /* the last one of the first variable's second slot */
    restore_at(s, l, data, 1, 4);
    ck_assert_uint_ne(hash_of(s), hash);
}
END_TEST

START_TEST(a_copy_has_the_whole_state_of_a_segment)
{
    AUTO(layout) *l = small_layout();
    float vector[FLOATS] = { 0 }, sums[FLOATS];
    struct err e;
    AUTO_FINI(shard_snapshot) copy = { 0 }, none = { 0 };
    fill(l, 99, vector);
    AUTO(shard) *s = member(l, ADAM, vector);
    sums_of(l, 0, sums);
    ck_ok_e(shard_apply_sums(s, 0, sums, &e));
    ck_ok_e(shard_copy(s, 1, &copy, &e));
    ck_assert_int_eq(copy.version, 1);
    ck_assert_int_eq(copy.applied.low, 4);
    ck_assert_int_eq(copy.slots, 2);
    ck_assert_mem_eq(copy.data, place + l->segments[1].offset, l->segments[1].count * sizeof(float));
    ck_fails(shard_copy(s, 5, &none, &e), ERR_INPUT, "segment 5 of 5");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("shard_sums");
    TCase *t = tcase_create("shard_sums");
    tcase_add_test(t, an_update_has_the_bits_of_a_parameter_server);
    tcase_add_test(t, only_the_sums_of_its_step_are_applied);
    tcase_add_test(t, it_can_be_loaded_again);
    tcase_add_test(t, the_hash_covers_values_slots_version_and_step);
    tcase_add_test(t, a_copy_has_the_whole_state_of_a_segment);
    suite_add_tcase(s, t);
    return s;
}
