/* Values by step: what a worker of synchronous training pulls and pushes, over gRPC, through shared memory and without
 * either. */
#include "params/shard_service_internal.h"
#include "params_fixture.h"

#include "base/clock.h"

static const struct form FORMS[] = { { "local", 0, false },
                                     { "one ps", 1, true },
                                     { "three ps", 3, true },
                                     { "one ps afar", 1, false },
                                     { "three ps afar", 3, false } };

/* Five batches an epoch in groups of 2: 2, 2, 1. */
static const struct groups G = { .size = 2, .batches = 5, .examples = 4, .rest = 4 };
enum { FLOATS = 80, WAIT_MS = 10000 };

/* Without connections the values of `worker` are those of the shard itself: `other` is a worker in each form. */
static void open_synchronous(struct world *w, const struct form *form, struct layout *layout, const char *optimizer,
                             const float *vector)
{
    world_open(w, form, layout);
    params_set_groups(w->chief, &G);
    params_set_synchronous(w->worker);
    params_set_synchronous(w->other);
    bring_up(w, optimizer, vector);
}

static size_t ps_of(const struct world *w)
{
    return MAX(w->form->nps, (size_t)1);
}

static struct push_result push_these(struct params *p, int64_t ordinal, const float *grads)
{
    struct push_result result = { 0 };
    struct err e = { 0 };
    ck_ok_e(params_push(p, ordinal, grads, CALL_MS, &result, &e));
    return result;
}

static struct push_result push(struct params *p, const struct layout *l, int64_t ordinal)
{
    auto_free float *grads = xcalloc(l->vector, sizeof(*grads));
    fill(l, 50 + (uint64_t)ordinal, grads);
    return push_these(p, ordinal, grads);
}

/* Only one ps gets it. */
static void push_to(struct world *w, size_t ps, int64_t ordinal)
{
    float grads[FLOATS] = { 0 };
    int64_t versions[5];
    bool duplicate = true;
    struct err e = { 0 };
    fill(w->layout, 50 + (uint64_t)ordinal, grads);
    const struct shard_vectors v = { .grads = grads, .floats = FLOATS };
    ck_ok_e(shard_push_vectors(w->shard[ps], &CHIEF, (struct shard_part){ 0 }, ordinal, NULL, &v, versions,
                               w->placement->n[ps], &duplicate, &e));
    ck_assert(!duplicate);
}

static void pull(struct params *p, int64_t at)
{
    struct err e = { 0 };
    ck_ok_e(params_pull_at(p, at, 0, CALL_MS, &e));
}

static void want_versions(struct params *p, int64_t version)
{
    int64_t min = -1, max = -1;
    params_versions(p, &min, &max);
    ck_assert_int_eq(min, version);
    ck_assert_int_eq(max, version);
}

/* The values after the batches below `at`, by one shard. */
static void values_of_shard(int64_t at, const float *vector, float ret[FLOATS])
{
    struct world plain;
    open_synchronous(&plain, &FORMS[0], small_layout(), ADAM, vector);
    for (int64_t i = 0; i < at; i++)
        push(plain.worker, plain.layout, i);
    pull(plain.other, at);
    memcpy(ret, params_vector(plain.other), FLOATS * sizeof(*ret));
    world_close(&plain);
}

/* A shard whose values are in the vector of `worker` has no others. */
static void pull_before(struct world *w, int64_t at)
{
    struct err e = { 0 };
    if (w->form->nps > 0)
        pull(w->other, at);
    else
        ck_fails(params_pull_at(w->other, at, 0, CALL_MS, &e), ERR_STALE, "is over");
}

