#include "ps_fixture.h"

#include "base/thread.h"

enum { LOOK_MS = 20000 };

struct world {
    struct ps_fixture ps;
    struct params *params, *worker;
    struct ps_set *ps_set;
    int asked;
    float value;
};

static int constant(void *user, const struct segment_spec *s, float *data, bool *ret_slots, int64_t *ret_version,
                    struct ordinal_set *ret_applied, struct err *e)
{
    struct world *w = user;
    for (size_t i = 0; i < s->count; i++)
        data[i] = w->value;
    for (int64_t i = 0; i < (int64_t)w->value; i++)
        if (ordinal_set_add(ret_applied, i, e) < 0)
            return -1;
    *ret_slots = false;
    *ret_version = (int64_t)w->value;
    w->asked++;
    return 0;
}

static void world_open(struct world *w)
{
    *w = (struct world){ 0 };
    ps_open(&w->ps, COUNTING_OPTIMIZER, "epochs: 2");
    w->params = ps_params(&w->ps, "chief-0", JOB_UID);
    w->worker = ps_params(&w->ps, "worker-0", JOB_UID);
    w->ps_set =
        ps_set_new(w->params, w->ps.job.layout, w->ps.placement, model_optimizer(w->ps.job.model), JOB_UID, NULL);
}

static void world_close(struct world *w)
{
    ps_set_free(w->ps_set);
    params_free(w->params);
    params_free(w->worker);
    ps_close(&w->ps);
}

/* Returns how many ps were filled. */
static int bring_up(struct world *w, uint64_t generation)
{
    struct err e = { 0 };
    int restored = -1;
    ck_ok_e(ps_set_initialise(w->ps_set, generation, &(struct segment_source){ .read = constant, .user = w }, &restored,
                              &e));
    return restored;
}

static struct ps_set_view look(struct world *w)
{
    struct ps_set_view v;
    ps_set_poll(w->ps_set, LOOK_MS, &v);
    return v;
}

#define want_condition(w, wanted)                                                                                      \
    do {                                                                                                               \
        AUTO_FINI(ps_set_view) seen = look(w);                                                                         \
        ck_assert_msg(seen.condition == (wanted), "%d, not %d: %s", (int)seen.condition, (int)(wanted), seen.message); \
    } while (0)

START_TEST(empty_ps_are_filled_from_the_source)
{
    struct world w;
    world_open(&w);
    want_condition(&w, PS_SET_NEEDS_RESTORE);
    w.value = 3;
    ck_assert_int_eq(bring_up(&w, 1), PS_COUNT);
    ck_assert_int_eq(w.asked, (int)w.ps.job.layout->n);
    AUTO_FINI(ps_set_view) v = look(&w);
    ck_assert(v.condition == PS_SET_READY && v.step == 3 && ordinal_set_count(&v.done) == 3 &&
              v.highest_generation == 1);
    ps_want_cells(&w.ps, w.worker, 1, 3);
    world_close(&w);
}
END_TEST

START_TEST(ps_that_serve_keep_their_state)
{
    struct world w;
    world_open(&w);
    ck_assert_int_eq(bring_up(&w, 1), PS_COUNT);
    ps_push(&w.ps, w.worker, 1, 0, 4);
    ck_assert_int_eq(bring_up(&w, 2), 0);
    AUTO_FINI(ps_set_view) v = look(&w);
    ck_assert(v.condition == PS_SET_READY && v.step == 4 && v.done.low == 4 && v.highest_generation == 2);
    ps_want_cells(&w.ps, w.worker, 2, 4);
    world_close(&w);
}
END_TEST

static bool are_reached(struct world *w)
{
    AUTO_FINI(ps_set_view) v = look(w);
    return v.condition != PS_SET_UNREACHABLE;
}

