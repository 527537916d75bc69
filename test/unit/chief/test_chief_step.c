/* Checkpoints of synchronous training: of which step, and what becomes of the run with other groups. */
#include "epoch_fixture.h"

#include "chief/checkpoint.h"
#include "shard/shard_internal.h"

/* Ten batches an epoch in groups of k. */
#define REPLICAS "epochs: 2}\n  replicaSpecs: {Chief: {}, PS: {replicas: 2}, Worker: {replicas: 1}}\n"
#define SYNC(k)  REPLICAS "  strategy: {updates: sync, replicasToAggregate: " #k
#define ASYNC    REPLICAS "  strategy: {updates: async"

static void open_synchronous(struct world *w)
{
    world_open(w, COUNTING_OPTIMIZER, SYNC(4));
    params_set_synchronous(w->worker);
    coordinator_set(w->l.chief->coordinator, JOB_TRAINING, w->l.chief->generation, "");
    w->l.chief->limit = 2 * JOB_BATCHES;
    coordinator_allow_below(w->l.chief->coordinator, w->l.chief->limit);
}

static const struct coordinator_sender WORKER = {
    .job_uid = JOB_UID, .name = "worker-0", .role = ROLE_WORKER, .incarnation = 11
};

static void enrol(struct world *w, int64_t now_ms)
{
    const struct job_fixture *j = &w->ps.job;
    const struct register_request enter = { .sender = WORKER,
                                            .space = j->space,
                                            .shuffle_version = SHUFFLE_VERSION,
                                            .layout_hash = layout_register_hash(j->layout, j->model),
                                            .ps_count = PS_COUNT,
                                            .placement_hash = placement_hash(w->ps.placement) };
    struct coordinator_reply r;
    struct err e = { 0 };
    ck_ok_e(coordinator_register(w->l.chief->coordinator, &enter, now_ms, &r, &e));
}

/* The worker's call to the chief: the end of what it is leased, -1: nothing. */
static int64_t lease_batches(struct world *w, int64_t want)
{
    const struct lease_request ask = { .sender = WORKER, .want = want };
    struct coordinator_reply r;
    struct err e = { 0 };
    enrol(w, clock_ms());
    ck_ok_e(coordinator_lease(w->l.chief->coordinator, &ask, clock_ms(), &r, &e));
    return r.count == 0 ? -1 : r.nmore > 0 ? r.more[r.nmore - 1] : r.first + r.count;
}

static void want_checkpoint(struct world *w, int64_t step, float cells)
{
    auto_free char *folder = output_dir_path(w->ps.job.dir, "checkpoints"), *damaged = NULL;
    auto_free float *vector = xcalloc(model_size(w->ps.job.model), sizeof(*vector));
    AUTO(checkpoint) *c = NULL;
    struct err e = { 0 };
    ck_ok_e(checkpoint_open_whole(folder, &c, &damaged, &e));
    ck_assert_ptr_nonnull(c);
    ck_assert_int_eq(checkpoint_step(c), step);
    ck_ok_e(checkpoint_values(c, w->ps.job.model, vector, &e));
    want_cells(&w->ps.job, vector, cells);
}

/* Batches go directly to the shard of one ps. */
static void push_to(struct ps_fixture *ps, size_t i, uint64_t generation, int64_t from, int64_t to)
{
    const struct shard_caller who = { .job_uid = JOB_UID, .sender = "worker-1", .generation = generation };
    auto_free float *grads = xcalloc(model_size(ps->job.model), sizeof(*grads));
    const struct shard_vectors v = { .grads = grads, .floats = model_size(ps->job.model) };
    int64_t versions[16];
    bool duplicate;
    struct err e = { 0 };
    for (int64_t at = from; at < to; at++)
        ck_ok_e(shard_push_vectors(ps->shard[i], &who, (struct shard_part){ 0 }, at, NULL, &v, versions,
                                   ps->placement->n[i], &duplicate, &e));
}

/* ---- of which step ---- */

/* No batch is leased and no gradient waits: the state of now. */
START_TEST(the_step_of_now_when_nothing_is_computed)
{
    struct world w;
    struct err e = { 0 };
    open_synchronous(&w);
    train(&w, 0, 8);
    ck_ok_e(chief_save(w.l.chief, &e));
    ck_assert_int_eq(w.l.chief->save_at, 8);
    want_checkpoint(&w, 2, 8);
    ck_assert_int_gt(lease_batches(&w, 4), 8); /* training goes on */
    world_close(&w);
}
END_TEST