START_TEST(values_of_a_step_and_of_the_one_before)
{
    struct world w;
    struct err e = { 0 };
    float vector[FLOATS] = { 0 }, first[FLOATS], second[FLOATS];
    AUTO(layout) *l = small_layout();
    fill(l, 1, vector);
    values_of_shard(2, vector, first);
    values_of_shard(4, vector, second);
    open_synchronous(&w, &FORMS[_i], small_layout(), ADAM, vector);
    pull(w.other, 0);
    want_versions(w.other, 0);
    check_segments(w.layout, params_vector(w.other), vector);
    push(w.worker, w.layout, 1);
    pull(w.other, 0); /* nothing has changed yet */
    check_segments(w.layout, params_vector(w.other), vector);
    ck_fails(params_pull_at(w.other, 2, 0, CALL_MS, &e), ERR_PENDING, "the gradient of batch 0");
    push(w.worker, w.layout, 0);
    pull(w.other, 2);
    want_versions(w.other, 1);
    check_segments(w.layout, params_vector(w.other), first);
    pull_before(&w, 0);
    want_versions(w.other, w.form->nps > 0 ? 0 : 1);
    check_segments(w.layout, params_vector(w.other), w.form->nps > 0 ? vector : first);
    push(w.worker, w.layout, 2);
    push(w.worker, w.layout, 3);
    pull_before(&w, 2);
    check_segments(w.layout, params_vector(w.other), first);
    pull(w.other, 4);
    want_versions(w.other, 2);
    check_segments(w.layout, params_vector(w.other), second);
    ck_fails(params_pull_at(w.other, 0, 0, CALL_MS, &e), ERR_STALE, "the step of batch 0 is over");
    ck_fails(params_pull_at(w.other, 5, 0, CALL_MS, &e), ERR_PENDING, "the gradient of batch 4");
    world_close(&w);
}
END_TEST

/* The vector stays that of the step, whatever the ps have by now. */
START_TEST(a_push_brings_no_values_back)
{
    struct world w;
    struct push_result again = { 0 };
    struct err e = { 0 };
    float vector[FLOATS] = { 0 }, grads[FLOATS] = { 0 };
    AUTO(layout) *l = small_layout();
    fill(l, 1, vector);
    open_synchronous(&w, &FORMS[_i], small_layout(), SGD, vector);
    pull(w.other, 0);
    for (int64_t i = 0; i < 2; i++) {
        struct push_result result = push(w.other, w.layout, i);
        ck_assert(!result.duplicate);
        ck_assert_int_eq(result.staleness, 0);
        ck_assert_int_eq(result.version_min, i);
        check_segments(w.layout, params_vector(w.other), vector);
    }
    ck_ok_e(params_push_start(w.other, 1, grads, false, CALL_MS, &e));
    ck_ok_e(params_push_finish(w.other, &again, &e));
    ck_assert(again.duplicate);
    check_segments(w.layout, params_vector(w.other), vector);
    pull(w.other, 2);
    ck_assert_double_ne((double)params_vector(w.other)[0], (double)vector[0]);
    world_close(&w);
}
END_TEST

/* A caller that asks for values, as in asynchronous training: memory that holds none is not sent. */
START_TEST(a_push_is_answered_without_values)
{
    struct world w;
    float vector[FLOATS] = { 0 };
    struct rpc_method methods[SHARD_METHODS];
    struct err e = { 0 };
    open_synchronous(&w, &FORMS[1], small_layout(), SGD, vector);
    shard_service_methods(w.service[0], methods);
    for (int64_t i = 0; i < 2; i++) {
        Trainyard__V1__Header header;
        Trainyard__V1__PushRequest q = TRAINYARD__V1__PUSH_REQUEST__INIT;
        uint8_t bytes[27 * 4] = { 0 };
        AUTO_FINI(buf) packed = BUF_INIT;
        AUTO(rpc_message) *message = NULL;
        struct rpc_reply reply = { .head = BUF_INIT };
        trainyard__v1__header__init(&header);
        header.job_uid = unconst(UID);
        header.generation = 1;
        q.header = &header;
        q.ordinal = i;
        q.payload = (ProtobufCBinaryData){ .data = bytes, .len = sizeof(bytes) };
        codec_pack(&q.base, &packed);
        ck_ok_e(rpc_message_of(packed.data, packed.len, &message, &e));
        ck_ok_e(
            rpc_method_call(&methods[PS_PUSH], &(struct rpc_connection){ .leader = ROLE_CHIEF }, message, &reply, &e));
        ck_assert_uint_eq(reply.npieces, 0);
        buf_fini(&reply.head);
    }
    pull(w.other, 2);
    world_close(&w);
}
END_TEST