START_TEST(one_that_lost_its_state_is_filled_and_owed_what_it_lacks)
{
    struct world w;
    struct err e = { 0 };
    world_open(&w);
    ck_assert_int_eq(bring_up(&w, 1), PS_COUNT);
    ps_push(&w.ps, w.worker, 1, 0, 6);
    ps_stop(&w.ps, 1);
    want_condition(&w, PS_SET_UNREACHABLE);
    ps_start(&w.ps, 1, 777);
    ck_wait(are_reached(&w)); /* the channel connects again by itself */
    want_condition(&w, PS_SET_NEEDS_RESTORE);
    w.value = 2; /* the checkpoint is of step 2 */
    ck_assert_int_eq(bring_up(&w, 2), 1);
    AUTO_FINI(ps_set_view) v = look(&w);
    ck_assert(v.condition == PS_SET_READY && v.step == 2 && v.done.low == 2);
    float grads[256] = { 0 };
    struct push_result result;
    params_set_generation(w.worker, 1);
    ck_fails(params_push(w.worker, 2, grads, PS_CALL_MS, &result, &e), ERR_FENCED, "generation");
    ps_push(&w.ps, w.worker, 2, 0, 6); /* all of them again: the other ps has them */
    ps_want_cells(&w.ps, w.worker, 2, 6);
    world_close(&w);
}
END_TEST

START_TEST(one_that_terminates_is_seen)
{
    struct world w;
    world_open(&w);
    bring_up(&w, 1);
    ps_push(&w.ps, w.worker, 1, 0, 1);
    shard_terminating(w.ps.shard[1]);
    AUTO_FINI(ps_set_view) v = look(&w);
    ck_assert_msg(v.condition == PS_SET_TERMINATING && v.done.low == 1 && strstr(v.message, "ps-1") != NULL, "%s",
                  v.message);
    ps_push(&w.ps, w.worker, 1, 1, 2); /* it serves on */
    world_close(&w);
}
END_TEST

START_TEST(one_that_terminates_waits_for_the_checkpoint)
{
    struct world w;
    struct err e = { 0 };
    world_open(&w);
    bring_up(&w, 1);
    ps_push(&w.ps, w.worker, 1, 0, 1);
    for (size_t ps = 0; ps < 2; ps++)
        shard_terminating(w.ps.shard[ps]);
    for (uint32_t i = 0; i < w.ps.job.layout->n; i++) {
        AUTO_FINI(shard_snapshot) snapshot = { 0 };
        ck_ok_e(ps_set_snapshot(w.ps_set, i, &snapshot, &e));
    }
    ck_assert(!shard_saved(w.ps.shard[0]) && !shard_saved(w.ps.shard[1]));
    ps_set_confirm_snapshots(w.ps_set);
    ck_assert(shard_saved(w.ps.shard[0]) && shard_saved(w.ps.shard[1]));
    world_close(&w);
}
END_TEST

START_TEST(a_newer_generation_is_noticed_and_not_overruled)
{
    struct world w;
    struct err e = { 0 };
    int restored;
    world_open(&w);
    bring_up(&w, 1);
    AUTO(params) *newer = ps_params(&w.ps, "chief-1", JOB_UID);
    params_set_generation(newer, 5);
    ck_ok_e(params_adopt(newer, 0, PS_CALL_MS, &e));
    AUTO_FINI(ps_set_view) v = look(&w);
    ck_assert_uint_eq(v.highest_generation, 5);
    ck_fails(ps_set_initialise(w.ps_set, 4, &(struct segment_source){ .read = constant, .user = &w }, &restored, &e),
             ERR_FENCED, "is at generation 5, this chief at 4");
    world_close(&w);
}
END_TEST

/* Two chiefs that claimed the same generation: a ps accepts the one that it saw first. */
START_TEST(a_second_chief_of_one_generation_is_refused)
{
    struct world w;
    struct err e = { 0 };
    int restored;
    world_open(&w);
    bring_up(&w, 3);
    AUTO(params) *params = ps_params_as(&w.ps, "chief-0", JOB_UID, 10);
    AUTO(ps_set) *second =
        ps_set_new(params, w.ps.job.layout, w.ps.placement, model_optimizer(w.ps.job.model), JOB_UID, NULL);
    ck_fails(ps_set_initialise(second, 3, &(struct segment_source){ .read = constant, .user = &w }, &restored, &e),
             ERR_FENCED, "from another chief");
    ck_fails(params_adopt(params, 0, PS_CALL_MS, &e), ERR_FENCED, "belongs to another chief");
    AUTO_FINI(ps_set_view) theirs = { 0 };
    ps_set_poll(second, LOOK_MS, &theirs);
    ck_assert_uint_eq(theirs.other_chief, 9);
    AUTO_FINI(ps_set_view) ours = look(&w);
    ck_assert(ours.condition == PS_SET_READY && ours.other_chief == 0);
    ck_ok_e(ps_set_initialise(second, 4, &(struct segment_source){ .read = constant, .user = &w }, &restored, &e));
    ck_assert_int_eq(restored, 0);
    world_close(&w);
}
END_TEST

