/* Updates of values in the memory of the caller, which the threads of one process make together. */
#include "sync_fixture.h"

#include "base/clock.h"
#include "base/thread.h"

enum { THREADS = 3, LARGE = 50000, SEGMENTS_MAX = 5 };

struct crowd {
    const struct layout *layout;
    struct shard *shard;
    int64_t batches;
    float *place;
};
struct pusher {
    struct crowd *crowd;
    int64_t which;
    struct thread thread;
};

/* Waits for the values of the step, which are in place then. */
static void await_step(const struct crowd *c, int64_t at)
{
    for (;;) {
        struct err e = { 0 };
        int64_t versions[SEGMENTS_MAX];
        struct shard_out out = { .versions = versions, .nversions = c->layout->n };
        uint64_t seen = shard_updates(c->shard);
        if (shard_pull_at(c->shard, &CHIEF, ALL, at, &out, &e) == 0)
            return;
        ck_assert_msg(e.code == ERR_PENDING, "%s", e.msg);
        shard_await_update(c->shard, seen, clock_ms() + 10000);
    }
}

static void push_into(const struct crowd *c, int64_t ordinal, float *grads)
{
    bool duplicate;
    struct err e = { 0 };
    int64_t versions[SEGMENTS_MAX];
    const struct shard_vectors v = { .grads = grads, .floats = c->layout->vector };
    fill(c->layout, (uint64_t)ordinal + 1, grads);
    ck_ok_e(shard_push_vectors(c->shard, &CHIEF, ALL, ordinal, NULL, &v, versions, c->layout->n, &duplicate, &e));
    ck_assert(!duplicate);
}

/* Its gradient is its own again when the push has returned. The values are read as a tower does. */
static void push_own(void *user)
{
    const struct pusher *p = user;
    const struct crowd *c = p->crowd;
    auto_free float *grads = xcalloc(c->layout->vector, sizeof(float));
    for (int64_t i = p->which; i < c->batches; i += THREADS) {
        await_step(c, groups_first(&G, i));
        for (size_t k = 0; k < c->layout->vector; k++)
            ck_assert(c->place[k] < 1e9f);
        push_into(c, i, grads);
        memset(grads, 0xff, c->layout->vector * sizeof(float));
    }
}

static void check_crowd(const struct layout *l, int64_t batches)
{
    auto_free float *init = xcalloc(l->vector, sizeof(float)), *grads = xcalloc(l->vector, sizeof(float)),
                    *place = xcalloc(l->vector, sizeof(float)), *want = xcalloc(l->vector, sizeof(float));
    struct pusher pushers[THREADS];
    struct err e = { 0 };
    int64_t versions[SEGMENTS_MAX];
    fill(l, 99, init);
    struct crowd plain = { .layout = l, .shard = synchronous(l, ADAM, init), .batches = batches };
    for (int64_t i = 0; i < batches; i++)
        push_into(&plain, i, grads);
    const struct shard_vectors v = { .values = want, .floats = l->vector };
    ck_ok_e(shard_pull_vectors_at(plain.shard, &CHIEF, ALL, batches, &v, versions, l->n, &e));
    struct crowd c = { .layout = l, .shard = synchronous_in(place, l, ADAM, init), .batches = batches, .place = place };
    for (int i = 0; i < THREADS; i++) {
        pushers[i] = (struct pusher){ .crowd = &c, .which = i };
        ck_ok_e(thread_start(&pushers[i].thread, "pusher", push_own, &pushers[i], &e));
    }
    for (int i = 0; i < THREADS; i++)
        thread_join(&pushers[i].thread);
    for (size_t i = 0; i < l->n; i++)
        ck_assert_mem_eq(want + l->segments[i].offset, place + l->segments[i].offset,
                         l->segments[i].count * sizeof(float));
    shard_free(c.shard);
    shard_free(plain.shard);
}

START_TEST(threads_make_the_updates_together)
{
    AUTO(layout) *l = small_layout();
    check_crowd(l, 40 * EPOCH);
}
END_TEST

/* One that is made in pieces, beside a small one. */
START_TEST(threads_make_the_update_of_a_large_segment_together)
{
    static const struct variable V[] = {
        { .name = "a", .shape = { 1, { LARGE } }, .count = LARGE, .kind = VAR_TRAINABLE },
        { .name = "b", .shape = { 1, { 7 } }, .offset = LARGE, .count = 7, .kind = VAR_TRAINABLE },
    };
    const struct variable *list[] = { &V[0], &V[1] };
    AUTO(layout) *l = layout_of(list, 2, LARGE + 16);
    check_crowd(l, EPOCH);
}
END_TEST

/* There is one vector: who comes late must not compute from it. */
START_TEST(in_place_there_is_no_step_before)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, place[FLOATS] = { 0 };
    int64_t versions[5];
    struct err e = { 0 };
    fill(l, 99, init);
    AUTO(shard) *s = synchronous_in(place, l, SGD, init);
    struct shard_out out = { .versions = versions, .nversions = 5 };
    ck_ok_e(shard_pull_at(s, &CHIEF, ALL, 0, &out, &e));
    for (int64_t i = 0; i < 4; i++)
        push(s, i);
    ck_fails(shard_pull_at(s, &CHIEF, ALL, 0, &out, &e), ERR_STALE, "the step of batch 0 is over");
    ck_ok_e(shard_pull_at(s, &CHIEF, ALL, 4, &out, &e));
    ck_assert_int_eq(versions[0], 1);
}
END_TEST

START_TEST(in_place_an_update_is_made_when_the_last_push_returns)
{
    AUTO(layout) *l = small_layout();
    float init[FLOATS] = { 0 }, place[FLOATS] = { 0 };
    struct err e = { 0 };
    AUTO(shard) *s = synchronous_in(place, l, COUNTING, init);
    for (int64_t i = 3; i >= 0; i--)
        push(s, i);
    ck_float(place[0], 4);
    AUTO_FINI(shard_info) info = { 0 };
    shard_describe(s, &info);
    ck_assert_int_eq(info.version_min, 1);
    ck_assert_int_eq(info.applied.low, 4);
    AUTO_FINI(shard_snapshot) copy = { 0 };
    ck_ok_e(shard_snapshot_at(s, &CHIEF, 0, 4, &copy, &e));
    ck_float(copy.data[0], 4);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("update_in_place");
    TCase *c = tcase_create("all");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, threads_make_the_updates_together);
    tcase_add_test(c, threads_make_the_update_of_a_large_segment_together);
    tcase_add_test(c, in_place_there_is_no_step_before);
    tcase_add_test(c, in_place_an_update_is_made_when_the_last_push_returns);
    suite_add_tcase(s, c);
    return s;
}