/* 27 floats are pushed, 29 pulled: the constants are pulled only. */
START_TEST(a_push_moves_its_gradients_once)
{
    struct world w;
    float vector[FLOATS] = { 0 };
    open_synchronous(&w, &FORMS[_i], small_layout(), SGD, vector);
    pull(w.other, 0);
    ck_assert_uint_eq(params_moved(w.other), 29 * sizeof(float));
    push(w.other, w.layout, 0);
    ck_assert_uint_eq(params_moved(w.other), (29 + 27) * sizeof(float));
    world_close(&w);
}
END_TEST

START_TEST(a_batch_of_a_later_step_is_not_taken)
{
    struct world w;
    float vector[FLOATS] = { 0 }, grads[FLOATS] = { 0 };
    struct push_result result;
    struct err e = { 0 };
    open_synchronous(&w, &FORMS[_i], small_layout(), COUNTING, vector);
    push(w.other, w.layout, 0);
    ck_fails(params_push(w.other, 2, grads, CALL_MS, &result, &e), ERR_PENDING,
             "batch 2 belongs to a later step: batches 0 to 1 are not applied yet");
    push(w.worker, w.layout, 1);
    push(w.other, w.layout, 2); /* the same again, when it is its turn */
    push(w.worker, w.layout, 3);
    pull(w.other, 4);
    ck_float(params_vector(w.other)[0], 4);
    world_close(&w);
}
END_TEST

static size_t bytes_at(const struct world *w, size_t ps)
{
    size_t floats = 0;
    for (size_t i = 0; i < w->placement->n[ps]; i++)
        floats += w->layout->segments[w->placement->ids[ps][i]].count;
    return floats * sizeof(float);
}

/* One ps has made the update, the others have not. */
static void open_uneven(struct world *w, const struct form *form, const float *vector)
{
    struct err e = { 0 };
    open_synchronous(w, form, small_layout(), ADAM, vector);
    push_to(w, 1, 0);
    push_to(w, 1, 1);
    ck_fails(params_pull_at(w->other, 2, 0, CALL_MS, &e), ERR_PENDING, "the gradients of batches 0, 1");
    ck_assert_uint_eq(params_moved(w->other), bytes_at(w, 1));
}

static void push_rest(struct world *w)
{
    for (size_t ps = 0; ps < ps_of(w); ps++)
        for (int64_t i = 0; ps != 1 && i < 2; i++)
            push_to(w, ps, i);
}

START_TEST(what_came_is_not_fetched_again)
{
    struct world w;
    struct err e = { 0 };
    float vector[FLOATS] = { 0 }, first[FLOATS];
    AUTO(layout) *l = small_layout();
    fill(l, 1, vector);
    values_of_shard(2, vector, first);
    open_uneven(&w, &FORMS[_i], vector);
    for (int i = 0; i < 3; i++) /* nothing new */
        ck_fails(params_pull_at(w.other, 2, 0, CALL_MS, &e), ERR_PENDING, "the gradients of batches 0, 1");
    ck_assert_uint_eq(params_moved(w.other), bytes_at(&w, 1));
    push_rest(&w);
    pull(w.other, 2);
    ck_assert_uint_eq(params_moved(w.other), 29 * sizeof(float));
    check_segments(w.layout, params_vector(w.other), first);
    want_versions(w.other, 1);
    pull(w.other, 2); /* the repetition is over: all is fetched */
    ck_assert_uint_eq(params_moved(w.other), (2 * 29) * sizeof(float));
    world_close(&w);
}
END_TEST

/* What came is of the step that was asked for. */
START_TEST(another_step_is_fetched_whole)
{
    struct world w;
    float vector[FLOATS] = { 0 };
    AUTO(layout) *l = small_layout();
    fill(l, 1, vector);
    open_uneven(&w, &FORMS[_i], vector);
    pull(w.other, 0);
    ck_assert_uint_eq(params_moved(w.other), bytes_at(&w, 1) + 29 * sizeof(float));
    check_segments(w.layout, params_vector(w.other), vector);
    world_close(&w);
}
END_TEST