/* Describe answers only when every running ps has been asked. */
struct together {
    struct mutex lock;
    struct cond all_asked;
    int asked, wanted;
};
struct witness {
    struct together *t;
    struct rpc_method real;
};

static int describe_together(void *user, const struct rpc_caller *caller, const struct rpc_message *request,
                             struct rpc_reply *reply, struct err *e)
{
    struct witness *w = user;
    int64_t end = clock_ms() + 2 * (int64_t)LOOK_MS;
    {
        MUTEX_GUARD(&w->t->lock);
        w->t->asked++;
        cond_broadcast(&w->t->all_asked);
        while (w->t->asked < w->t->wanted && cond_wait_until(&w->t->all_asked, &w->t->lock, end)) {
        }
    }
    return w->real.handle(w->real.user, caller, request, reply, e);
}

/* How many ps were asked since the last call of this function. */
static int asked_since(struct together *t)
{
    MUTEX_GUARD(&t->lock);
    int asked = t->asked;
    t->asked = 0;
    return asked;
}

static void serve_together(struct ps_fixture *ps, size_t i, struct together *t, struct witness *w)
{
    struct rpc_method methods[SHARD_METHODS];
    rpc_server_free(TAKE(ps->server[i]));
    shard_service_methods(ps->service[i], methods);
    for (size_t m = 0; m < SHARD_METHODS; m++)
        if (str_ends(methods[m].path, "/Describe")) {
            *w = (struct witness){ .t = t, .real = methods[m] };
            methods[m].handle = describe_together;
            methods[m].user = w;
        }
    ps_serve(ps, i, methods);
}

/* Asked one after the other, the first would wait for its whole deadline, since it answers only when all are asked. */
START_TEST(all_ps_are_asked_at_once)
{
    struct ps_fixture ps;
    struct together t = { .wanted = PS_COUNT };
    struct witness witnesses[PS_COUNT];
    mutex_init(&t.lock);
    cond_init(&t.all_asked);
    ps_open(&ps, COUNTING_OPTIMIZER, "epochs: 2");
    char *hosts[PS_COUNT + 1], nobody[] = "127.0.0.1:1"; /* a port that refuses connections */
    hosts[0] = nobody;
    for (size_t i = 0; i < PS_COUNT; i++) {
        serve_together(&ps, i, &t, &witnesses[i]);
        hosts[i + 1] = ps.host[i];
    }
    struct params_identity id = { .job_uid = JOB_UID, .sender = "chief-0", .incarnation = 9 };
    AUTO(placement) *three = placement_new(ps.job.layout, PLACEMENT_GREEDY, PS_COUNT + 1);
    AUTO(params) *params = params_new_grpc(ps.job.layout, three, hosts, &id, &RPC_INSECURE);
    struct shard_info infos[PS_COUNT + 1] = { 0 };
    struct err errors[PS_COUNT + 1];
    params_describe(params, LOOK_MS, infos, errors);
    ck_assert_msg(errors[0].code == ERR_LOST && strstr(errors[0].msg, "ps-0") != NULL, "%s", errors[0].msg);
    for (size_t i = 1; i <= PS_COUNT; i++) {
        ck_assert_msg(errors[i].code == ERR_NONE, "%s", errors[i].msg);
        ck_assert_uint_eq(infos[i].incarnation, 99 + i);
        shard_info_fini(&infos[i]);
    }
    AUTO(ps_set) *f = ps_set_new(params, ps.job.layout, three, model_optimizer(ps.job.model), JOB_UID, NULL);
    AUTO_FINI(ps_set_view) v = { 0 };
    asked_since(&t);
    ps_set_poll(f, LOOK_MS, &v);
    ck_assert_msg(v.condition == PS_SET_UNREACHABLE && strstr(v.message, "ps-0") != NULL, "%s", v.message);
    ck_assert_int_eq(asked_since(&t), PS_COUNT);
    ps_set_free(TAKE(f));
    params_free(TAKE(params));
    ps_close(&ps);
    cond_fini(&t.all_asked);
    mutex_fini(&t.lock);
}
END_TEST