struct pusher {
    struct world *w;
    struct thread thread;
};

/* Once both ps know of the checkpoint, the rest of its step and all of the next one come. */
static void push_after_announcement(void *user)
{
    struct pusher *p = user;
    struct ps_fixture *ps = &p->w->ps;
    ck_wait(atomic_load(&ps->shard[1]->announced) == 4);
    for (size_t i = 0; i < PS_COUNT; i++)
        push_to(ps, i, p->w->l.chief->generation, 2, 8);
}

START_TEST(the_step_that_is_computed_and_training_goes_on)
{
    struct world w;
    struct pusher p = { .w = &w };
    struct err e = { 0 };
    open_synchronous(&w);
    ck_assert_int_eq(lease_batches(&w, 8), 8); /* the next step is leased, too */
    train(&w, 0, 2);
    ck_ok_e(thread_start(&p.thread, "pusher", push_after_announcement, &p, &e));
    ck_ok_e(chief_save(w.l.chief, &e));
    thread_join(&p.thread);
    ck_assert_int_eq(w.l.chief->save_at, 4);
    want_checkpoint(&w, 1, 4);
    look(&w);
    ck_assert_int_eq(atomic_load(&w.l.chief->step), 2);
    world_close(&w);
}
END_TEST

/* No worker reports the batches of the epoch. The chief waits for that, and sees meanwhile what the ps have applied and
 * which workers are gone. */
START_TEST(it_looks_around_while_reports_are_missing)
{
    struct world w;
    struct coordinator_view view;
    open_synchronous(&w);
    enrol(&w, clock_ms() - 60000); /* it was not heard since */
    train(&w, 0, JOB_BATCHES);
    ps_push(&w.ps, w.worker, w.l.chief->generation, JOB_BATCHES, JOB_BATCHES + 4);
    record(&w, 1);
    coordinator_view(w.l.chief->coordinator, &view);
    ck_assert_int_eq(view.done, JOB_BATCHES + 4);
    ck_assert_int_eq(view.workers, 0);
    world_close(&w);
}
END_TEST

/* What ps-1 does when the chief announces a step to it, before it answers. */
struct hook {
    struct ps_fixture *ps;
    struct rpc_method real;
    uint64_t generation;
    void (*act)(struct hook *h);
    struct mutex lock;
    bool acted;
};

static int hooked_snapshot(void *user, const struct rpc_caller *caller, const struct rpc_message *request,
                           struct rpc_reply *reply, struct err *e)
{
    struct hook *h = user;
    {
        MUTEX_GUARD(&h->lock);
        if (!h->acted)
            h->act(h);
        h->acted = true;
    }
    return h->real.handle(h->real.user, caller, request, reply, e);
}

static void hook_snapshot(struct world *w, struct hook *h)
{
    struct rpc_method methods[SHARD_METHODS];
    mutex_init(&h->lock);
    h->ps = &w->ps;
    h->generation = w->l.chief->generation;
    rpc_server_free(TAKE(w->ps.server[1]));
    shard_service_methods(w->ps.service[1], methods);
    for (size_t m = 0; m < SHARD_METHODS; m++)
        if (str_ends(methods[m].path, "/Snapshot")) {
            h->real = methods[m];
            methods[m].handle = hooked_snapshot;
            methods[m].user = h;
        }
    ps_serve(&w->ps, 1, methods);
}

/* The chief has connected to the new server. */
static bool is_ready(struct world *w)
{
    AUTO_FINI(ps_set_view) view = { 0 };
    ps_set_poll(w->l.chief->ps_set, WAIT_MS, &view);
    return view.condition == PS_SET_READY;
}

/* What it did, another thread did. */
static void want_acted(struct hook *h)
{
    MUTEX_GUARD(&h->lock);
    ck_assert(h->acted);
}

static void finish_two_steps(struct hook *h)
{
    for (size_t i = 0; i < PS_COUNT; i++)
        push_to(h->ps, i, h->generation, 0, 8);
}