/* All ps went back to a checkpoint meanwhile. */
START_TEST(a_new_generation_is_fetched_whole)
{
    struct world w;
    float vector[FLOATS] = { 0 }, other[FLOATS] = { 0 }, first[FLOATS];
    AUTO(layout) *l = small_layout();
    fill(l, 1, vector);
    fill(l, 2, other);
    values_of_shard(2, other, first);
    open_uneven(&w, &FORMS[_i], vector);
    params_set_generation(w.chief, 2);
    bring_up(&w, ADAM, other);
    params_set_generation(w.worker, 2);
    params_set_generation(w.other, 2);
    for (int64_t i = 0; i < 2; i++)
        push(w.worker, w.layout, i);
    pull(w.other, 2);
    ck_assert_uint_eq(params_moved(w.other), bytes_at(&w, 1) + 29 * sizeof(float));
    check_segments(w.layout, params_vector(w.other), first);
    world_close(&w);
}
END_TEST

/* 18 MiB in several parts. */
/* The trainable values that the optimizer has counted up by that, and the constant ones. */
static void count_up(const struct layout *l, float by, float *vector)
{
    for (size_t s = 0; s < l->n; s++) {
        const struct segment_spec *g = &l->segments[s];
        for (size_t i = g->offset; i < g->offset + g->count && g->kind != VAR_CONST; i++)
            vector[i] += by;
    }
}

START_TEST(large_steps)
{
    struct world w;
    struct layout *l = large_layout();
    auto_free float *vector = large_vector(l, 4099), *grads = large_vector(l, 61);
    open_synchronous(&w, &FORMS[_i], l, COUNTING, vector);
    for (int64_t i = 0; i < 4; i++)
        push_these(w.worker, i, grads);
    int64_t was = 0;
    for (int64_t at = w.form->nps > 0 ? 2 : 4; at <= 4; was = at, at += 2) {
        pull(w.other, at);
        count_up(w.layout, (float)(at - was), vector);
        const float *got = params_vector(w.other);
        for (size_t s = 0; s < w.layout->n; s++) {
            const size_t first = w.layout->segments[s].offset, n = w.layout->segments[s].count;
            size_t i = 0;
            if (memcmp(got + first, vector + first, n * sizeof(*got)) == 0)
                continue;
            while (memcmp(got + first + i, vector + first + i, sizeof(*got)) == 0)
                i++;
            ck_abort_msg("step of %d: element %zu of segment %zu", (int)at, i, s);
        }
    }
    world_close(&w);
}
END_TEST

START_TEST(asynchronous_ps_have_no_steps)
{
    struct world w;
    struct err e = { 0 };
    struct shard_snapshot none = { 0 };
    float vector[FLOATS] = { 0 };
    world_open(&w, &FORMS[_i], small_layout());
    bring_up(&w, SGD, vector);
    ck_fails(params_pull_at(w.other, 0, 0, CALL_MS, &e), ERR_INPUT, "a pull of a step");
    ck_fails(params_announce_snapshot(w.chief, 0, 0, CALL_MS, &e), ERR_INPUT, "asynchronous");
    ck_fails(params_snapshot_at(w.chief, 0, w.placement->ids[0][0], 0, CALL_MS, &none, &e), ERR_INPUT, "asynchronous");
    world_close(&w);
}
END_TEST

/* ---- the chief's calls ---- */