START_TEST(ps_of_another_job_are_left_alone)
{
    struct world w;
    struct err e = { 0 };
    int restored;
    world_open(&w);
    bring_up(&w, 1);
    AUTO(params) *params = ps_params(&w.ps, "chief-0", "job-2");
    AUTO(ps_set) *other =
        ps_set_new(params, w.ps.job.layout, w.ps.placement, model_optimizer(w.ps.job.model), "job-2", NULL);
    ck_fails(ps_set_initialise(other, 9, &(struct segment_source){ .read = constant, .user = &w }, &restored, &e),
             ERR_REFUSED, JOB_UID);
    want_condition(&w, PS_SET_READY);
    world_close(&w);
}
END_TEST

START_TEST(fenced_off_pushes_change_nothing)
{
    struct world w;
    struct err e = { 0 };
    float grads[256] = { 0 };
    struct push_result result;
    world_open(&w);
    bring_up(&w, 1);
    ps_push(&w.ps, w.worker, 1, 0, 2);
    ps_set_fence(w.ps_set, 2);
    ck_fails(params_push(w.worker, 2, grads, PS_CALL_MS, &result, &e), ERR_FENCED, "");
    ps_want_cells(&w.ps, w.worker, 2, 2);
    world_close(&w);
}
END_TEST

START_TEST(who_answers_hears_of_the_end)
{
    struct world w;
    struct shard_info info;
    world_open(&w);
    bring_up(&w, 1);
    ps_stop(&w.ps, 0);
    ck_assert_int_eq(ps_set_finish(w.ps_set, 20), 1);
    shard_brief(w.ps.shard[1], &info);
    ck_assert_int_eq((int)info.state, SHARD_FINISHED);
    world_close(&w);
}
END_TEST

/* ---- synchronous training: the state of all ps is of one step ---- */

/* Ten batches an epoch in groups of 4: 4, 4, 2. */
static struct groups groups_of_four(const struct world *w)
{
    return groups_of(&w->ps.job.space, 4);
}

static void open_groups(struct world *w)
{
    world_open(w);
    const struct groups groups = groups_of_four(w);
    params_set_groups(w->params, &groups);
    params_set_synchronous(w->worker);
}

/* A chief of another generation that has other groups. size 0: asynchronous */
static int bring_up_as(struct world *w, int64_t size, uint64_t generation)
{
    struct groups groups = groups_of_four(w);
    groups.size = size;
    struct err e = { 0 };
    int restored = -1;
    AUTO(params) *params = ps_params(&w->ps, "chief-0", JOB_UID);
    if (size > 0)
        params_set_groups(params, &groups);
    AUTO(ps_set) *f =
        ps_set_new(params, w->ps.job.layout, w->ps.placement, model_optimizer(w->ps.job.model), JOB_UID, NULL);
    ck_ok_e(ps_set_initialise(f, generation, &(struct segment_source){ .read = constant, .user = w }, &restored, &e));
    return restored;
}

static void want_step(struct world *w, uint64_t generation, int64_t at, float cells)
{
    struct err e = { 0 };
    int pulled;
    params_set_generation(w->worker, generation);
    ck_wait((pulled = params_pull_at(w->worker, at, 0, PS_CALL_MS, &e)) == 0 || !err_is(&e, ERR_LOST));
    ck_assert_msg(pulled == 0, "%d %s", (int)e.code, e.msg); /* it may have shared memory with the process before */
    want_cells(&w->ps.job, params_vector(w->worker), cells);
}

START_TEST(groups_reach_every_ps)
{
    struct world w;
    open_groups(&w);
    const struct groups groups = groups_of_four(&w);
    ck_assert_int_eq(bring_up(&w, 1), PS_COUNT);
    for (size_t ps = 0; ps < PS_COUNT; ps++) {
        struct shard_info info;
        shard_brief(w.ps.shard[ps], &info);
        ck_assert(groups_same(&info.groups, &groups));
    }
    ps_push(&w.ps, w.worker, 1, 0, 6);
    AUTO_FINI(ps_set_view) v = look(&w);
    ck_assert(v.condition == PS_SET_READY && v.step == 1 && v.step_max == 1);
    ck_assert_int_eq(v.done.low, 6); /* two wait for the rest of their group */
    want_step(&w, 1, 4, 4);
    world_close(&w);
}
END_TEST