/* The ps were faster than the announcement: the first step that no ps can have passed. */
START_TEST(the_end_of_what_is_leased_when_the_step_is_over)
{
    struct world w;
    struct hook h = { .act = finish_two_steps };
    struct err e = { 0 };
    open_synchronous(&w);
    ck_assert_int_eq(lease_batches(&w, 8), 8);
    hook_snapshot(&w, &h);
    ck_wait(is_ready(&w));
    ck_ok_e(chief_save(w.l.chief, &e));
    want_acted(&h);
    ck_assert_int_eq(w.l.chief->save_at, 8);
    want_checkpoint(&w, 2, 8);
    ck_assert_int_eq(lease_batches(&w, 2), 10); /* batches above are leased again */
    world_close(&w);
    mutex_fini(&h.lock);
}
END_TEST

/* A new chief took ps-1 over meanwhile. */
static void take_over(struct hook *h)
{
    const struct shard_caller newer = {
        .job_uid = JOB_UID, .sender = "chief-0", .generation = h->generation + 1, .incarnation = 1
    };
    struct err e = { 0 };
    ck_ok_e(shard_adopt(h->ps->shard[1], &newer, &e));
}

START_TEST(a_newer_chief_ends_the_wait)
{
    struct world w;
    struct hook h = { .act = take_over };
    struct err e = { 0 };
    open_synchronous(&w);
    ck_assert_int_eq(lease_batches(&w, 8), 8);
    hook_snapshot(&w, &h);
    ck_wait(is_ready(&w));
    ck_assert_int_eq(chief_save(w.l.chief, &e), -1);
    want_acted(&h);
    ck_assert_msg(err_is(&e, ERR_FENCED), "%d %s", (int)e.code, e.msg);
    world_close(&w);
    mutex_fini(&h.lock);
}
END_TEST

/* ps-0 cannot be reached any more, when it has heard of the step. */
static void lose_the_other(struct hook *h)
{
    rpc_server_free(TAKE(h->ps->server[0]));
}

START_TEST(a_lost_ps_ends_the_wait)
{
    struct world w;
    struct hook h = { .act = lose_the_other };
    struct err e = { 0 };
    open_synchronous(&w);
    ck_assert_int_eq(lease_batches(&w, 8), 8);
    hook_snapshot(&w, &h);
    ck_wait(is_ready(&w));
    ck_fails(chief_save(w.l.chief, &e), ERR_LOST, "ps-0");
    want_acted(&h);
    ck_assert_int_eq(lease_batches(&w, 2), 10); /* batches above are leased again */
    world_close(&w);
    mutex_fini(&h.lock);
}
END_TEST

START_TEST(a_lost_ps_is_seen_before_the_wait)
{
    struct world w;
    struct err e = { 0 };
    open_synchronous(&w);
    ps_stop(&w.ps, 1);
    ck_fails(chief_save(w.l.chief, &e), ERR_LOST, "ps-1");
    ck_fails(chief_find_step(w.l.chief, &e), ERR_LOST, "ps-1");
    world_close(&w);
}
END_TEST

/* ---- the end of a process ---- */

START_TEST(ps_that_are_at_one_step_are_saved)
{
    struct world w;
    struct err e = { 0 };
    open_synchronous(&w);
    train(&w, 0, 6); /* two gradients of the next step wait, and are not in it */
    ck_ok_e(chief_find_step(w.l.chief, &e));
    ck_assert_int_eq(w.l.chief->save_at, 4);
    ck_ok_e(chief_save_step(w.l.chief, &e));
    want_checkpoint(&w, 1, 4);
    world_close(&w);
}
END_TEST

START_TEST(ps_that_are_at_two_steps_are_not)
{
    struct world w;
    struct err e = { 0 };
    open_synchronous(&w);
    push_to(&w.ps, 1, w.l.chief->generation, 0, 4);
    ck_fails(chief_find_step(w.l.chief, &e), ERR_LOST, "the parameter servers are at steps 0 and 1");
    world_close(&w);
}
END_TEST

/* All that is leased has come: nothing is waited for, and no further batch is leased. */
START_TEST(groups_that_were_begun_are_completed_at_the_end)
{
    struct world w;
    open_synchronous(&w);
    ck_assert_int_eq(lease_batches(&w, 4), 4);
    train(&w, 0, 4);
    chief_settle_step(w.l.chief);
    ck_assert_int_eq(w.l.chief->save_at, 4);
    ck_assert_int_eq(lease_batches(&w, 4), -1);
    world_close(&w);
}
END_TEST

/* ---- other groups ---- */