START_TEST(snapshots_of_a_step)
{
    struct world w;
    struct err e = { 0 };
    float vector[FLOATS] = { 0 }, first[FLOATS];
    AUTO(layout) *l = small_layout();
    fill(l, 1, vector);
    values_of_shard(2, vector, first);
    open_synchronous(&w, &FORMS[_i], small_layout(), ADAM, vector);
    for (size_t ps = 0; ps < ps_of(&w); ps++)
        ck_ok_e(params_announce_snapshot(w.chief, ps, 2, CALL_MS, &e));
    for (size_t ps = 0; ps < ps_of(&w); ps++) {
        AUTO_FINI(shard_snapshot) none = { 0 };
        ck_fails(params_snapshot_at(w.chief, ps, w.placement->ids[ps][0], 2, CALL_MS, &none, &e), ERR_PENDING,
                 "the gradients of batches 0, 1");
    }
    for (int64_t i = 0; i < 4; i++)
        push(w.worker, w.layout, i);
    for (size_t ps = 0; ps < ps_of(&w); ps++)
        for (size_t i = 0; i < w.placement->n[ps]; i++) {
            AUTO_FINI(shard_snapshot) s = { 0 };
            const struct segment_spec *spec = &w.layout->segments[w.placement->ids[ps][i]];
            ck_ok_e(params_snapshot_at(w.chief, ps, spec->id, 2, CALL_MS, &s, &e));
            ck_assert_int_eq(s.version, 1);
            ck_assert(s.applied.low == 2 && s.applied.high == 2);
            ck_assert_uint_eq(s.count, spec->count);
            ck_assert_mem_eq(s.data, first + spec->offset, spec->count * sizeof(float));
        }
    for (size_t ps = 0; ps < ps_of(&w); ps++)
        ck_fails(params_announce_snapshot(w.chief, ps, 2, CALL_MS, &e), ERR_STALE, "is beyond batch 2 already");
    world_close(&w);
}
END_TEST

/* The chief learns the groups, and which gradients need not be computed again. */
START_TEST(ps_describe_their_groups)
{
    struct world w;
    float vector[FLOATS] = { 0 };
    struct shard_info infos[PS_MAX] = { 0 };
    struct err errors[PS_MAX];
    open_synchronous(&w, &FORMS[_i], small_layout(), SGD, vector);
    push(w.worker, w.layout, 1);
    params_describe(w.chief, CALL_MS, infos, errors);
    for (size_t ps = 0; ps < ps_of(&w); ps++) {
        ck_assert_msg(errors[ps].code == ERR_NONE, "%s", errors[ps].msg);
        ck_assert(groups_same(&infos[ps].groups, &G));
        ck_assert(ordinal_set_has(&infos[ps].applied, 1) && !ordinal_set_has(&infos[ps].applied, 0));
        ck_assert_int_eq(infos[ps].version_max, 0);
        shard_info_fini(&infos[ps]);
    }
    world_close(&w);
}
END_TEST

START_TEST(groups_that_are_not_valid_are_refused)
{
    struct world w;
    struct err e = { 0 };
    float vector[FLOATS] = { 0 };
    struct groups other = G;
    open_synchronous(&w, &FORMS[_i], small_layout(), SGD, vector);
    other.size = 3;
    params_set_groups(w.chief, &other);
    ck_fails(params_init(w.chief, 0, SGD, CALL_MS, &e), ERR_REFUSED, "generation 1 began with groups of 2");
    other.size = GROUP_MAX + 1;
    params_set_groups(w.chief, &other);
    params_set_generation(w.chief, 2);
    ck_fails(params_init(w.chief, 0, SGD, CALL_MS, &e), ERR_INPUT, "must be 1 to 10000");
    world_close(&w);
}
END_TEST

/* ---- waits ---- */

struct waiter {
    struct params *params;
    int64_t at;
    int result;
    struct err error;
    struct thread thread;
};

static void wait_for_step(void *user)
{
    struct waiter *x = user;
    x->result = params_pull_at(x->params, x->at, WAIT_MS, 1, &x->error); /* the deadline begins after the wait */
}

/* Returns when the ps has read its request, which it then keeps. The memory is shared before. */
static void begin_wait(struct world *w, struct waiter *x, int64_t at)
{
    struct err e = { 0 };
    *x = (struct waiter){ .params = w->other, .at = at };
    pull(w->other, 0);
    ck_assert_uint_eq(shard_service_shared(w->service[0]), w->form->share);
    int64_t heard_ms = shard_service_heard_ms(w->service[0]);
    ck_wait(clock_ms() > heard_ms);
    ck_ok_e(thread_start(&x->thread, "waiter", wait_for_step, x, &e));
    ck_wait(shard_service_heard_ms(w->service[0]) > heard_ms);
}