START_TEST(groups_that_are_the_same_are_kept)
{
    struct world w;
    open_groups(&w);
    bring_up(&w, 1);
    ps_push(&w.ps, w.worker, 1, 0, 6);
    w.asked = 0;
    ck_assert_int_eq(bring_up_as(&w, 4, 2), 0);
    ck_assert_int_eq(w.asked, 0);
    ps_push(&w.ps, w.worker, 2, 6, 8); /* the gradients that wait were kept, too */
    want_step(&w, 2, 8, 8);
    world_close(&w);
}
END_TEST

/* The next run of the job has another k, or none: the ps are filled from the checkpoint. */
START_TEST(ps_with_other_groups_are_filled)
{
    struct world w;
    open_groups(&w);
    bring_up(&w, 1);
    ps_push(&w.ps, w.worker, 1, 0, 4);
    w.value = 6;
    ck_assert_int_eq(bring_up_as(&w, 3, 2), PS_COUNT);
    want_step(&w, 2, 6, 6);
    ps_push(&w.ps, w.worker, 2, 6, 9);
    want_step(&w, 2, 9, 9);
    w.value = 4;
    ck_assert_int_eq(bring_up_as(&w, 0, 3), PS_COUNT);
    AUTO(params) *asynchronous = ps_params(&w.ps, "worker-1", JOB_UID);
    ps_push(&w.ps, asynchronous, 3, 4, 5);
    ps_want_cells(&w.ps, asynchronous, 3, 5);
    w.value = 8;
    ck_assert_int_eq(bring_up_as(&w, 4, 4), PS_COUNT);
    want_step(&w, 4, 8, 8);
    world_close(&w);
}
END_TEST

/* All go back to the checkpoint, so that they are at one step. */
START_TEST(one_that_lost_its_state_takes_all_back)
{
    struct world w;
    struct err e = { 0 };
    open_groups(&w);
    bring_up(&w, 1);
    ps_push(&w.ps, w.worker, 1, 0, 9);
    ps_stop(&w.ps, 1);
    ps_start(&w.ps, 1, 777);
    ck_wait(are_reached(&w));
    want_condition(&w, PS_SET_NEEDS_RESTORE);
    w.value = 4;
    ck_assert_int_eq(bring_up(&w, 2), PS_COUNT);
    AUTO_FINI(ps_set_view) v = look(&w);
    ck_assert(v.condition == PS_SET_READY && v.done.low == 4 && v.done.high == 4);
    want_step(&w, 2, 4, 4);
    ck_fails(params_pull_at(w.worker, 8, 0, PS_CALL_MS, &e), ERR_PENDING, "the gradients of batches 4, 5, 6, 7");
    ps_push(&w.ps, w.worker, 2, 4, 8);
    want_step(&w, 2, 8, 8);
    world_close(&w);
}
END_TEST

/* The checkpoint is in the middle of a group of this k. */
START_TEST(a_restore_that_is_not_of_a_step_fails)
{
    struct world w;
    struct err e = { 0 };
    int restored = -1;
    open_groups(&w);
    w.value = 5;
    ck_fails(ps_set_initialise(w.ps_set, 1, &(struct segment_source){ .read = constant, .user = &w }, &restored, &e),
             ERR_INPUT, "batch 5 is not the first of a group of 4");
    ck_assert_int_eq(restored, -1);
    world_close(&w);
}
END_TEST

/* Reads the checkpoint, and cuts the connection to ps-1 with the last segment of ps-0. */
static int cut_off(void *user, const struct segment_spec *s, float *data, bool *ret_slots, int64_t *ret_version,
                   struct ordinal_set *ret_applied, struct err *e)
{
    struct world *w = user;
    if (constant(w, s, data, ret_slots, ret_version, ret_applied, e) < 0)
        return -1;
    if (w->asked == (int)w->ps.placement->n[0])
        rpc_server_free(TAKE(w->ps.server[1]));
    return 0;
}