/* The same folder, empty ps, and another strategy. */
static int continue_with(struct world *w, const char *fit, struct err *e)
{
    struct job_fixture other;
    struct job *mine = w->ps.job.job;
    leader_close(&w->l);
    job_open(&other, COUNTING_OPTIMIZER, fit);
    w->ps.job.job = other.job;
    other.job = mine;
    job_close(&other);
    int rc = leader_new(&w->l, &w->ps, w->ps.job.dir, e);
    return rc < 0 ? -1 : chief_initialise_ps(w->l.chief, 0, e);
}

static void open_saved(struct world *w, int64_t batches)
{
    struct err e = { 0 };
    open_synchronous(w);
    train(w, 0, batches);
    ck_ok_e(chief_save(w->l.chief, &e));
}

/* Steps go on from that of the checkpoint, though a step has fewer batches from now on. */
START_TEST(a_run_goes_on_with_another_number_of_batches)
{
    struct world w;
    struct err e = { 0 };
    open_saved(&w, 8);
    ck_ok_e(continue_with(&w, "resume: true, " SYNC(2), &e));
    ck_assert_int_eq(w.l.chief->groups.size, 2);
    params_set_generation(w.worker, w.l.chief->generation);
    ck_ok_e(params_pull_at(w.worker, 8, 0, PS_CALL_MS, &e));
    want_cells(&w.ps.job, params_vector(w.worker), 8);
    train(&w, 8, 12);
    ck_ok_e(chief_save(w.l.chief, &e));
    ck_assert_int_eq(w.l.chief->save_at, 12);
    want_checkpoint(&w, 4, 12);
    ck_ok_e(chief_find_step(w.l.chief, &e));
    ck_assert_int_eq(w.l.chief->save_at, 12);
    ck_ok_e(continue_with(&w, "resume: true, " SYNC(2), &e)); /* the offset of the steps is in the checkpoint */
    train(&w, 12, 14);
    ck_ok_e(chief_save(w.l.chief, &e));
    want_checkpoint(&w, 5, 14);
    world_close(&w);
}
END_TEST

START_TEST(a_run_goes_on_asynchronously_and_back)
{
    struct world w;
    struct err e = { 0 };
    open_saved(&w, 8);
    ck_ok_e(continue_with(&w, "resume: true, " ASYNC, &e));
    AUTO(params) *asynchronous = ps_params(&w.ps, "worker-1", JOB_UID);
    ps_push(&w.ps, asynchronous, w.l.chief->generation, 8, 10);
    look(&w);
    ck_ok_e(chief_save(w.l.chief, &e));
    want_checkpoint(&w, 4, 10);
    ck_ok_e(continue_with(&w, "resume: true, " SYNC(4), &e));
    train(&w, 10, 14);
    ck_ok_e(chief_save(w.l.chief, &e));
    want_checkpoint(&w, 5, 14);
    world_close(&w);
}
END_TEST

START_TEST(a_run_within_a_group_is_not_continued)
{
    struct world w;
    struct err e = { 0 };
    open_saved(&w, 8);
    ck_fails(continue_with(&w, "resume: true, " SYNC(3), &e), ERR_INPUT,
             "is not at the end of a group of 3 batches (strategy.updates, strategy.replicasToAggregate): finish the "
             "run as it began");
    ck_assert_ptr_null(w.l.chief);
    world_close(&w);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("chief_step");
    TCase *t = tcase_create("chief_step");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_step_of_now_when_nothing_is_computed);
    tcase_add_test(t, the_step_that_is_computed_and_training_goes_on);
    tcase_add_test(t, it_looks_around_while_reports_are_missing);
    tcase_add_test(t, the_end_of_what_is_leased_when_the_step_is_over);
    tcase_add_test(t, a_newer_chief_ends_the_wait);
    tcase_add_test(t, a_lost_ps_ends_the_wait);
    tcase_add_test(t, a_lost_ps_is_seen_before_the_wait);
    tcase_add_test(t, ps_that_are_at_one_step_are_saved);
    tcase_add_test(t, ps_that_are_at_two_steps_are_not);
    tcase_add_test(t, groups_that_were_begun_are_completed_at_the_end);
    tcase_add_test(t, a_run_goes_on_with_another_number_of_batches);
    tcase_add_test(t, a_run_goes_on_asynchronously_and_back);
    tcase_add_test(t, a_run_within_a_group_is_not_continued);
    suite_add_tcase(s, t);
    return s;
}