START_TEST(a_wait_ends_with_the_last_gradient)
{
    struct world w;
    struct waiter x;
    float vector[FLOATS] = { 0 };
    open_synchronous(&w, &FORMS[_i], small_layout(), COUNTING, vector);
    begin_wait(&w, &x, 2);
    push(w.worker, w.layout, 1);
    push(w.worker, w.layout, 0);
    thread_join(&x.thread);
    ck_assert_msg(x.result == 0, "%s", x.error.msg);
    ck_float(params_vector(w.other)[0], 2);
    world_close(&w);
}
END_TEST

START_TEST(a_wait_ends_with_the_generation)
{
    struct world w;
    struct waiter x;
    struct err e = { 0 };
    float vector[FLOATS] = { 0 };
    open_synchronous(&w, &FORMS[_i], small_layout(), COUNTING, vector);
    begin_wait(&w, &x, 2);
    params_set_generation(w.chief, 2);
    ck_ok_e(params_adopt(w.chief, 0, CALL_MS, &e));
    thread_join(&x.thread);
    ck_assert_int_eq(x.result, -1);
    ck_assert_int_eq(x.error.code, ERR_FENCED);
    ck_assert_msg(strstr(x.error.msg, "generation 1 is over, this is 2") != NULL, "%s", x.error.msg);
    world_close(&w);
}
END_TEST

START_TEST(a_wait_that_is_over_names_what_is_missing)
{
    struct world w;
    struct err e = { 0 };
    float vector[FLOATS] = { 0 };
    open_synchronous(&w, &FORMS[_i], small_layout(), COUNTING, vector);
    push(w.worker, w.layout, 0);
    ck_fails(params_pull_at(w.other, 2, 1, CALL_MS, &e), ERR_PENDING, "the gradient of batch 1");
    ck_assert_str_eq(e.msg, "the gradient of batch 1"); /* people wait for that, and not for a ps */
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("params_step");
    TCase *all = tcase_create("all forms"), *wait = tcase_create("waits");
    int n = (int)COUNT_OF(FORMS);
    tcase_set_timeout(all, 60);
    tcase_set_timeout(wait, 60);
    tcase_add_loop_test(all, values_of_a_step_and_of_the_one_before, 0, n);
    tcase_add_loop_test(all, a_push_brings_no_values_back, 0, n);
    tcase_add_test(all, a_push_is_answered_without_values);
    tcase_add_loop_test(all, a_push_moves_its_gradients_once, 1, n);
    tcase_add_loop_test(all, a_batch_of_a_later_step_is_not_taken, 0, n);
    tcase_add_loop_test(all, large_steps, 0, n);
    tcase_add_loop_test(all, asynchronous_ps_have_no_steps, 0, n);
    tcase_add_loop_test(all, snapshots_of_a_step, 0, n);
    tcase_add_loop_test(all, ps_describe_their_groups, 0, n);
    tcase_add_loop_test(all, groups_that_are_not_valid_are_refused, 0, n);
    tcase_add_loop_test(wait, a_wait_that_is_over_names_what_is_missing, 0, n);
    for (int i = 1; i <= 3; i += 2) {
        tcase_add_loop_test(wait, a_wait_ends_with_the_last_gradient, i, i + 1);
        tcase_add_loop_test(wait, a_wait_ends_with_the_generation, i, i + 1);
    }
    for (int i = 2; i <= 4; i += 2) {
        tcase_add_loop_test(all, what_came_is_not_fetched_again, i, i + 1);
        tcase_add_loop_test(all, another_step_is_fetched_whole, i, i + 1);
        tcase_add_loop_test(all, a_new_generation_is_fetched_whole, i, i + 1);
    }
    suite_add_tcase(s, all);
    suite_add_tcase(s, wait);
    return s;
}