/* ps-1 has still its state of before, and ps-0 that of the checkpoint: they do not belong together. */
START_TEST(a_ps_that_was_not_reached_is_filled_too)
{
    struct world w;
    struct err e = { 0 };
    int restored = -1;
    struct rpc_method methods[SHARD_METHODS];
    open_groups(&w);
    bring_up(&w, 1);
    ps_push(&w.ps, w.worker, 1, 0, 8);
    ps_stop(&w.ps, 0);
    ps_start(&w.ps, 0, 777);
    ck_wait(are_reached(&w));
    w.value = 4;
    w.asked = 0;
    ck_fails(ps_set_initialise(w.ps_set, 2, &(struct segment_source){ .read = cut_off, .user = &w }, &restored, &e),
             ERR_LOST, "ps-1");
    shard_service_methods(w.ps.service[1], methods);
    ps_serve(&w.ps, 1, methods);
    ck_wait(are_reached(&w));
    ck_assert_int_eq(bring_up(&w, 2), 1);
    ck_assert_int_eq(w.asked, (int)w.ps.job.layout->n); /* each segment once */
    want_step(&w, 2, 4, 4);
    world_close(&w);
}
END_TEST

/* A ps was adopted with its state, then another one lost its own: the generation cannot have both. */
START_TEST(a_ps_lost_during_the_adoption_needs_a_new_generation)
{
    struct world w;
    struct err e = { 0 };
    int restored = -1;
    open_groups(&w);
    bring_up(&w, 1);
    ps_push(&w.ps, w.worker, 1, 0, 8);
    params_set_generation(w.params, 2);
    ck_ok_e(params_adopt(w.params, 0, PS_CALL_MS, &e));
    ps_stop(&w.ps, 1);
    ps_start(&w.ps, 1, 777);
    ck_wait(are_reached(&w));
    w.value = 4;
    ck_fails(ps_set_initialise(w.ps_set, 2, &(struct segment_source){ .read = constant, .user = &w }, &restored, &e),
             ERR_STALE, "ps-0 was taken over before another ps lost its state");
    ck_assert_int_eq(bring_up(&w, 3), PS_COUNT);
    want_step(&w, 3, 4, 4);
    world_close(&w);
}
END_TEST

START_TEST(all_ps_keep_the_step_that_was_announced)
{
    struct world w;
    struct err e = { 0 };
    open_groups(&w);
    bring_up(&w, 1);
    ck_ok_e(ps_set_announce_snapshot(w.ps_set, 4, &e));
    ps_push(&w.ps, w.worker, 1, 0, 9);
    for (uint32_t id = 0; id < w.ps.job.layout->n; id++) {
        AUTO_FINI(shard_snapshot) s = { 0 };
        ck_ok_e(ps_set_snapshot_at(w.ps_set, id, 4, &s, &e));
        ck_assert(s.version == 1 && s.applied.low == 4 && s.applied.high == 4);
        ck_assert_double_eq((double)s.data[0], 4);
    }
    ck_fails(ps_set_announce_snapshot(w.ps_set, 4, &e), ERR_STALE, "beyond batch 4 already");
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("ps_set");
    TCase *t = tcase_create("ps_set");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, empty_ps_are_filled_from_the_source);
    tcase_add_test(t, ps_that_serve_keep_their_state);
    tcase_add_test(t, one_that_lost_its_state_is_filled_and_owed_what_it_lacks);
    tcase_add_test(t, one_that_terminates_is_seen);
    tcase_add_test(t, one_that_terminates_waits_for_the_checkpoint);
    tcase_add_test(t, a_newer_generation_is_noticed_and_not_overruled);
    tcase_add_test(t, a_second_chief_of_one_generation_is_refused);
    tcase_add_test(t, all_ps_are_asked_at_once);
    tcase_add_test(t, ps_of_another_job_are_left_alone);
    tcase_add_test(t, fenced_off_pushes_change_nothing);
    tcase_add_test(t, who_answers_hears_of_the_end);
    tcase_add_test(t, groups_reach_every_ps);
    tcase_add_test(t, groups_that_are_the_same_are_kept);
    tcase_add_test(t, ps_with_other_groups_are_filled);
    tcase_add_test(t, one_that_lost_its_state_takes_all_back);
    tcase_add_test(t, a_restore_that_is_not_of_a_step_fails);
    tcase_add_test(t, a_ps_that_was_not_reached_is_filled_too);
    tcase_add_test(t, a_ps_lost_during_the_adoption_needs_a_new_generation);
    tcase_add_test(t, all_ps_keep_the_step_that_was_announced);
    suite_add_tcase(s, t);
    return s;
}
